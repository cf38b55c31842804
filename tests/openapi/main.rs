//! The API document: `docs/openapi.json` is what the route table, the types and the calls of a
//! story make of it, and what it says is so.
//!
//! To write it anew: `RELET_WRITE_DOCS=1 cargo test -p relet-tests --test openapi`
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod document;
mod examples;
mod fields;
mod operations;
mod refusals;
mod schemas;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use http_api::routes::{BodyRule, Operation, ROUTES};
use serde_json::Value;

use app::auth::SecretKey;
use document::Builder;
use examples::{Examples, Recorder};

/// What writes the document anew.
const COMMAND: &str = "RELET_WRITE_DOCS=1 cargo test -p relet-tests --test openapi";

fn file(path: &str) -> PathBuf {
    relet_tests::root().join(path)
}

/// The rows of `docs/errors.md`: status and code, with what to do.
fn errors() -> BTreeMap<(u16, String), String> {
    let text = std::fs::read_to_string(file("docs/errors.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
        let [status, code, _, advice] = *cells else {
            return None;
        };
        let code = code.trim_matches('`').to_owned();
        let advice = advice.trim_end_matches('|').trim().to_owned();
        Some(((status.parse().ok()?, code), advice))
    });
    rows.collect()
}

/// The document as it is committed.
fn committed() -> Value {
    let text = std::fs::read_to_string(file("docs/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

async fn record() -> Examples {
    let mut recorder = Recorder::new().await;
    let cast = story::play(&mut recorder).await;
    refusals::record(&mut recorder, &cast).await;
    recorder.examples
}

async fn document() -> Value {
    let advice = errors()
        .into_iter()
        .map(|((_, code), advice)| (code, advice))
        .collect();
    let examples = record().await;
    Builder::new(&examples, &advice).build()
}

#[tokio::test]
async fn the_document_is_what_the_code_makes_of_it() {
    let path = file("docs/openapi.json");
    let made = serde_json::to_string_pretty(&document().await).unwrap() + "\n";
    if std::env::var_os("RELET_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let differs = committed.lines().zip(made.lines()).find(|(a, b)| a != b);
    assert!(
        committed == made,
        "docs/openapi.json is not what the code makes of it, at {differs:?}; write it anew: \
         {COMMAND}"
    );
}

#[tokio::test]
async fn the_document_is_served_as_it_is_committed() {
    let recorder = Recorder::new().await;
    let answer = recorder.platform.call(story::get("/v1/openapi.json")).await;
    let committed = std::fs::read_to_string(file("docs/openapi.json")).unwrap();
    assert!(answer.text == committed, "byte for byte");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/json");
}

#[test]
fn no_example_can_be_taken_for_a_key() {
    let text = committed().to_string();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    let keys: Vec<&str> = words
        .filter(|word| SecretKey::parse(word).is_some())
        .collect();
    assert_eq!(keys, [""; 0]);
}

/// Every operation once, with everything that a reader looks for.
#[test]
fn every_operation_is_described_and_has_examples() {
    let document = committed();
    let mut ids = BTreeSet::new();
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} twice");
        assert_eq!(id, document::operation_id(route.operation));
        for name in ["summary", "description"] {
            assert!(
                operation[name].as_str().is_some_and(|text| text.len() > 5),
                "{id}: {name}"
            );
        }
        let good = operation["responses"]["200"]["content"].as_object();
        let examples = good.map(|content| &content["application/json"]["examples"]);
        let bodiless = [Operation::RevokeKey, Operation::GetApiDocument].contains(&route.operation);
        let shown = examples
            .and_then(Value::as_object)
            .is_some_and(|all| !all.is_empty());
        assert!(shown || bodiless, "{id}: an example");
        let reads = route.body != BodyRule::None;
        let body = operation["requestBody"]["content"].as_object();
        assert_eq!(body.is_some(), reads, "{id}: a body");
    }
    let count: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    assert_eq!(count, ids.len(), "nothing that is no route");
}
