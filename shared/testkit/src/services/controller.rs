//! A VM controller that answers HTTP calls by script and keeps what it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};

use super::Server;
use crate::doubles::lock;

/// One call, as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerCall {
    /// The VM of its path.
    pub vm: String,
    /// Its signature header; empty if it has none.
    pub signature: String,
    /// Its body.
    pub body: String,
}

impl ControllerCall {
    /// A text field of the body; empty if there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body[name].as_str().unwrap_or_default().to_owned()
    }
}

/// How it answers one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// With this status and without a body.
    Status(u16),
    /// With 200 and this state.
    State(&'static str),
    /// Not before this time is over, then with 200 and `gone`.
    After(Duration),
}

#[derive(Debug, Default)]
struct Calls {
    seen: Vec<ControllerCall>,
    scripts: BTreeMap<String, VecDeque<Script>>,
}

/// The controller. It stops when it is dropped.
#[derive(Debug)]
pub struct ControllerServer {
    server: Server,
    calls: Arc<Mutex<Calls>>,
}

impl ControllerServer {
    /// Starts it. Without a script it says `gone`.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        let calls: Arc<Mutex<Calls>> = Arc::default();
        let router = Router::new()
            .route("/v1/vms/{vm}/terminate", post(terminate))
            .with_state(Arc::clone(&calls));
        let server = Server::start(router).await?;
        Ok(Self { server, calls })
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Sets the answers to the next calls for a VM; after them it says `gone`.
    pub fn script(&self, vm: &str, answers: &[Script]) {
        let answers = answers.iter().copied().collect();
        lock(&self.calls).scripts.insert(vm.to_owned(), answers);
    }

    /// The calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<ControllerCall> {
        lock(&self.calls).seen.clone()
    }
}

async fn terminate(
    State(calls): State<Arc<Mutex<Calls>>>,
    Path(vm): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let answer = {
        let mut calls = lock(&calls);
        let signature = headers.get("x-relet-signature");
        let signature = signature.and_then(|value| value.to_str().ok());
        calls.seen.push(ControllerCall {
            vm: vm.clone(),
            signature: signature.unwrap_or_default().to_owned(),
            body: String::from_utf8_lossy(&body).into_owned(),
        });
        calls.scripts.get_mut(&vm).and_then(VecDeque::pop_front)
    };
    let state = |state: &str| (StatusCode::OK, json!({ "state": state }).to_string());
    match answer {
        None => state("gone"),
        Some(Script::State(text)) => state(text),
        Some(Script::After(wait)) => {
            tokio::time::sleep(wait).await;
            state("gone")
        }
        Some(Script::Status(status)) => {
            let status = StatusCode::from_u16(status);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, String::new())
        }
    }
}
