//! Function binaries on the stage, and what all of them owe.

use std::path::Path;

use domain::Caller;
use serde_json::{Value, json};

use super::{Stage, key_of};
use crate::door::Door;
use crate::engine::{Engine, TABLE};
use crate::runtime_api::{Failure, FunctionProcess};
use crate::services::QueueServer;

/// The URL of the queue of orders, as functions are told it.
pub const QUEUE_URL: &str = "https://sqs.eu-central-1.amazonaws.com/000000000000/terminations";

impl Stage {
    /// Starts a function's binary against the engine, with this server as its queue of orders.
    ///
    /// # Panics
    /// If it cannot be started: then no test can run.
    pub async fn function_with_queue(&self, binary: &str, queue: &QueueServer) -> FunctionProcess {
        let endpoint = queue.endpoint();
        let more = [
            ("RELET_QUEUE_URL", QUEUE_URL),
            ("AWS_ENDPOINT_URL_SQS", endpoint.as_str()),
        ];
        self.function(binary, &more).await
    }

    /// Starts a function's binary against the engine, with these variables over the usual ones.
    ///
    /// # Panics
    /// If it cannot be started: then no test can run.
    pub async fn function(&self, binary: &str, more: &[(&str, &str)]) -> FunctionProcess {
        started(binary, self.engine().endpoint(), more).await
    }
}

/// What every function needs, and every HTTP function beside it.
fn usual_env(engine: &str) -> [(&str, &str); 3] {
    [
        ("AWS_ENDPOINT_URL_DYNAMODB", engine),
        ("RELET_TABLE", TABLE),
        ("RELET_CURSOR_SECRET", "sixteen characters or more"),
    ]
}

/// A recorded event of API Gateway as a call by this caller. Records hold no key.
#[must_use]
pub fn recorded(event: &str, by: &Caller) -> Value {
    let event: Result<Value, _> = serde_json::from_str(event);
    let mut event = event.unwrap_or_else(|error| unreachable!("a record is JSON: {error}"));
    event["headers"]["authorization"] = json!(format!("Bearer {}", key_of(by).reveal()));
    event
}

/// Hands the function events that are none. Each must be failed as such, by the process that goes
/// on; the next good event shows that it does.
pub async fn assert_outlives_bad_events(function: &mut FunctionProcess) {
    let pid = function.pid();
    for bad in [
        "",
        "{",
        "[]",
        "7",
        "{\"version\":\"2.0\"}",
        "{\"Records\":{}}",
    ] {
        let answer = function.invoke_text(bad.to_owned()).await;
        assert!(
            matches!(answer, Err(Failure::Function { .. })),
            "{bad:?} is no event: {answer:?}"
        );
    }
    assert_eq!(function.pid(), pid);
}

/// Starts a binary with the usual variables and `more`, but without `missing`. It must end before
/// it has taken an event, and what it says must name the variable.
///
/// # Panics
/// If it does not end: then it has started without what it needs.
pub async fn assert_needs(binary: &str, missing: &str, more: &[(&str, &str)]) {
    let engine = Engine::start().await;
    let mut env = [usual_env(engine.endpoint()).as_slice(), more].concat();
    env.retain(|(name, _)| *name != missing);
    let said = last_words(binary, &env).await;
    assert!(
        said.contains(missing) && said.contains("is not set"),
        "{said}"
    );
}

/// What a binary says that ends before it has taken an event.
async fn last_words(binary: &str, env: &[(&str, &str)]) -> String {
    let started = FunctionProcess::start(Path::new(binary), env).await;
    let mut function = started.unwrap_or_else(|error| unreachable!("{binary}: {error}"));
    match function.invoke(&json!({})).await {
        Err(Failure::Exited(text) | Failure::Init(text)) => text,
        answer => unreachable!("it has started: {answer:?}"),
    }
}

/// A function's process has its connection to the store before its first event, and handles that
/// over the same one; and it starts where there is no store to be reached, or none that answers.
///
/// # Panics
/// If it does not: then every first call pays for the connection.
pub async fn assert_connects_at_start(
    stage: &Stage,
    binary: &str,
    more: &[(&str, &str)],
    event: &Value,
) {
    let server = stage.engine().endpoint().trim_start_matches("http://");
    let door = done(Door::to(Some(server.to_owned())).await);
    let mut function = started(binary, &door.url(), more).await;
    assert!(
        door.entered().await,
        "nobody has come before the first event"
    );
    let answer = function.invoke(event).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(door.connections(), 1, "opened before the first event");

    let nobody = "http://127.0.0.1:9".to_owned();
    let silent = done(Door::to(None).await);
    for without in [nobody, silent.url()] {
        let mut function = started(binary, &without, more).await;
        let answer = function.invoke(&json!({ "no": "event" })).await;
        let said = "it takes events all the same";
        assert!(
            !matches!(answer, Err(Failure::Init(_) | Failure::Exited(_))),
            "{said}"
        );
        assert!(!matches!(answer, Err(Failure::TimedOut)), "{said}");
    }
}

fn done<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| unreachable!("no port: {error}"))
}

/// Starts a binary with a store at this address.
async fn started(binary: &str, store: &str, more: &[(&str, &str)]) -> FunctionProcess {
    let env = [usual_env(store).as_slice(), more].concat();
    let started = FunctionProcess::start(Path::new(binary), &env).await;
    started.unwrap_or_else(|error| unreachable!("{binary} cannot be run: {error}"))
}

/// An HTTP function's binary needs each of its variables, with a value that makes sense.
pub async fn assert_http_init(binary: &str) {
    for missing in ["RELET_TABLE", "RELET_CURSOR_SECRET"] {
        assert_needs(binary, missing, &[]).await;
    }
    let engine = Engine::start().await;
    for (name, wrong) in [
        ("RELET_CURSOR_SECRET", "too short"),
        ("RELET_KEY_TTL_MS", "5 s"),
        ("RELET_METRICS_NAMESPACE", "two words"),
    ] {
        let env = [usual_env(engine.endpoint()).as_slice(), &[(name, wrong)]].concat();
        let said = last_words(binary, &env).await;
        assert!(said.contains(name) && !said.contains(wrong), "{said}");
    }
}
