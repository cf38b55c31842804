//! The API: exactly the routes of the route table, each with its function behind it, which only
//! this API may call; the rate at which calls are taken on; an access log that can hold no secret.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use http_api::FunctionName;
use http_api::routes::ROUTES;
use serde_json::{Value, json};

use crate::functions::{log_group, timeout};
use crate::{Findings, assert_generated, expect, logical, of_type, properties};

/// Milliseconds that the API waits for a function beyond the longest that it may run.
const MARGIN_MS: u64 = 1_000;

/// What an access log line may tell of a call: nothing that a caller has written. A path is not
/// among it, for a caller may put a key there.
const TOLD: [&str; 10] = [
    "$context.error.responseType",
    "$context.identity.sourceIp",
    "$context.integration.status",
    "$context.integrationLatency",
    "$context.requestId",
    "$context.requestTimeEpoch",
    "$context.responseLatency",
    "$context.responseLength",
    "$context.routeKey",
    "$context.status",
];

/// The names of the routes' resources, with their keys and functions.
fn routes() -> Vec<(String, String, FunctionName)> {
    let each = ROUTES.iter().map(|route| {
        let key = format!("{} {}", route.method, route.path);
        (format!("{:?}Route", route.operation), key, route.function)
    });
    let default = (
        "DefaultRoute".to_owned(),
        "$default".to_owned(),
        FunctionName::DEFAULT,
    );
    each.chain([default]).collect()
}

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    let is = |found: &mut Findings, name: &str, kind: &str, expected: &Value| {
        let there = &template["Resources"][name]["Type"];
        expect(found, &format!("{name}.Type"), there, &json!(kind));
        expect(found, name, &properties(template, name), expected);
    };
    let expected: BTreeSet<String> = routes().into_iter().map(|(name, ..)| name).collect();
    let there = of_type(template, "AWS::ApiGatewayV2::Route");
    let there: BTreeSet<String> = there.map(str::to_owned).collect();
    for odd in there.symmetric_difference(&expected) {
        found.push(format!("{odd}: is not as the route table has it"));
    }
    let api = json!({ "Ref": "HttpApi" });
    for (name, key, function) in routes() {
        let target = format!(
            "integrations/${{{}Integration}}",
            logical(function.as_str())
        );
        let route = json!({ "ApiId": api, "RouteKey": key, "Target": { "Fn::Sub": target } });
        is(&mut found, &name, "AWS::ApiGatewayV2::Route", &route);
    }
    for function in FunctionName::ALL {
        let name = logical(function.as_str());
        let integration = json!({
            "ApiId": api,
            "IntegrationType": "AWS_PROXY",
            "IntegrationUri": { "Fn::GetAtt": [format!("{name}Function"), "Arn"] },
            "PayloadFormatVersion": "2.0",
            "TimeoutInMillis": timeout(function.as_str()) * 1_000 + MARGIN_MS,
        });
        let kind = "AWS::ApiGatewayV2::Integration";
        is(
            &mut found,
            &format!("{name}Integration"),
            kind,
            &integration,
        );
        let from = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:";
        let permission = json!({
            "Action": "lambda:InvokeFunction",
            "FunctionName": { "Ref": format!("{name}Function") },
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": { "Fn::Sub": format!("{from}${{HttpApi}}/*") },
        });
        let kind = "AWS::Lambda::Permission";
        is(&mut found, &format!("{name}Permission"), kind, &permission);
    }
    let permissions = of_type(template, "AWS::Lambda::Permission").count();
    if permissions != FunctionName::ALL.len() {
        found.push(format!(
            "{permissions} may call functions, and only the API is to"
        ));
    }
    let gateway = json!({
        "Name": { "Ref": "AWS::StackName" },
        "Description": "Relet",
        "ProtocolType": "HTTP",
    });
    is(&mut found, "HttpApi", "AWS::ApiGatewayV2::Api", &gateway);
    stage(&mut found, template);
    found
}

fn stage(found: &mut Findings, template: &Value) {
    let there = properties(template, "HttpStage");
    let format = &there["AccessLogSettings"]["Format"];
    let expected = json!({
        "ApiId": { "Ref": "HttpApi" },
        "StageName": "$default",
        "AutoDeploy": true,
        "DefaultRouteSettings": {
            "DetailedMetricsEnabled": false,
            "ThrottlingBurstLimit": { "Ref": "ThrottleBurst" },
            "ThrottlingRateLimit": { "Ref": "ThrottleRate" },
        },
        "AccessLogSettings": {
            "DestinationArn": { "Fn::GetAtt": ["AccessLogs", "Arn"] },
            "Format": format,
        },
    });
    expect(found, "HttpStage", &there, &expected);
    let kind = &template["Resources"]["HttpStage"]["Type"];
    expect(
        found,
        "HttpStage.Type",
        kind,
        &json!("AWS::ApiGatewayV2::Stage"),
    );
    let told: Vec<&str> = variables(format.as_str().unwrap_or_default());
    let told: BTreeSet<&str> = told.into_iter().collect();
    if told != TOLD.into() {
        found.push(format!("the access log tells {told:?}, must tell {TOLD:?}"));
    }
    let mut logs = template["Resources"]["AccessLogs"].clone();
    logs["Properties"] = properties(template, "AccessLogs");
    let group = log_group("/aws/vendedlogs/apis/${AWS::StackName}");
    expect(found, "AccessLogs", &logs, &group);
}

/// The variables in a format.
fn variables(format: &str) -> Vec<&str> {
    let starts = format.match_indices('$').map(|(at, _)| &format[at..]);
    let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '$' | '.'));
    starts
        .map(|rest| rest.split(end).next().unwrap_or_default())
        .collect()
}

#[test]
fn an_access_log_line_is_json() {
    let template = crate::template();
    let stage = properties(&template, "HttpStage");
    let format = stage["AccessLogSettings"]["Format"].as_str().unwrap();
    let mut line = format.to_owned();
    for variable in TOLD.iter().rev() {
        line = line.replace(variable, "7");
    }
    let line: Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!(line.as_object().unwrap().len(), TOLD.len());
}

#[test]
fn the_template_has_the_routes_of_the_route_table() {
    let mut text = String::new();
    for (name, key, function) in routes() {
        let target = logical(function.as_str());
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n  {name}:\n    Type: AWS::ApiGatewayV2::Route\n    Properties:\n      \
             ApiId: !Ref HttpApi\n      RouteKey: {key}\n      \
             Target: !Sub integrations/${{{target}Integration}}\n"
        );
    }
    text.push('\n');
    let lines = (
        "  # RELET_REWRITE=1 cargo test -p relet-tests --test infra\n",
        "  # End of the routes\n",
    );
    assert_generated("infra/template.yaml", lines, &text);
}
