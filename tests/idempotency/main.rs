//! Calls that may come again: one effect and one answer for each `Idempotency-Key`, whatever
//! happens in between.
mod crashes;
mod repeats;

use http_api::routes::{Operation, ROUTES};
use testkit::events::HttpEvent;
use testkit::fixtures::operator;
use testkit::http::{Answer, Fleet, Platform, secret_of};
use testkit::{MemoryStore, Store, TestClock};

/// The operations that may come again.
fn repeatable() -> Vec<Operation> {
    let routes = ROUTES.iter().filter(|route| route.repeatable);
    routes.map(|route| route.operation).collect()
}

/// The good call of a route under this key, by an operator, who may make all of them.
fn keyed(fleet: &Fleet, operation: Operation, key: &str) -> HttpEvent {
    let event = fleet.call(operation).by(&secret_of(&operator()));
    event.header("Idempotency-Key", key)
}

/// A fleet over the store in memory.
async fn stage() -> (Platform<MemoryStore>, Fleet) {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    (platform, fleet)
}

/// All that a caller sees of an answer but the id of its request.
fn seen(answer: &Answer) -> (u16, String, String) {
    let etag = answer.header("etag").to_owned();
    (answer.status, etag, answer.text.clone())
}

/// Sends a call that must succeed.
async fn good<S: Store + Clone + 'static>(platform: &Platform<S>, event: HttpEvent) -> Answer {
    let answer = platform.call(event).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}
