//! The stream function: reacts to changes of the table, in order, and stops at the first record it
//! cannot finish, so that nothing is skipped.

use std::sync::Arc;
use std::time::Instant;

use app::ports::{Clock, CondemnVm, PutAudit, ReadAudit, SendOrders};
use app::react::{Change, Reaction, react};
use domain::Timestamp;
use serde::Deserialize;
use serde_dynamo::Item;
use serde_json::Value;

use crate::batch::{failures, guarded, identifier, records};
use crate::function::{Function, FunctionError};

/// Where a record has its sequence number.
const SEQUENCE_NUMBER: &str = "/dynamodb/SequenceNumber";

/// What is needed of a record. Everything else may be missing or of any form.
#[derive(Debug, Deserialize)]
struct Record {
    dynamodb: Images,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Images {
    /// In seconds since 1970, in whole ones.
    #[serde(default)]
    approximate_creation_date_time: Value,
    #[serde(default)]
    new_image: Item,
    #[serde(default)]
    old_image: Item,
}

/// The function over these ports.
pub fn function<S, Q, C>(store: Arc<S>, orders: Arc<Q>, clock: C) -> Function
where
    S: CondemnVm + ReadAudit + PutAudit + 'static,
    Q: SendOrders + 'static,
    C: Clock + Clone,
{
    Function::new("stream", move |event| {
        let (store, orders, clock) = (Arc::clone(&store), Arc::clone(&orders), clock.clone());
        async move { handle(&*store, &*orders, &clock, event).await }
    })
}

async fn handle(
    store: &(impl CondemnVm + ReadAudit + PutAudit),
    orders: &impl SendOrders,
    clock: &impl Clock,
    event: Value,
) -> Result<Value, FunctionError> {
    for record in records(event)? {
        let sequence_number = identifier(&record, SEQUENCE_NUMBER)?;
        let started = Instant::now();
        match guarded(one(store, orders, clock, record)).await {
            Ok(done) => told(&sequence_number, &done, started),
            Err(cause) => {
                // This record and all after it come again.
                tracing::warn!(sequence_number, cause, "record not finished");
                return Ok(failures(&[sequence_number]));
            }
        }
    }
    Ok(failures(&[]))
}

/// A change with what followed from it.
struct Done {
    change: Change,
    reaction: Reaction,
    /// How long after the change it was taken up, in milliseconds.
    age_ms: Option<i64>,
}

async fn one(
    store: &(impl CondemnVm + ReadAudit + PutAudit),
    orders: &impl SendOrders,
    clock: &impl Clock,
    record: Value,
) -> Result<Done, String> {
    // What a parser says may quote what it has read, and that may be a caller's words.
    let record: Record = serde_json::from_value(record)
        .map_err(|error| format!("not a record of a stream: {:?}", error.classify()))?;
    let now = clock.now();
    let images = record.dynamodb;
    let age_ms = age_ms(&images.approximate_creation_date_time, now);
    if let Some(age_ms) = age_ms {
        metrics::STREAM_AGE.observe_ms(age_ms);
    }
    let change = dynamo::stream::change(images.old_image, images.new_image);
    let change = change.map_err(|error| error.to_string())?;
    let reaction = react(store, orders, now, &change).await;
    Ok(Done {
        reaction: reaction.map_err(|error| error.to_string())?,
        change,
        age_ms,
    })
}

/// How long ago an instant was that is given in seconds since 1970.
fn age_ms(created_at: &Value, now: Timestamp) -> Option<i64> {
    let seconds = created_at.as_f64().filter(|seconds| *seconds > 0.0)?;
    // A conversion of this kind saturates.
    Some(
        now.unix_ms()
            .saturating_sub((seconds * 1_000.0) as i64)
            .max(0),
    )
}

/// One line for a record that something followed from; for others only where one looks closer.
fn told(sequence_number: &str, done: &Done, started: Instant) {
    let (node_id, reservation_id, version, request_id) = match &done.change {
        Change::Reservation { new, .. } => (
            Some(&new.node),
            Some(&new.id),
            Some(new.version.get()),
            Some(&new.last_action.request_id),
        ),
        Change::Node { new, .. } => (Some(&new.id), None, Some(new.version.get()), None),
        Change::Other => (None, None, None, None),
    };
    let reaction = &done.reaction;
    let vm_ids: Vec<&str> = reaction.vms.iter().map(domain::VmId::as_str).collect();
    let vm_ids = (!vm_ids.is_empty()).then(|| vm_ids.join(","));
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                request_id,
                node_id = node_id.map(domain::NodeId::as_str),
                reservation_id = reservation_id.map(domain::ReservationId::as_str),
                version,
                orders = reaction.orders,
                records = reaction.records,
                gap = reaction.gap,
                vm_ids,
                age_ms = done.age_ms,
                duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
                sequence_number,
                "reaction"
            )
        };
    }
    if *reaction == Reaction::default() {
        line!(debug);
    } else {
        line!(info);
    }
}
