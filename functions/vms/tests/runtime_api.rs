//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{body, status};
use testkit::fixtures::{audience, stranger, unit};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-vms");
const CREATE: &str = include_str!("create.json");

#[tokio::test]
async fn it_places_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    let mut function = stage.function(BINARY, &[]).await;

    let early = function.invoke(&recorded(CREATE, &stranger())).await;
    let early = early.unwrap();
    let no_capacity = json!("insufficient_capacity");
    assert_eq!((status(&early), &body(&early)["code"]), (409, &no_capacity));
    let other = function.invoke(&recorded(CREATE, &audience())).await;
    let other = other.unwrap();
    assert_eq!(
        (status(&other), &body(&other)["code"]),
        (403, &json!("forbidden"))
    );
    assert!(stage.reservation().await.slots[&unit(0)].occupant.is_none());

    assert_outlives_bad_events(&mut function).await;

    stage.release(0..1).await;
    let placed = function.invoke(&recorded(CREATE, &stranger())).await;
    let placed = placed.unwrap();
    assert_eq!(
        (status(&placed), &body(&placed)["status"]),
        (200, &json!("running"))
    );
    let vm = stage.vm(body(&placed)["id"].as_str().unwrap()).await;
    assert_eq!((vm.name.as_str(), vm.tier.as_str()), ("batch job", "spot"));
    let taken = function.invoke(&recorded(CREATE, &stranger())).await;
    let taken = taken.unwrap();
    assert_eq!((status(&taken), &body(&taken)["code"]), (409, &no_capacity));
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(CREATE, &stranger()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
