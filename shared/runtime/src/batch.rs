//! Batches of events: which of them failed, said the way the service wants to hear it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::function::FunctionError;

/// The records of an event.
///
/// # Errors
/// [`FunctionError`] if it has none: it is not an event of a stream or a queue.
pub fn records(mut event: Value) -> Result<Vec<Value>, FunctionError> {
    match event.get_mut("Records").map(Value::take) {
        Some(Value::Array(records)) => Ok(records),
        _ => Err(FunctionError {
            kind: "BadEvent",
            message: "the event has no Records".to_owned(),
        }),
    }
}

/// The id of a record at a place inside it. Never empty: the service reads an empty one as a
/// failure of the whole batch.
///
/// # Errors
/// [`FunctionError`] if it is missing: then only the whole batch can be failed.
pub fn identifier(record: &Value, pointer: &str) -> Result<String, FunctionError> {
    let id = record
        .pointer(pointer)
        .and_then(Value::as_str)
        .filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| FunctionError {
        kind: "BadEvent",
        message: format!("a record has no {pointer}"),
    })
}

/// The reply that names the failed records; all others are done.
#[must_use]
pub fn failures(ids: &[String]) -> Value {
    let each: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "itemIdentifier": id }))
        .collect();
    json!({ "batchItemFailures": each })
}

/// Runs the handling of one record such that a panic in it is a failure of this record alone.
///
/// # Errors
/// The handling's own, or the panic as text.
pub async fn guarded<T>(handling: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let caught = AssertUnwindSafe(handling).catch_unwind().await;
    caught.unwrap_or_else(|_| Err("panicked".to_owned()))
}
