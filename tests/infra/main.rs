//! The template against the code: every route, every right of every role, every setting of a
//! mapping, every alarm, every variable of a function. Whatever is taken out of it is missed.
//!
//! What the template and the documents repeat of the code is written anew by
//! `RELET_REWRITE=1 cargo test -p relet-tests --test infra`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alarms;
mod functions;
mod removal;
mod rights;
mod routes;
mod runbook;
mod sources;
mod table;
mod used;
mod whole;

use std::sync::OnceLock;

use relet_tests::root;
use serde_json::Value;

use crate::used::Used;

/// What is wrong with a template: nothing if it is right.
type Findings = Vec<String>;

/// The template.
fn template() -> Value {
    relet_template::parse(relet_template::TEXT).unwrap()
}

/// All that can be said against a template, given what the functions make use of.
fn findings(template: &Value, used: &Used) -> Findings {
    let subjects = SUBJECTS.iter();
    subjects
        .flat_map(|subject| subject(template, used))
        .collect()
}

/// Whether anything can be said against it.
fn is_wrong(template: &Value, used: &Used) -> bool {
    let mut subjects = SUBJECTS.iter();
    subjects.any(|subject| !subject(template, used).is_empty())
}

/// What a template is looked at for, the quickest first.
const SUBJECTS: [fn(&Value, &Used) -> Findings; 7] = [
    |template, _| table::findings(template),
    |template, _| sources::findings(template),
    |template, _| functions::findings(template),
    rights::findings,
    |template, _| routes::findings(template),
    |template, _| alarms::findings(template),
    |template, _| whole::findings(template),
];

/// Finds a member that is not what it must be.
fn expect(found: &mut Findings, what: &str, there: &Value, expected: &Value) {
    if there == expected {
        return;
    }
    let (Value::Object(have), Value::Object(want)) = (there, expected) else {
        found.push(format!("{what}: is {there}, must be {expected}"));
        return;
    };
    for name in have.keys().filter(|name| !want.contains_key(*name)) {
        found.push(format!("{what}: {name} does not belong there"));
    }
    for (name, value) in want {
        expect(found, &format!("{what}.{name}"), &there[name], value);
    }
}

/// What the text must be: as it is if it says something, else a sentence.
fn sentence(there: &Value) -> Value {
    let text = there.as_str().filter(|text| text.len() > 10);
    Value::from(text.unwrap_or("a sentence"))
}

/// The resource's properties, tags left out: those are looked at as a whole.
fn properties(template: &Value, resource: &str) -> Value {
    let mut properties = template["Resources"][resource]["Properties"].clone();
    if let Some(members) = properties.as_object_mut() {
        members.remove("Tags");
    }
    properties
}

/// Resources of this type, by name.
fn of_type<'a>(template: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let all = template["Resources"].as_object().into_iter().flatten();
    all.filter(move |(_, resource)| resource["Type"] == kind)
        .map(|(name, _)| name.as_str())
}

/// The folders of functions, which are their names.
fn folders() -> Vec<String> {
    static READ: OnceLock<Vec<String>> = OnceLock::new();
    READ.get_or_init(read_folders).clone()
}

fn read_folders() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("functions")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A function's name in the template.
fn logical(function: &str) -> String {
    let (first, rest) = function.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Whether what is generated is to be written and not compared.
fn rewrites() -> bool {
    std::env::var_os("RELET_REWRITE").is_some()
}

/// Fails unless the file has this text between the two lines; writes it there if asked to.
fn assert_generated(path: &str, (first, last): (&str, &str), expected: &str) {
    let text = read(path);
    let start = text.find(first).unwrap() + first.len();
    let end = start + text[start..].find(last).unwrap();
    if rewrites() {
        let text = format!("{}{expected}{}", &text[..start], &text[end..]);
        std::fs::write(root().join(path), text).unwrap();
        return;
    }
    assert!(
        text[start..end] == *expected,
        "{path} is not as the code has it; see tests/infra/main.rs. It should be:\n{expected}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_template_is_what_the_code_needs_and_whatever_is_taken_out_is_missed() {
    let used = used::used().await;
    rights::assert_documented(&used);
    let template = template();
    assert_eq!(findings(&template, &used), [""; 0]);
    removal::assert_missed(template, &used);
}
