//! What holds of the template as a whole: everything it names is there, all of it is tagged, and no
//! right is to everything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Findings, expect, of_type};

/// Types whose tags are a list.
const TAGGED_BY_LIST: [&str; 7] = [
    "AWS::DynamoDB::Table",
    "AWS::SecretsManager::Secret",
    "AWS::SQS::Queue",
    "AWS::S3::Bucket",
    "AWS::Logs::LogGroup",
    "AWS::IAM::Role",
    "AWS::CloudWatch::Alarm",
];

/// Types whose tags are a map. A function has them from `Globals`.
const TAGGED_BY_MAP: [&str; 2] = ["AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"];

/// What the template may be given.
const PARAMETERS: [&str; 16] = [
    "AlarmTopicArn",
    "Architecture",
    "FailedRecordRetentionDays",
    "KeyTtlMs",
    "LogLevel",
    "LogRetentionDays",
    "PageTopicArn",
    "ReservedConcurrency",
    "SecretsGeneration",
    "Stage",
    "StuckAfterMs",
    "TableKmsKey",
    "TerminateConcurrency",
    "ThrottleBurst",
    "ThrottleRate",
    "VmControllerUrl",
];

/// What the template gives back.
const OUTPUTS: [&str; 8] = [
    "ApiUrl",
    "ControllerSecretArn",
    "DashboardName",
    "FailedRecordsBucketName",
    "OrdersDeadLetterQueueUrl",
    "OrdersQueueUrl",
    "TableName",
    "TableStreamArn",
];

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    named(&mut found, template);
    conditions(&mut found, template);
    tags(&mut found, template);
    wildcards(&mut found, template);
    for (section, names) in [("Parameters", &PARAMETERS[..]), ("Outputs", &OUTPUTS[..])] {
        let there: Vec<&String> = template[section].as_object().unwrap().keys().collect();
        if there != names {
            found.push(format!("{section}: are {there:?}, must be {names:?}"));
        }
    }
    found
}

/// A condition holds if the parameter is, or is not, this.
fn conditions(found: &mut Findings, template: &Value) {
    let is = |parameter: &str, value: Value| json!({ "Fn::Equals": [{ "Ref": parameter }, value] });
    let not = |condition: Value| json!({ "Fn::Not": [condition] });
    let expected = json!({
        "HasAlarmTopic": not(is("AlarmTopicArn", json!(""))),
        "HasPageTopic": not(is("PageTopicArn", json!(""))),
        "ReservesConcurrency": not(is("ReservedConcurrency", json!(0))),
        "HasManagedTableKey": is("TableKmsKey", json!("managed")),
    });
    expect(found, "Conditions", &template["Conditions"], &expected);
}

/// Everything that is named is there, and every parameter and condition is named.
fn named(found: &mut Findings, template: &Value) {
    let mut named = BTreeSet::new();
    for section in ["Globals", "Resources", "Outputs", "Conditions"] {
        references(&template[section], &mut named);
    }
    let sections = ["Parameters", "Resources", "Conditions"];
    let of = |section: &str| {
        let members = template[section].as_object().into_iter().flatten();
        members
            .map(|(name, _)| name.clone())
            .collect::<BTreeSet<_>>()
    };
    let there: BTreeSet<String> = sections.iter().flat_map(|section| of(section)).collect();
    for name in named.difference(&there).filter(|n| !n.starts_with("AWS::")) {
        found.push(format!("{name} is named and not there"));
    }
    let asked: BTreeSet<String> = ["Parameters", "Conditions"]
        .into_iter()
        .flat_map(of)
        .collect();
    for name in asked.difference(&named) {
        found.push(format!("{name} is there and nothing names it"));
    }
}

/// The names of resources, parameters and conditions in a value.
fn references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let text = member.as_str().or_else(|| member[0].as_str());
                match (name.as_str(), text) {
                    ("Ref" | "Condition" | "Fn::GetAtt" | "Fn::If", Some(text)) => {
                        into.insert(text.to_owned());
                    }
                    ("Fn::Sub", Some(text)) => {
                        let each = text.split("${").skip(1);
                        let names = each.filter_map(|rest| rest.split(['}', '.']).next());
                        into.extend(names.map(str::to_owned));
                    }
                    _ => {}
                }
                references(member, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, into)),
        _ => {}
    }
}

fn tags(found: &mut Findings, template: &Value) {
    let stage = json!({ "Ref": "Stage" });
    let list = json!([{ "Key": "app", "Value": "relet" }, { "Key": "stage", "Value": stage }]);
    let map = json!({ "app": "relet", "stage": stage });
    let listed = TAGGED_BY_LIST.map(|kind| (kind, &list));
    for (kind, tags) in listed
        .into_iter()
        .chain(TAGGED_BY_MAP.map(|kind| (kind, &map)))
    {
        for name in of_type(template, kind) {
            let there = &template["Resources"][name]["Properties"]["Tags"];
            expect(found, &format!("{name}.Tags"), there, tags);
        }
    }
}

/// No right is to all resources, or to all actions of a service. Refusals may be.
fn wildcards(found: &mut Findings, template: &Value) {
    for role in of_type(template, "AWS::IAM::Role") {
        let policies = &template["Resources"][role]["Properties"]["Policies"];
        for policy in policies.as_array().into_iter().flatten() {
            let statements = policy["PolicyDocument"]["Statement"].as_array();
            for statement in statements.into_iter().flatten() {
                let resources = statement["Resource"].to_string();
                // The service gives objects their names under this prefix.
                let resources = resources.replace("/aws/lambda/*", "");
                if resources.contains('*') || statement["Action"].to_string().contains('*') {
                    found.push(format!("{role}: a right to everything: {statement}"));
                }
            }
        }
    }
}
