//! The queue of termination orders: takes messages, hands them to the terminate function as SQS
//! does, and brings back what failed.
//!
//! It keeps its messages in memory. A process that is killed loses them, and no termination with
//! them: the node's agent reads the condemned VMs off the state itself, however they came to be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use app::ports::{Clock as _, Ids as _, SendError, SendOrders, TerminationOrder};
use runtime::{Function, SystemClock, SystemIds};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::data::Data;

/// Most messages of one event.
const BATCH_MAX: usize = 10;
/// Most events that are handled at once.
const CONCURRENCY_MAX: usize = 4;
/// How often a message is handed out before it is given up.
const RECEIVES_MAX: u32 = 10;
/// Longest time that the function may take, which is also how long a message stays hidden
/// meanwhile.
const FUNCTION_MAX: Duration = Duration::from_secs(30);
/// How long a message that failed once stays hidden, at least; twice as long after each further
/// failure.
const HIDDEN_FIRST: Duration = Duration::from_millis(300);
/// The longest time for which one that failed stays hidden, at least.
const HIDDEN_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
struct Message {
    id: String,
    body: String,
    sent_ms: i64,
    receives: u32,
    visible_at: Instant,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    messages: Mutex<Vec<Message>>,
    arrived: Notify,
    data: Arc<Data>,
    /// How long a message stays hidden after its first failure, and at most.
    hidden: (Duration, Duration),
}

