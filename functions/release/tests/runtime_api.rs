//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{body, status};
use testkit::fixtures::{manager, stranger, unit, units};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-release");
const RELEASE: &str = include_str!("release.json");

#[tokio::test]
async fn it_releases_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    let mut function = stage.function(BINARY, &[]).await;

    let hidden = function.invoke(&recorded(RELEASE, &stranger())).await;
    let hidden = hidden.unwrap();
    assert_eq!(
        (status(&hidden), &body(&hidden)["code"]),
        (404, &json!("not_found"))
    );
    assert_eq!(stage.reservation().await.released, units([]));

    assert_outlives_bad_events(&mut function).await;

    let done = function
        .invoke(&recorded(RELEASE, &manager()))
        .await
        .unwrap();
    assert_eq!(status(&done), 200, "{done}");
    assert_eq!(body(&done)["releasedUnitIds"], json!(["u00", "u01"]));
    assert_eq!(done["headers"]["etag"], "\"2\"");
    assert_eq!(stage.reservation().await.released, units(0..2));

    let mut foreign = recorded(RELEASE, &manager());
    foreign["body"] = json!(json!({ "unitIds": ["u02", "u05"] }).to_string());
    let refused = function.invoke(&foreign).await.unwrap();
    assert_eq!(
        (status(&refused), &body(&refused)["code"]),
        (422, &json!("unit_not_reserved"))
    );
    let error = body(&refused)["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains(unit(5).as_str()) && !error.contains("u02"),
        "{error}"
    );
    assert_eq!(
        body(&refused)["requestId"],
        refused["headers"]["x-request-id"]
    );
    assert_eq!(stage.reservation().await.released, units(0..2));
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(RELEASE, &manager()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
