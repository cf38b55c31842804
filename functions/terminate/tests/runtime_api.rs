//! The binary, run as the Lambda service runs it, with a VM controller beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use runtime::controller::verify;
use serde_json::Value;
use testkit::events::{batch, failed, message};
use testkit::fixtures::{spot, unit};
use testkit::logs::embedded;
use testkit::runtime_api::FunctionProcess;
use testkit::services::{ControllerServer, Script};
use testkit::stage::{Stage, assert_connects_at_start, assert_needs, assert_outlives_bad_events};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-terminate");
const SECRET: &str = "the controller's secret";

#[tokio::test]
async fn it_follows_orders_and_returns_those_that_are_not_finished() {
    let stage = Stage::set().await;
    stage.release(0..3).await;
    for (place, name) in ["spot-0", "spot-1", "spot-2"].into_iter().enumerate() {
        assert!(stage.seat(&spot(name, place..=place)).await);
    }
    stage.reclaim(0..2).await;
    stage.condemn("spot-0").await;
    stage.condemn("spot-1").await;
    let controller = ControllerServer::start().await.unwrap();
    controller.script("spot-1", &[Script::Status(202)]);
    let url = controller.url();
    let env = [
        ("RELET_CONTROLLER_URL", url.as_str()),
        ("RELET_CONTROLLER_SECRET", SECRET),
    ];
    let mut function = stage.function(BINARY, &env).await;

    // Orders for all three, though one is not condemned, and a message that is no order.
    let recorded: Value = serde_json::from_str(include_str!("orders.json")).unwrap();
    let reply = function.invoke(&recorded).await.unwrap();
    let expected = [
        "059f36b4-87a3-44ab-83d2-661975830a7d",
        "2e1424d4-f796-459a-8184-9c92662be6da",
    ];
    assert_eq!(failed(&reply).unwrap(), expected, "{:?}", function.logs());
    assert_eq!(stage.vm("spot-0").await.status.as_str(), "terminated");
    assert_eq!(stage.vm("spot-1").await.status.as_str(), "terminating");
    assert_eq!(stage.vm("spot-2").await.status.as_str(), "running");
    told(&function).await;

    assert_outlives_bad_events(&mut function).await;

    let body = recorded["Records"][1]["body"].as_str().unwrap();
    let again = batch(&[message("again", body)]);
    assert_eq!(
        failed(&function.invoke(&again).await.unwrap()),
        Some(vec![])
    );
    assert_eq!(stage.vm("spot-1").await.status.as_str(), "terminated");
    let slots = stage.reservation().await.slots;
    let taken = [0, 1, 2].map(|number| slots[&unit(number)].occupant.is_some());
    assert_eq!(taken, [false, false, true]);

    let calls = controller.calls();
    // The orders of one batch are followed at the same time.
    let mut told: Vec<&str> = calls.iter().map(|call| call.vm.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["spot-0", "spot-1", "spot-1"]);
    for call in &calls {
        assert!(verify(
            SECRET,
            &call.field("sentAt"),
            &call.body,
            &call.signature
        ));
    }
}

/// What it says of the recorded orders: a line for each, and how many came to what.
async fn told(function: &FunctionProcess) {
    for (vm, outcome, level) in [
        ("spot-0", "confirmed", "INFO"),
        ("spot-1", "not_yet", "INFO"),
        ("spot-2", "not_condemned", "ERROR"),
    ] {
        let whose = format!(r#""vm_id":"{vm}""#);
        let line = function.logged(|line| line.contains(&whose)).await.unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let told = ["message", "outcome", "level"].map(|name| line[name].as_str().unwrap());
        assert_eq!(told, ["order", outcome, level]);
        let [version, attempts] = ["version", "attempts"].map(|name| line[name].as_u64());
        assert_eq!((version, attempts), (Some(6), Some(1)));
        assert!(
            line["duration_us"].is_u64() && line["node_id"] == "node-1",
            "{line}"
        );
    }
    for outcome in ["confirmed", "not_yet", "not_condemned", "failed"] {
        let line = function.logged(|line| {
            let root = embedded(line).unwrap_or_default();
            root["outcome"] == outcome && root["terminate_attempts"] == 1
        });
        assert!(line.await.is_some(), "{outcome}");
    }
    let confirmed =
        |line: &str| embedded(line).is_some_and(|root| root["reclaim_to_confirmed"].is_number());
    assert!(function.logged(confirmed).await.is_some());
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    let more = [
        ("RELET_CONTROLLER_URL", "http://127.0.0.1:9"),
        ("RELET_CONTROLLER_SECRET", SECRET),
    ];
    for missing in [
        "RELET_TABLE",
        "RELET_CONTROLLER_URL",
        "RELET_CONTROLLER_SECRET",
    ] {
        assert_needs(BINARY, missing, &more).await;
    }
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_event() {
    let stage = Stage::set().await;
    let recorded: Value = serde_json::from_str(include_str!("orders.json")).unwrap();
    let event = batch(&recorded["Records"].as_array().unwrap()[..1]);
    let more = [
        ("RELET_CONTROLLER_URL", "http://127.0.0.1:9"),
        ("RELET_CONTROLLER_SECRET", SECRET),
    ];
    assert_connects_at_start(&stage, BINARY, &more, &event).await;
}