impl Queue {
    /// An empty queue that keeps what it gives up in `data`. A VM may take `grace` to stop, during
    /// which its order counts as failed: an order is given up after twice that time at the
    /// earliest.
    #[must_use]
    pub fn new(data: Arc<Data>, grace: Duration) -> Self {
        Self {
            messages: Mutex::default(),
            arrived: Notify::new(),
            data,
            hidden: (HIDDEN_FIRST.max(grace / 200), HIDDEN_MAX.max(grace)),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands messages to `function` until `stop` says true; what is under way is finished first.
    pub async fn run(self: Arc<Self>, function: Function, mut stop: watch::Receiver<bool>) {
        let mut running = JoinSet::new();
        while !*stop.borrow() {
            let batch = match running.len() {
                CONCURRENCY_MAX.. => Vec::new(),
                _ => self.receive(),
            };
            if !batch.is_empty() {
                let (queue, function) = (Arc::clone(&self), function.clone());
                running.spawn(async move { queue.deliver(&function, batch).await });
                continue;
            }
            let free = running.len() < CONCURRENCY_MAX;
            let next = self.locked().iter().map(|message| message.visible_at).min();
            let wake = next.unwrap_or_else(|| Instant::now() + FUNCTION_MAX);
            tokio::select! {
                () = self.arrived.notified(), if free => {}
                () = tokio::time::sleep_until(wake), if free => {}
                Some(_) = running.join_next() => {}
                // An error means that nobody is left to stop it, which ends it as well.
                _ = stop.wait_for(|stopped| *stopped) => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Takes visible messages and hides them.
    fn receive(&self) -> Vec<Message> {
        let now = Instant::now();
        let mut messages = self.locked();
        let visible = messages
            .iter_mut()
            .filter(|message| message.visible_at <= now);
        visible
            .take(BATCH_MAX)
            .map(|message| {
                message.receives += 1;
                message.visible_at = now + FUNCTION_MAX;
                message.clone()
            })
            .collect()
    }

    async fn deliver(&self, function: &Function, batch: Vec<Message>) {
        let invoked = function.invoke(event(&batch));
        let failed = match tokio::time::timeout(FUNCTION_MAX, invoked).await {
            Ok(Ok(reply)) => failures(&reply, &batch),
            Ok(Err(error)) => {
                tracing::warn!(%error, "terminate function failed");
                None
            }
            Err(_) => {
                tracing::warn!("terminate function took too long");
                None
            }
        };
        for message in batch {
            let fails = failed.as_ref().is_none_or(|ids| ids.contains(&message.id));
            if fails && message.receives < RECEIVES_MAX {
                self.hide(&message);
            } else {
                self.locked().retain(|there| there.id != message.id);
                if fails {
                    self.give_up(&message);
                }
            }
        }
        self.arrived.notify_one();
    }

    fn hide(&self, message: &Message) {
        let until = Instant::now() + hidden(self.hidden, message.receives);
        let mut messages = self.locked();
        if let Some(there) = messages.iter_mut().find(|there| there.id == message.id) {
            there.visible_at = until;
        }
    }

    fn give_up(&self, message: &Message) {
        let message_id = &message.id;
        let file = format!("dead-letters/order-{message_id}.json");
        let record = record(message).to_string();
        match self.data.write(&file, record.as_bytes()) {
            Ok(()) => tracing::error!(message_id, file, "order given up"),
            Err(error) => tracing::error!(message_id, %error, record, "order given up"),
        }
    }
}

impl SendOrders for Queue {
    async fn send_orders(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        let bodies: Result<Vec<String>, _> = orders.iter().map(runtime::orders::encode).collect();
        let bodies = bodies.map_err(|error| SendError(error.to_string()))?;
        let sent_ms = SystemClock.now().unix_ms();
        let messages = bodies.into_iter().map(|body| Message {
            id: SystemIds.uuid(),
            body,
            sent_ms,
            receives: 0,
            visible_at: Instant::now(),
        });
        self.locked().extend(messages);
        self.arrived.notify_one();
        Ok(())
    }
}

fn hidden((first, max): (Duration, Duration), receives: u32) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(receives.saturating_sub(1)))
        .min(max)
}

fn event(batch: &[Message]) -> Value {
    json!({ "Records": batch.iter().map(record).collect::<Vec<Value>>() })
}

fn record(message: &Message) -> Value {
    json!({
        "messageId": message.id,
        "receiptHandle": format!("{}#{}", message.id, message.receives),
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": message.receives.to_string(),
            "SentTimestamp": message.sent_ms.to_string(),
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:local:000000000000:orders",
        "awsRegion": "local",
    })
}

/// The messages that a reply calls failed; `None` where it leaves nothing to rely on, so that all
/// of them are.
fn failures(reply: &Value, batch: &[Message]) -> Option<Vec<String>> {
    let each = match reply.get("batchItemFailures") {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(failures) => failures.as_array()?,
    };
    let ids = each.iter().map(|failure| {
        let id = failure.get("itemIdentifier")?.as_str()?;
        let known = batch.iter().any(|message| message.id == id);
        known.then(|| id.to_owned())
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use domain::{NodeId, Version, VmId};

    use super::*;

    fn order(vm: &str) -> TerminationOrder {
        TerminationOrder {
            vm: VmId::parse(vm).unwrap(),
            node: NodeId::parse("n-1").unwrap(),
            reservation: None,
            version: Version::FIRST,
        }
    }

    /// Runs a queue over these VMs until it is empty; returns the batches the function was given,
    /// as the VMs in them, and what was given up.
    async fn run(
        vms: &[&str],
        fails: impl Fn(&str, u32) -> bool + Send + Sync + 'static,
    ) -> (Vec<Vec<String>>, usize) {
        let data = Arc::new(Data::memory());
        let mut queue = Queue::new(Arc::clone(&data), Duration::ZERO);
        queue.hidden = (Duration::ZERO, Duration::ZERO);
        let queue = Arc::new(queue);
        let orders: Vec<TerminationOrder> = vms.iter().map(|vm| order(vm)).collect();
        queue.send_orders(&orders).await.unwrap();
        let seen: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let log = Arc::clone(&seen);
        let function = Function::new("terminate", move |event: Value| {
            let mut failed = Vec::new();
            let mut batch = Vec::new();
            for record in event["Records"].as_array().unwrap() {
                let order = runtime::orders::decode(record["body"].as_str().unwrap()).unwrap();
                let count = &record["attributes"]["ApproximateReceiveCount"];
                if fails(order.vm.as_str(), count.as_str().unwrap().parse().unwrap()) {
                    failed.push(json!({ "itemIdentifier": record["messageId"] }));
                }
                batch.push(order.vm.to_string());
            }
            log.lock().unwrap().push(batch);
            async move { Ok(json!({ "batchItemFailures": failed })) }
        });
        let (stop, stopped) = watch::channel(false);
        let running = tokio::spawn(Arc::clone(&queue).run(function, stopped));
        let drained = async {
            while !queue.locked().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), drained)
            .await
            .unwrap();
        stop.send(true).unwrap();
        running.await.unwrap();
        let seen = seen.lock().unwrap().clone();
        (seen, data.names("dead-letters").unwrap().len())
    }

    #[tokio::test]
    async fn messages_go_out_ten_at_a_time_and_once() {
        let vms: Vec<String> = (0..12).map(|n| format!("vm-{n}")).collect();
        let names: Vec<&str> = vms.iter().map(String::as_str).collect();
        let (seen, given_up) = run(&names, |_, _| false).await;
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [10, 2]);
        let mut all: Vec<String> = seen.concat();
        all.sort();
        let mut expected = vms;
        expected.sort();
        assert_eq!((all, given_up), (expected, 0));
    }

    #[tokio::test]
    async fn only_what_failed_comes_again() {
        let (seen, given_up) = run(&["a", "b"], |vm, count| vm == "b" && count < 3).await;
        let expected = [vec!["a", "b"], vec!["b"], vec!["b"]];
        assert_eq!(
            (seen, given_up),
            (
                expected
                    .map(|b| b.iter().map(|v| (*v).to_owned()).collect())
                    .to_vec(),
                0
            )
        );
    }

    #[tokio::test]
    async fn an_order_that_fails_for_good_is_kept() {
        let (seen, given_up) = run(&["a"], |_, _| true).await;
        assert_eq!((seen.len(), given_up), (10, 1));
    }

    #[test]
    fn a_reply_that_names_no_message_of_the_batch_fails_all_of_it() {
        let batch = [Message {
            id: "m-1".to_owned(),
            body: String::new(),
            sent_ms: 0,
            receives: 1,
            visible_at: Instant::now(),
        }];
        let reply = |id: Value| json!({ "batchItemFailures": [{ "itemIdentifier": id }] });
        assert_eq!(failures(&json!({}), &batch), Some(Vec::new()));
        assert_eq!(
            failures(&reply(json!("m-1")), &batch),
            Some(vec!["m-1".to_owned()])
        );
        for odd in [json!(""), json!("m-2"), json!(null)] {
            assert_eq!(failures(&reply(odd.clone()), &batch), None, "{odd}");
        }
    }

    #[test]
    fn messages_stay_hidden_longer_each_time() {
        let bounds = (HIDDEN_FIRST, HIDDEN_MAX);
        let ms: Vec<u128> = (1..7).map(|n| hidden(bounds, n).as_millis()).collect();
        assert_eq!(ms, [300, 600, 1_200, 2_400, 4_800, 5_000]);
    }

    #[test]
    fn an_order_is_kept_while_its_vm_may_take_to_stop() {
        for seconds in [0, 2, 30, 600] {
            let grace = Duration::from_secs(seconds);
            let queue = Queue::new(Arc::new(Data::memory()), grace);
            let kept: Duration = (1..RECEIVES_MAX).map(|n| hidden(queue.hidden, n)).sum();
            assert!(kept >= grace * 2, "{kept:?} for a grace of {grace:?}");
        }
    }
}
