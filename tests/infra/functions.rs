//! Each folder of `functions/` is deployed: with its code, its role, its log, and exactly the
//! variables that its process reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use http_api::FunctionName;
use serde_json::{Map, Value, json};

use crate::{Findings, expect, folders, logical, of_type, properties, read, sentence};

/// What each variable is set to. What is set for all functions is in `Globals`.
fn values() -> BTreeMap<&'static str, Value> {
    let secret = |name: &str| {
        let text = format!("{{{{resolve:secretsmanager:${{{name}}}:SecretString}}}}");
        json!({ "Fn::Sub": text })
    };
    [
        ("RELET_TABLE", json!({ "Ref": "Table" })),
        (
            "RELET_METRICS_NAMESPACE",
            json!({ "Fn::Sub": "Relet/${AWS::StackName}" }),
        ),
        ("RUST_LOG", json!({ "Ref": "LogLevel" })),
        ("RELET_CURSOR_SECRET", secret("CursorSecret")),
        ("RELET_KEY_TTL_MS", json!({ "Ref": "KeyTtlMs" })),
        ("RELET_QUEUE_URL", json!({ "Ref": "OrdersQueue" })),
        ("RELET_STUCK_AFTER_MS", json!({ "Ref": "StuckAfterMs" })),
        ("RELET_CONTROLLER_URL", json!({ "Ref": "VmControllerUrl" })),
        ("RELET_CONTROLLER_SECRET", secret("ControllerSecret")),
    ]
    .into()
}

/// Variables that every function reads.
const SHARED: [&str; 3] = ["RELET_TABLE", "RELET_METRICS_NAMESPACE", "RUST_LOG"];

/// The variables that a source's functions read, by the names of those functions.
fn readers(source: &str, start: &str) -> BTreeMap<String, BTreeSet<String>> {
    let bodies = source.split(start).skip(1);
    bodies
        .map(|body| {
            let name = body.split(['(', '<']).next().unwrap_or_default();
            let quoted = body.split('"').skip(1).step_by(2);
            let variables = quoted.filter(|text| text.starts_with("RELET_"));
            (name.to_owned(), variables.map(str::to_owned).collect())
        })
        .collect()
}

/// The variables that a function's process reads, by what its `main.rs` calls.
fn variables(folder: &str) -> BTreeSet<String> {
    static READ: OnceLock<BTreeMap<String, BTreeSet<String>>> = OnceLock::new();
    let all = || {
        folders()
            .into_iter()
            .map(|folder| (folder.clone(), read_variables(&folder)))
    };
    READ.get_or_init(|| all().collect())[folder].clone()
}

fn read_variables(folder: &str) -> BTreeSet<String> {
    let config = readers(&read("shared/runtime/src/config.rs"), "pub fn ");
    let of = |text: &str| {
        let read = config
            .iter()
            .filter(|(name, _)| text.contains(&format!("config::{name}(")));
        read.flat_map(|(_, variables)| variables.clone())
            .collect::<BTreeSet<String>>()
    };
    let bootstrap = read("shared/runtime/src/bootstrap.rs");
    let body = |name: &str| {
        let mut bodies = bootstrap.split("pub async fn ");
        bodies
            .find(|body| body.starts_with(name))
            .unwrap()
            .to_owned()
    };
    let main = read(&format!("functions/{folder}/src/main.rs"));
    let mut found = of(&main);
    // Every process opens the store; those of HTTP functions by way of the service.
    for opening in ["settings(", "store("] {
        found.extend(of(&body(opening)));
    }
    if main.contains("bootstrap::service()") {
        found.extend(of(&body("service()")));
    }
    // The log's own variable.
    found.insert("RUST_LOG".to_owned());
    found
}

fn is_http(folder: &str) -> bool {
    FunctionName::ALL.iter().any(|name| name.as_str() == folder)
}

/// Longest run of a function in seconds, where it has no other.
const TIMEOUT_SECS: u64 = 15;

