//! The binary, run as the Lambda service runs it.

use serde_json::json;
use testkit::events::{body, status};
use testkit::fixtures::{manager, spot, stranger, units};
use testkit::stage::{Stage, assert_http_init, assert_outlives_bad_events, recorded};

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
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}
