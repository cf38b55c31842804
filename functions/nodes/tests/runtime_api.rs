//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{HttpEvent, body, status};
use testkit::fixtures::{owner, spot, stranger};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, key_of, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-nodes");
const CONFIRM: &str = include_str!("confirm.json");
const TERMINATIONS: &str = include_str!("terminations.json");

#[tokio::test]
async fn it_lists_and_confirms_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    stage.release(0..1).await;
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    let mut function = stage.function(BINARY, &[]).await;

    let alive = function.invoke(&recorded(CONFIRM, &owner())).await.unwrap();
    assert_eq!(
        (status(&alive), &body(&alive)["code"]),
        (409, &json!("vm_not_condemned"))
    );
    stage.reclaim(0..1).await;
    let hidden = function.invoke(&recorded(TERMINATIONS, &stranger())).await;
    assert_eq!(status(&hidden.unwrap()), 404);
    let listed = function
        .invoke(&recorded(TERMINATIONS, &owner()))
        .await
        .unwrap();
    assert_eq!(body(&listed)["items"][0]["vmId"], "spot-0", "{listed}");

    assert_outlives_bad_events(&mut function).await;

    let gone = function.invoke(&recorded(CONFIRM, &owner())).await.unwrap();
    assert_eq!(
        (status(&gone), &body(&gone)["status"]),
        (200, &json!("terminated")),
        "{gone}"
    );
    let again = function.invoke(&recorded(CONFIRM, &owner())).await.unwrap();
    assert_eq!((status(&again), body(&again)), (200, body(&gone)));
}

#[tokio::test]
async fn it_answers_what_no_route_matches() {
    let stage = Stage::bare().await;
    let mut function = stage.function(BINARY, &[]).await;
    let call = |method, path| HttpEvent::new(method, path).by(&key_of(&owner())).build();
    let nowhere = function.invoke(&call("GET", "/v2/nodes")).await.unwrap();
    assert_eq!(
        (status(&nowhere), &body(&nowhere)["code"]),
        (404, &json!("not_found"))
    );
    let wrong = function
        .invoke(&call("PATCH", "/v1/nodes/node-1"))
        .await
        .unwrap();
    assert_eq!(
        (status(&wrong), &wrong["headers"]["allow"]),
        (405, &json!("PUT, GET"))
    );
}

#[tokio::test]
async fn it_says_that_it_is_there_to_anyone() {
    let stage = Stage::bare().await;
    let mut function = stage.function(BINARY, &[]).await;
    let event = HttpEvent::new("GET", "/healthz").build();
    let alive = function.invoke(&event).await.unwrap();
    assert_eq!(
        (status(&alive), body(&alive)),
        (200, json!({ "status": "ok" }))
    );
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(TERMINATIONS, &owner()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
