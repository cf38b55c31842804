//! The terminate function: carries out termination orders off the queue. What is not finished comes
//! again; one order never holds up another.

use std::sync::Arc;
use std::time::Instant;

use app::ports::{Clock, ControlVm, CountAttempt, Ids, TerminationOrder};
use app::settle::SettleStore;
use app::terminate::{Outcome, TerminateError, terminate};
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
        let started = Instant::now();
        let body = record.get("body").and_then(Value::as_str);
        let order = decode(body.unwrap_or_default());
        let outcome = match &order {
            Ok(order) => guarded(one(store, controller, clock, ids, order)).await,
            Err(error) => Err(error.to_string()),
        };
        told(id, record, order.ok().as_ref(), &outcome, started);
        matches!(outcome, Ok(Outcome::NotYet) | Err(_)).then(|| id.clone())
    });
    let failed = futures_util::future::join_all(each).await;
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    Ok(failures(&failed))
}

async fn one(
    store: &(impl SettleStore + CountAttempt),
    controller: &impl ControlVm,
    clock: &impl Clock,
    ids: &impl Ids,
    order: &TerminationOrder,
) -> Result<Outcome, String> {
    let outcome = terminate(store, controller, clock, ids, order).await;
    outcome.map_err(|error| match error {
        TerminateError::Controller(error) => error.to_string(),
        TerminateError::Store(error) => error.for_log(),
    })
}

/// One line for each order, and the count of what came of it.
fn told(
    message_id: &str,
    record: &Value,
    order: Option<&TerminationOrder>,
    outcome: &Result<Outcome, String>,
    started: Instant,
) {
    let name = match outcome {
        Ok(Outcome::Confirmed) => "confirmed",
        Ok(Outcome::NothingToDo) => "nothing_to_do",
        Ok(Outcome::NotCondemned) => "not_condemned",
        Ok(Outcome::NotYet) => "not_yet",
        Err(_) => "failed",
    };
    metrics::TERMINATE_ATTEMPTS.add(1, [name]);
    let attempts = record
        .pointer("/attributes/ApproximateReceiveCount")
        .and_then(Value::as_str)
        .and_then(|count| count.parse::<u64>().ok());
    let reservation = order.and_then(|order| order.reservation.as_ref());
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                outcome = name,
                attempts,
                vm_id = order.map(|order| order.vm.as_str()),
                node_id = order.map(|order| order.node.as_str()),
                reservation_id = reservation.map(domain::ReservationId::as_str),
                version = order.map(|order| order.version.get()),
                duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
                cause = outcome.as_ref().err(),
                message_id,
                "order"
            )
        };
    }
    match outcome {
        Ok(Outcome::Confirmed | Outcome::NothingToDo | Outcome::NotYet) => line!(info),
        // Somebody orders what the state does not say: it is not followed.
        Ok(Outcome::NotCondemned) => line!(error),
        Err(_) => line!(warn),
    }
}
