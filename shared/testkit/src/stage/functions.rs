//! Function binaries on the stage, and what all of them owe.

use std::path::Path;

use domain::Caller;
use serde_json::{Value, json};

use super::{Stage, key_of};
use crate::engine::TABLE;
use crate::runtime_api::{Failure, FunctionProcess};

impl Stage {
    /// Starts a function's binary against the engine, with these variables over the usual ones.
    ///
    /// # Panics
    /// If it cannot be started: then no test can run.
    pub async fn function(&self, binary: &str, more: &[(&str, &str)]) -> FunctionProcess {
        let usual = [
            ("RELET_TABLE", TABLE),
            ("RELET_CURSOR_SECRET", "sixteen characters or more"),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.engine().endpoint()),
        ];
        let env: Vec<(&str, &str)> = usual.iter().chain(more).copied().collect();
        let started = FunctionProcess::start(Path::new(binary), &env).await;
        started.unwrap_or_else(|error| unreachable!("{binary} cannot be run: {error}"))
    }
}

/// A recorded event of API Gateway as a call by this caller. Records hold no key.
#[must_use]
pub fn recorded(event: &str, by: &Caller) -> Value {
    let event: Result<Value, _> = serde_json::from_str(event);
    let mut event = event.unwrap_or_else(|error| unreachable!("a record is JSON: {error}"));
    event["headers"]["authorization"] = json!(format!("Bearer {}", key_of(by).reveal()));
    event
}

/// Hands the function events that are none. Each must be failed as such, by the process that goes
/// on; the next good event shows that it does.
pub async fn assert_outlives_bad_events(function: &mut FunctionProcess) {
    let pid = function.pid();
    for bad in [
        "",
        "{",
        "[]",
        "7",
        "{\"version\":\"2.0\"}",
        "{\"Records\":{}}",
    ] {
        let answer = function.invoke_text(bad.to_owned()).await;
        assert!(
            matches!(answer, Err(Failure::Function { .. })),
            "{bad:?} is no event: {answer:?}"
        );
    }
    assert_eq!(function.pid(), pid);
}

/// Starts a binary with these variables alone and returns what it says as it ends, before it has
/// taken its first event.
///
/// # Panics
/// If it does not end: then it has started without what it needs.
pub async fn init_failure(binary: &str, env: &[(&str, &str)]) -> String {
    let started = FunctionProcess::start(Path::new(binary), env).await;
    let mut function = started.unwrap_or_else(|error| unreachable!("{binary}: {error}"));
    match function.invoke(&json!({})).await {
        Err(Failure::Exited(text) | Failure::Init(text)) => text,
        answer => unreachable!("it has started: {answer:?}"),
    }
}
