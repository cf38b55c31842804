//! The binary, run as the Lambda service runs it, with a queue beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::fixtures::spot;
use testkit::logs::embedded;
use testkit::runtime_api::FunctionProcess;
use testkit::services::{QueueServer, Refused};
use testkit::stage::{QUEUE_URL, Stage, assert_connects_at_start, assert_needs};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-sweep");

/// Waits for the numbers of a run that left so many due items.
async fn numbers(function: &FunctionProcess, backlog: u64) -> Value {
    let wanted = |line: &str| embedded(line).is_some_and(|root| root["due_backlog"] == backlog);
    embedded(&function.logged(wanted).await.unwrap()).unwrap()
}

/// The event of a schedule, as the service hands it over.
fn stroke() -> Value {
    serde_json::from_str(include_str!("scheduled.json")).unwrap()
}

#[tokio::test]
async fn it_orders_what_no_event_has_ordered_and_goes_on_after_a_failure() {
    let stage = Stage::set().await;
    stage.release(0..2).await;
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    assert!(stage.seat(&spot("spot-1", 1..2)).await);
    stage.reclaim(0..1).await;
    let queue = QueueServer::start().await.unwrap();
    let mut function = stage.function_with_queue(BINARY, &queue).await;

    queue.refuse(Refused::Message(0));
    let swept = function.invoke(&stroke()).await.unwrap();
    assert_eq!((&swept["failed"], &swept["orders"]), (&json!(1), &json!(0)));
    assert_eq!(queue.taken(), [""; 0]);
    let counted = numbers(&function, 1).await;
    assert_eq!(
        (&counted["drains_open"], &counted["stuck"]),
        (&json!(1), &json!(0))
    );
    assert!(counted["due_lag"].as_f64().unwrap() > 0.0, "{counted}");

    // The mark was left by the first run; the order is due once it has had its time, and the
    // machine's clock is long past that of the stage.
    let swept = function.invoke(&stroke()).await.unwrap();
    let told = (&swept["items"], &swept["draining"], &swept["failed"]);
    assert_eq!(told, (&json!(1), &json!(1), &json!(0)), "{swept}");
    assert_eq!(numbers(&function, 0).await["drains_open"], 1);
    assert_eq!(stage.vm("spot-0").await.status.as_str(), "terminating");
    assert_eq!(stage.vm("spot-1").await.status.as_str(), "running");
}

#[tokio::test]
async fn any_event_is_a_stroke_of_the_clock() {
    let stage = Stage::set().await;
    let queue = QueueServer::start().await.unwrap();
    let mut function = stage.function_with_queue(BINARY, &queue).await;
    for event in [stroke(), json!({}), json!([]), json!("now")] {
        let swept = function.invoke(&event).await.unwrap();
        assert_eq!(swept["failed"], 0, "{event}: {swept}");
        assert_eq!(swept["behind"], false, "{event}: {swept}");
    }
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    let more = [("RELET_QUEUE_URL", QUEUE_URL)];
    for missing in ["RELET_TABLE", "RELET_QUEUE_URL"] {
        assert_needs(BINARY, missing, &more).await;
    }
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_event() {
    let stage = Stage::set().await;
    let more = [("RELET_QUEUE_URL", QUEUE_URL)];
    assert_connects_at_start(&stage, BINARY, &more, &stroke()).await;
}
