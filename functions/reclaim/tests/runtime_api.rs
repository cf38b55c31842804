//! The binary, run as the Lambda service runs it.

use serde_json::{Value, json};
use testkit::events::{body, status};
use testkit::fixtures::{manager, spot, stranger, units};
use testkit::logs::{HUSH, embedded};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-reclaim");
const DRY_RUN: &str = include_str!("dry_run.json");
const RECLAIM: &str = include_str!("reclaim.json");

#[tokio::test]
async fn it_plans_and_reclaims_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::set().await;
    stage.release(0..2).await;
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    let before = stage.reservation().await;
    let mut function = stage.function(BINARY, &[]).await;

    let plan = function
        .invoke(&recorded(DRY_RUN, &manager()))
        .await
        .unwrap();
    assert_eq!(status(&plan), 200, "{plan}");
    assert_eq!(body(&plan)["wouldTerminate"], json!(["spot-0"]));
    assert_eq!(body(&plan)["wouldSkip"], json!([]));

    let hidden = function.invoke(&recorded(RECLAIM, &stranger())).await;
    let hidden = hidden.unwrap();
    assert_eq!(
        (status(&hidden), &body(&hidden)["code"]),
        (404, &json!("not_found"))
    );
    assert_eq!(
        stage.reservation().await,
        before,
        "a plan and a refusal change nothing"
    );

    assert_outlives_bad_events(&mut function).await;

    let done = function
        .invoke(&recorded(RECLAIM, &manager()))
        .await
        .unwrap();
    assert_eq!(status(&done), 200, "{done}");
    assert_eq!(body(&done)["terminated"], json!(["spot-0"]));
    assert_eq!(body(&done)["skipped"], json!([]));
    assert_eq!(body(&done)["releasedUnitIds"], json!([]));
    assert_eq!(stage.reservation().await.released, units([]));
}

#[tokio::test]
async fn it_says_of_a_call_who_what_and_how_long_and_counts_it() {
    let stage = Stage::set().await;
    stage.release(0..2).await;
    let mut function = stage.function(BINARY, &[]).await;
    let done = function.invoke(&recorded(RECLAIM, &manager())).await;
    let done = done.unwrap();
    assert_eq!(status(&done), 200, "{done}");

    let line = function.logged(|line| line.contains(r#""message":"call""#));
    let line: Value = serde_json::from_str(&line.await.unwrap()).unwrap();
    let expected = json!({
        "timestamp": line["timestamp"], "level": "INFO", "message": "call",
        "request_id": done["headers"]["x-request-id"], "function": "reclaim",
        "operation": "ReclaimUnits", "method": "POST", "status": 200, "code": "ok",
        "duration_us": line["duration_us"], "org_id": manager().org.as_str(),
        "key_id": manager().key.as_str(), "operator": false, "node_id": "node-1",
        "reservation_id": "res-1", "span": line["span"],
    });
    assert_eq!(line, expected);
    assert!(line["duration_us"].is_u64() && line["timestamp"].is_string());
    assert!(
        line["span"]["requestId"].is_string(),
        "the service's own id of the event"
    );

    let counted = |line: &str| embedded(line).is_some_and(|root| root.get("calls").is_some());
    let numbers = embedded(&function.logged(counted).await.unwrap()).unwrap();
    let dimensions = json!([["function", "operation", "outcome"]]);
    let directive = &numbers["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Namespace"], "Relet");
    assert_eq!(directive["Dimensions"], dimensions);
    let told = ["function", "operation", "outcome", "calls"].map(|name| &numbers[name]);
    assert_eq!(
        told,
        [
            &json!("reclaim"),
            &json!("ReclaimUnits"),
            &json!("ok"),
            &json!(1)
        ]
    );
    assert!(numbers["call_duration"].as_f64().unwrap() > 0.0);
    let reason = RECLAIM.contains(HUSH) && function.logs().iter().all(|l| !l.contains(HUSH));
    assert!(reason, "{:?}", function.logs());
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(RECLAIM, &manager()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
