//! Termination orders on their way: as queue messages, and the queue they are sent to.

use app::ports::{SendError, SendOrders, TerminationOrder};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use domain::{NodeId, ReservationId, Version, VmId};
use serde::{Deserialize, Serialize};

/// Most messages of one batch call to the queue.
const BATCH_MAX: usize = 10;

/// An order as a message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    vm_id: VmId,
    node_id: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation_id: Option<ReservationId>,
    version: u64,
}

/// A message that is no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a termination order: {0}")]
pub struct BadOrder(String);

/// The message of an order.
///
/// # Errors
/// [`BadOrder`] if it cannot be written as JSON, which its types exclude.
pub fn encode(order: &TerminationOrder) -> Result<String, BadOrder> {
    let message = Message {
        vm_id: order.vm.clone(),
        node_id: order.node.clone(),
        reservation_id: order.reservation.clone(),
        version: order.version.get(),
    };
    serde_json::to_string(&message).map_err(|error| BadOrder(error.to_string()))
}

/// The order of a message.
///
/// # Errors
/// [`BadOrder`] says why it is none.
pub fn decode(text: &str) -> Result<TerminationOrder, BadOrder> {
    let message: Message =
        serde_json::from_str(text).map_err(|error| BadOrder(error.to_string()))?;
    let version = Version::stored(message.version);
    Ok(TerminationOrder {
        vm: message.vm_id,
        node: message.node_id,
        reservation: message.reservation_id,
        version: version.ok_or_else(|| BadOrder("version 0".to_owned()))?,
    })
}

/// The queue of termination orders in SQS.
#[derive(Debug, Clone)]
pub struct SqsOrders {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

impl SqsOrders {
    /// The queue at this URL, reached by these settings.
    #[must_use]
    pub fn connect(settings: &aws_config::SdkConfig, queue_url: String) -> Self {
        Self {
            client: aws_sdk_sqs::Client::new(settings),
            queue_url,
        }
    }

    async fn send(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        let failed = |text: String| SendError(text);
        let mut batch = self.client.send_message_batch().queue_url(&self.queue_url);
        for (place, order) in orders.iter().enumerate() {
            let body = encode(order).map_err(|error| failed(error.to_string()))?;
            let entry = SendMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .message_body(body)
                .build()
                .map_err(|error| failed(error.to_string()))?;
            batch = batch.entries(entry);
        }
        let reply = batch.send().await;
        let reply = reply.map_err(|error| failed(error.into_service_error().to_string()))?;
        // The call answers 200 even where it did not take every message.
        match reply.failed() {
            [] => Ok(()),
            [first, ..] => Err(failed(format!(
                "{} of {} messages, the first with {}",
                reply.failed().len(),
                orders.len(),
                first.code()
            ))),
        }
    }
}

impl SendOrders for SqsOrders {
    async fn send_orders(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        for batch in orders.chunks(BATCH_MAX) {
            self.send(batch).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_its_message() {
        for reservation in [None, Some(ReservationId::parse("r-1").unwrap())] {
            let order = TerminationOrder {
                vm: VmId::parse("vm-1").unwrap(),
                node: NodeId::parse("n-1").unwrap(),
                reservation,
                version: Version::FIRST.next(),
            };
            assert_eq!(decode(&encode(&order).unwrap()), Ok(order));
        }
    }

    #[test]
    fn a_message_that_is_no_order_is_refused() {
        for bad in [
            "",
            "{}",
            "{\"vmId\":\"v\",\"nodeId\":\"n\",\"version\":0}",
            "[1]",
        ] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}
