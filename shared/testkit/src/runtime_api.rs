//! A small server of the Lambda runtime API, and function binaries that run against it for real.
//!
//! The server speaks the four calls that a function makes: ask for the next invocation, answer it,
//! fail it, and report that it could not start. [`FunctionProcess`] starts a binary with the
//! environment that the service would give it and hands it one event after another.

mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::doubles::lock;
pub use process::FunctionProcess;

/// Longest time that an answer is waited for, in milliseconds.
pub const INVOKE_MS_MAX: u64 = 20_000;

/// The name under which a function runs here.
pub const FUNCTION_NAME: &str = "function-under-test";

/// Why an invocation brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The function failed this invocation.
    Function {
        /// Its name for the kind of failure.
        kind: String,
        /// What it says of it.
        message: String,
    },
    /// The function could not start; this is the body of its report.
    Init(String),
    /// The process ended; this is what it left behind.
    Exited(String),
    /// No answer came in time.
    TimedOut,
}

/// An event on its way to the function.
struct Invocation {
    id: String,
    event: Bytes,
}

type Reply = Result<Value, Failure>;

struct Shared {
    queued: AsyncMutex<mpsc::UnboundedReceiver<Invocation>>,
    open: Mutex<BTreeMap<String, oneshot::Sender<Reply>>>,
    failed_to_start: watch::Sender<Option<String>>,
}

/// The server, on a free port of 127.0.0.1. It stops when it is dropped.
#[derive(Debug)]
pub struct RuntimeApi {
    address: SocketAddr,
    queue: mpsc::UnboundedSender<Invocation>,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
    count: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({} open)", lock(&self.open).len())
    }
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Invocation({})", self.id)
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl RuntimeApi {
    /// Starts the server.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (queue, queued) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            queued: AsyncMutex::new(queued),
            open: Mutex::default(),
            failed_to_start: watch::Sender::new(None),
        });
        let router = router(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // An error here ends the server; every invocation then runs out of time.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            queue,
            shared,
            server,
            count: 0,
        })
    }

    /// Where it listens: the value of `AWS_LAMBDA_RUNTIME_API`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hands the event to whoever asks for the next invocation, and waits for the answer.
    ///
    /// # Errors
    /// [`Failure`] if the function failed, could not start, or did not answer within `wait`.
    pub async fn invoke(&mut self, event: &Value, wait: Duration) -> Result<Value, Failure> {
        self.invoke_text(event.to_string(), wait).await
    }

    /// As [`Self::invoke`], with an event that need not be JSON.
    ///
    /// # Errors
    /// As [`Self::invoke`].
    pub async fn invoke_text(&mut self, event: String, wait: Duration) -> Result<Value, Failure> {
        self.count += 1;
        let id = format!("00000000-0000-7000-8000-{:012x}", self.count);
        let (answer, answered) = oneshot::channel();
        lock(&self.shared.open).insert(id.clone(), answer);
        let invocation = Invocation {
            id: id.clone(),
            event: Bytes::from(event),
        };
        // The other end lives as long as the server does.
        let _ = self.queue.send(invocation);
        let mut failed = self.shared.failed_to_start.subscribe();
        let reply = async {
            tokio::select! {
                reply = answered => reply.unwrap_or(Err(Failure::TimedOut)),
                report = failed.wait_for(Option::is_some) => {
                    let text = report.ok().and_then(|text| text.clone());
                    Err(Failure::Init(text.unwrap_or_default()))
                }
            }
        };
        let reply = tokio::time::timeout(wait, reply).await;
        lock(&self.shared.open).remove(&id);
        reply.unwrap_or(Err(Failure::TimedOut))
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route(
            "/2018-06-01/runtime/invocation/{id}/response",
            post(response),
        )
        .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .with_state(shared)
}

async fn next(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let invocation = shared.queued.lock().await.recv().await;
    let Some(invocation) = invocation else {
        return status(StatusCode::GONE);
    };
    let arn = format!("arn:aws:lambda:eu-central-1:000000000000:function:{FUNCTION_NAME}");
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("Lambda-Runtime-Aws-Request-Id", &invocation.id)
        .header("Lambda-Runtime-Deadline-Ms", deadline_ms())
        .header("Lambda-Runtime-Invoked-Function-Arn", arn)
        .header(
            "Lambda-Runtime-Trace-Id",
            "Root=1-00000000-000000000000000000000000",
        )
        .body(Body::from(invocation.event));
    response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

/// Until when the function may work on an invocation, in milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the function's process compares this with the real clock"
)]
fn deadline_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    now_ms + INVOKE_MS_MAX
}

async fn response(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let reply = serde_json::from_slice(&body).map_err(|error| Failure::Function {
        kind: "NotJson".to_owned(),
        message: error.to_string(),
    });
    close(&shared, &id, reply)
}

async fn error(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let report: Value = serde_json::from_slice(&body).unwrap_or_default();
    let field = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
    let failure = Failure::Function {
        kind: field("errorType"),
        message: field("errorMessage"),
    };
    close(&shared, &id, Err(failure))
}

async fn init_error(State(shared): State<Arc<Shared>>, body: Bytes) -> Response<Body> {
    let text = String::from_utf8_lossy(&body).into_owned();
    shared.failed_to_start.send_replace(Some(text));
    status(StatusCode::ACCEPTED)
}

/// Hands the reply to whoever waits for it.
fn close(shared: &Shared, id: &str, reply: Reply) -> Response<Body> {
    match lock(&shared.open).remove(id) {
        Some(waiting) => {
            // Whoever gave up waiting needs no answer.
            let _ = waiting.send(reply);
            status(StatusCode::ACCEPTED)
        }
        None => status(StatusCode::BAD_REQUEST),
    }
}

fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::from("{}"));
    *response.status_mut() = code;
    response
}
