//! The stream function: reacts to changes of the table, in order, and stops at the first record it
//! cannot finish, so that nothing is skipped.

use std::sync::Arc;

use app::ports::{Clock, CondemnVm, PutAudit, ReadAudit, SendOrders};
use app::react::{Reaction, react};
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
        match guarded(one(store, orders, clock, record)).await {
            Ok(reaction) => {
                if reaction != Reaction::default() {
                    tracing::info!(
                        sequence_number,
                        orders = reaction.orders,
                        records = reaction.records,
                        gap = reaction.gap,
                        "reaction"
                    );
                }
            }
            Err(cause) => {
                // This record and all after it come again.
                tracing::warn!(sequence_number, cause, "record not finished");
                return Ok(failures(&[sequence_number]));
            }
        }
    }
    Ok(failures(&[]))
}

async fn one(
    store: &(impl CondemnVm + ReadAudit + PutAudit),
    orders: &impl SendOrders,
    clock: &impl Clock,
    record: Value,
) -> Result<Reaction, String> {
    let record: Record = serde_json::from_value(record).map_err(|error| error.to_string())?;
    let Images {
        new_image,
        old_image,
    } = record.dynamodb;
    let change = dynamo::stream::change(old_image, new_image).map_err(|e| e.to_string())?;
    react(store, orders, clock.now(), &change)
        .await
        .map_err(|error| error.to_string())
}
