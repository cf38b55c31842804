//! Bad input: whatever is wrong with a request, the answer says what and what would be right,
//! nothing has changed, and it is never a 500.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod fields;
mod mutations;
mod requests;

use http_api::routes::{Operation, ROUTES, Route};
use serde_json::Value;
use testkit::events::HttpEvent;
use testkit::fixtures::operator;
use testkit::http::{Answer, Fleet, Platform, secret_of};
use testkit::{MemoryStore, TestClock, World};

/// Longest sentence of an error, in characters: what a caller sent comes back only in part.
const SENTENCE_CHARS_MAX: usize = 600;

/// A fleet on which bad calls are made. They change nothing, so it serves for all of them.
struct Stage {
    platform: Platform<MemoryStore>,
    fleet: Fleet,
    world: World,
}

impl Stage {
    async fn set() -> Self {
        let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
        let fleet = Fleet::build(&platform).await;
        let world = platform.store.world();
        Self {
            platform,
            fleet,
            world,
        }
    }

    /// The good call of a route by an operator, who may make all of them.
    fn good(&self, operation: Operation) -> HttpEvent {
        self.fleet.call(operation).by(&secret_of(&operator()))
    }

    /// The good call of a route at this place of the path's query, or with more headers.
    fn event(&self, operation: Operation) -> Value {
        self.good(operation).build()
    }

    /// Sends a call that must be refused so, with a sentence that has these words in it.
    async fn refused(&self, event: Value, (status, code): (u16, &str), words: &[&str]) -> Answer {
        let what = event["body"].to_string();
        let what: String = what.chars().take(200).collect();
        let what = format!("{} {what}", event["rawPath"]);
        let answer = self.platform.send(event).await;
        let got = (answer.status, answer.code());
        assert_eq!(got, (status, code.to_owned()), "{what}: {answer:?}");
        self.assert_refusal(&answer, &what);
        let sentence = answer.field("error");
        for word in words {
            assert!(sentence.contains(word), "{what}: {word:?} in {sentence:?}");
        }
        answer
    }

    /// Checks the envelope, and that nothing has changed.
    fn assert_refusal(&self, answer: &Answer, what: &str) {
        assert!((400..500).contains(&answer.status), "{what}: {answer:?}");
        assert_envelope(answer, what);
        assert!(self.platform.store.world() == self.world, "{what}: changed");
    }

    /// Makes the world what it was.
    fn restore(&self) {
        let world = self.world.clone();
        self.platform.store.tamper(|there| *there = world);
    }
}

fn assert_envelope(answer: &Answer, what: &str) {
    let body = answer.json();
    let names: Vec<&str> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected: &[&str] = match answer.status {
        412 => &["code", "current", "error", "requestId"],
        _ => &["code", "error", "requestId"],
    };
    assert_eq!(names, expected, "{what}");
    assert_eq!(answer.header("content-type"), "application/json", "{what}");
    assert_eq!(
        answer.field("requestId"),
        answer.header("x-request-id"),
        "{what}"
    );
    let sentence = answer.field("error");
    assert!(
        sentence.chars().count() <= SENTENCE_CHARS_MAX,
        "{what}: {sentence}"
    );
    assert!(!sentence.is_empty(), "{what}");
}

fn route(operation: Operation) -> &'static Route {
    let mut routes = ROUTES.iter();
    routes.find(|route| route.operation == operation).unwrap()
}

/// The event with this query.
fn with_query(mut event: Value, query: &str) -> Value {
    event["rawQueryString"] = Value::from(query);
    event
}

/// The event with this header.
fn with_header(mut event: Value, name: &str, value: &str) -> Value {
    event["headers"][name] = Value::from(value);
    event
}

const BAD: (u16, &str) = (400, "bad_request");
