//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{body, status};
use testkit::fixtures::{audience, owner, stranger};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-reservations");
const CREATE: &str = include_str!("create.json");
const GET: &str = include_str!("get.json");

#[tokio::test]
async fn it_creates_and_shows_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    let mut function = stage.function(BINARY, &[]).await;

    let shown = function.invoke(&recorded(GET, &audience())).await.unwrap();
    assert_eq!(
        (status(&shown), &body(&shown)["id"]),
        (200, &json!("res-1")),
        "{shown}"
    );
    let hidden = function.invoke(&recorded(GET, &stranger())).await.unwrap();
    assert_eq!(
        (status(&hidden), &body(&hidden)["code"]),
        (404, &json!("not_found"))
    );

    assert_outlives_bad_events(&mut function).await;

    let made = function.invoke(&recorded(CREATE, &owner())).await.unwrap();
    assert_eq!(status(&made), 200, "{made}");
    assert_eq!(body(&made)["reservedUnitIds"], json!(["u04", "u05"]));
    assert_eq!(body(&made)["status"], "active");
    let held = function.invoke(&recorded(CREATE, &owner())).await.unwrap();
    assert_eq!(
        (status(&held), &body(&held)["code"]),
        (409, &json!("units_already_reserved"))
    );
    assert_eq!(stage.node().await.bookings.len(), 2);
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(GET, &audience()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
