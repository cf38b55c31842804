//! A queue that speaks the one call of SQS that the product makes: `SendMessageBatch`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};

use super::Server;
use crate::doubles::lock;

/// What the queue does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The message in this place of a batch; the call itself is answered with 200.
    Message(usize),
    /// The whole call, with this status.
    Call(u16),
}

#[derive(Debug, Default)]
struct Queue {
    taken: Vec<String>,
    refusals: VecDeque<Refused>,
    calls: usize,
}

type Answer = (StatusCode, [(&'static str, &'static str); 1], String);

/// The queue. It stops when it is dropped.
#[derive(Debug)]
pub struct QueueServer {
    server: Server,
    queue: Arc<Mutex<Queue>>,
}

impl QueueServer {
    /// Starts it.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        let queue: Arc<Mutex<Queue>> = Arc::default();
        let router = Router::new()
            .route("/", post(send_message_batch))
            .with_state(Arc::clone(&queue));
        let server = Server::start(router).await?;
        Ok(Self { server, queue })
    }

    /// The value of `AWS_ENDPOINT_URL_SQS`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.url()
    }

    /// The URL of the queue.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/000000000000/terminations", self.server.url())
    }

    /// Refuses this in the next call; refusals of one call each, in the order given.
    pub fn refuse(&self, refused: Refused) {
        lock(&self.queue).refusals.push_back(refused);
    }

    /// The bodies of the messages that it took, in order.
    #[must_use]
    pub fn taken(&self) -> Vec<String> {
        lock(&self.queue).taken.clone()
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> usize {
        lock(&self.queue).calls
    }
}

async fn send_message_batch(
    State(queue): State<Arc<Mutex<Queue>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let mut queue = lock(&queue);
    queue.calls += 1;
    let target = headers.get("x-amz-target").map(|value| value.as_bytes());
    if target != Some(b"AmazonSQS.SendMessageBatch") {
        return error(400, "AmazonSQS#UnsupportedOperation");
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let entries = request["Entries"].as_array().cloned().unwrap_or_default();
    let names: BTreeMap<&str, ()> = entries
        .iter()
        .filter_map(|entry| Some((entry["Id"].as_str()?, ())))
        .collect();
    if entries.is_empty() || entries.len() > 10 || names.len() != entries.len() {
        return error(400, "AmazonSQS#BatchEntryIdsNotDistinct");
    }
    let refused = queue.refusals.pop_front();
    if let Some(Refused::Call(status)) = refused {
        return error(status, "AmazonSQS#ServiceUnavailable");
    }
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (place, entry) in entries.iter().enumerate() {
        let id = &entry["Id"];
        if refused == Some(Refused::Message(place)) {
            failed.push(json!({ "Id": id, "SenderFault": false, "Code": "InternalError" }));
            continue;
        }
        let text = entry["MessageBody"].as_str().unwrap_or_default();
        queue.taken.push(text.to_owned());
        successful.push(json!({
            "Id": id,
            "MessageId": format!("message-{}", queue.taken.len()),
            "MD5OfMessageBody": "00000000000000000000000000000000",
        }));
    }
    let reply = json!({ "Successful": successful, "Failed": failed });
    (StatusCode::OK, CONTENT_TYPE, reply.to_string())
}

const CONTENT_TYPE: [(&str, &str); 1] = [("content-type", "application/x-amz-json-1.0")];

fn error(status: u16, kind: &str) -> Answer {
    let body = json!({ "__type": format!("com.amazonaws.sqs#{kind}"), "message": "refused" });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, CONTENT_TYPE, body.to_string())
}
