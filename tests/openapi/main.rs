//! The API document: `docs/openapi.json` is what the route table, the types and the calls of a story
//! make of it, and what it says is so.
//!
//! To write it anew: `RELET_WRITE_DOCS=1 cargo test -p relet-tests --test openapi`
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod document;
mod examples;
mod fields;
mod operations;
mod refusals;
mod schemas;
mod story;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use document::Builder;
use examples::{Examples, Recorder};

/// What writes the document anew.
const COMMAND: &str = "RELET_WRITE_DOCS=1 cargo test -p relet-tests --test openapi";

fn file(path: &str) -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap().join(path)
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
        "docs/openapi.json is not what the code makes of it, at {differs:?}; write it anew: {COMMAND}"
    );
}
