//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{body, status};
use testkit::fixtures::{manager, operator};
use testkit::stage::{
    Stage, UNITS, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-end");
const END: &str = include_str!("end.json");

#[tokio::test]
async fn it_ends_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    let before = stage.reservation().await;
    let mut function = stage.function(BINARY, &[]).await;

    let refused = function.invoke(&recorded(END, &manager())).await.unwrap();
    assert_eq!(
        (status(&refused), &body(&refused)["code"]),
        (404, &json!("not_found"))
    );
    assert_eq!(stage.reservation().await, before);

    assert_outlives_bad_events(&mut function).await;

    let done = function.invoke(&recorded(END, &operator())).await.unwrap();
    assert_eq!(status(&done), 200, "{done}");
    assert_eq!(body(&done)["status"], "cancelled");
    assert_eq!(
        stage.node().await.slots.len(),
        UNITS,
        "every unit is back in the pool"
    );

    let again = function.invoke(&recorded(END, &operator())).await.unwrap();
    assert_eq!((status(&again), body(&again)), (200, body(&done)));
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(END, &operator()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