/// Longest run of a function, in seconds.
pub(crate) fn timeout(folder: &str) -> u64 {
    match folder {
        "stream" | "sweep" => 60,
        _ => TIMEOUT_SECS,
    }
}

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    let folders = folders();
    let mut deployed: Vec<String> = folders
        .iter()
        .map(|folder| format!("{}Function", logical(folder)))
        .collect();
    deployed.sort();
    let there: Vec<&str> = of_type(template, "AWS::Serverless::Function").collect();
    if there != deployed {
        found.push(format!("functions: are {there:?}, must be {deployed:?}"));
    }
    globals(&mut found, template);
    for folder in &folders {
        function(&mut found, template, folder);
        log(&mut found, template, folder);
    }
    found
}

fn globals(found: &mut Findings, template: &Value) {
    let values = values();
    let mut shared: Map<String, Value> = SHARED
        .map(|name| (name.to_owned(), values[name].clone()))
        .into_iter()
        .collect();
    // Read by nobody: its change has the secrets resolved anew.
    shared.insert(
        "SECRETS_GENERATION".to_owned(),
        json!({ "Ref": "SecretsGeneration" }),
    );
    let expected = json!({
        "Runtime": "provided.al2023",
        "Handler": "bootstrap",
        "Architectures": [{ "Ref": "Architecture" }],
        "MemorySize": 256,
        "Timeout": TIMEOUT_SECS,
        "Environment": { "Variables": shared },
        "Tags": { "app": "relet", "stage": { "Ref": "Stage" } },
    });
    expect(
        found,
        "Globals",
        &template["Globals"]["Function"],
        &expected,
    );
}

fn function(found: &mut Findings, template: &Value, folder: &str) {
    let (name, values) = (logical(folder), values());
    let own = variables(folder);
    let own = own.iter().filter(|name| !SHARED.contains(&name.as_str()));
    let own: Map<String, Value> = own
        .map(|name| {
            (
                name.clone(),
                values.get(name.as_str()).cloned().unwrap_or_default(),
            )
        })
        .collect();
    let there = properties(template, &format!("{name}Function"));
    let mut expected = json!({
        "FunctionName": { "Fn::Sub": format!("${{AWS::StackName}}-{folder}") },
        "Description": sentence(&there["Description"]),
        "CodeUri": format!("../target/lambda/relet-{folder}/"),
        "Role": { "Fn::GetAtt": [format!("{name}Role"), "Arn"] },
        "LoggingConfig": { "LogGroup": { "Ref": format!("{name}Logs") } },
        "Environment": { "Variables": own },
    });
    if timeout(folder) != TIMEOUT_SECS {
        expected["Timeout"] = json!(timeout(folder));
    }
    if is_http(folder) {
        let (most, none) = (json!({ "Ref": "ReservedConcurrency" }), "AWS::NoValue");
        expected["ReservedConcurrentExecutions"] =
            json!({ "Fn::If": ["ReservesConcurrency", most, { "Ref": none }] });
    }
    if expected["Environment"]["Variables"] == json!({}) {
        expected.as_object_mut().unwrap().remove("Environment");
    }
    expect(found, &format!("{name}Function"), &there, &expected);
}

fn log(found: &mut Findings, template: &Value, folder: &str) {
    let name = format!("{}Logs", logical(folder));
    let mut there = template["Resources"][&name].clone();
    there["Properties"] = properties(template, &name);
    let group = format!("/aws/lambda/${{AWS::StackName}}-{folder}");
    expect(found, &name, &there, &log_group(&group));
}

/// A log group that is kept as long as logs are.
pub(crate) fn log_group(name: &str) -> Value {
    json!({
        "Type": "AWS::Logs::LogGroup",
        "DeletionPolicy": "Delete",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "LogGroupName": { "Fn::Sub": name },
            "RetentionInDays": { "Ref": "LogRetentionDays" },
        },
    })
}

#[test]
fn every_function_s_readme_names_the_variables_that_it_reads_and_no_others() {
    for folder in folders() {
        let document = read(&format!("functions/{folder}/README.md"));
        let (_, told) = document.split_once("\nEnvironment: ").unwrap();
        let quoted = told.split('`').skip(1).step_by(2);
        let names = quoted.filter(|text| text.starts_with("RELET_") || *text == "RUST_LOG");
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        assert_eq!(names, variables(&folder), "{folder}");
    }
}
