//! The terminate function: carries out termination orders off the queue. What is not finished comes
//! again; one order never holds up another.

use std::sync::Arc;

use app::ports::{Clock, ControlVm, CountAttempt, Ids};
use app::settle::SettleStore;
use app::terminate::{Outcome, terminate};
use serde_json::Value;

use crate::batch::{failures, guarded, identifier, records};
use crate::function::{Function, FunctionError};
use crate::orders::decode;

/// The function over these ports.
pub fn function<S, V, C, I>(store: Arc<S>, controller: Arc<V>, clock: C, ids: I) -> Function
where
    S: SettleStore + CountAttempt + 'static,
    V: ControlVm + 'static,
    C: Clock + Clone,
    I: Ids + Clone,
{
    Function::new("terminate", move |event| {
        let (store, controller) = (Arc::clone(&store), Arc::clone(&controller));
        let (clock, ids) = (clock.clone(), ids.clone());
        async move { handle(&*store, &*controller, &clock, &ids, event).await }
    })
}

async fn handle(
    store: &(impl SettleStore + CountAttempt),
    controller: &impl ControlVm,
    clock: &impl Clock,
    ids: &impl Ids,
    event: Value,
) -> Result<Value, FunctionError> {
    let records = records(event)?;
    let named: Vec<(String, Value)> = records
        .into_iter()
        .map(|record| Ok((identifier(&record, "/messageId")?, record)))
        .collect::<Result<_, FunctionError>>()?;
    // All at once: a machine that hangs delays its own order and no other.
    let each = named.iter().map(|(id, record)| async move {
        let body = record
            .get("body")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let outcome = guarded(one(store, controller, clock, ids, body)).await;
        (id, outcome)
    });
    let mut failed = Vec::new();
    for (message_id, outcome) in futures_util::future::join_all(each).await {
        match outcome {
            Ok(outcome @ (Outcome::Confirmed | Outcome::NothingToDo)) => {
                tracing::info!(message_id, outcome = ?outcome, "order");
            }
            Ok(Outcome::NotCondemned) => {
                tracing::error!(
                    message_id,
                    "order for a VM that is not condemned; not followed"
                );
            }
            Ok(Outcome::NotYet) => failed.push(message_id.clone()),
            Err(cause) => {
                tracing::warn!(message_id, cause, "order not finished");
                failed.push(message_id.clone());
            }
        }
    }
    Ok(failures(&failed))
}

async fn one(
    store: &(impl SettleStore + CountAttempt),
    controller: &impl ControlVm,
    clock: &impl Clock,
    ids: &impl Ids,
    body: &str,
) -> Result<Outcome, String> {
    let order = decode(body).map_err(|error| error.to_string())?;
    terminate(store, controller, clock, ids, &order)
        .await
        .map_err(|error| format!("{error:?}"))
}
