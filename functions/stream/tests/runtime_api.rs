//! The binary, run as the Lambda service runs it, with a queue beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::events::{batch, failed, sequence_number};
use testkit::fixtures::spot;
use testkit::logs::embedded;
use testkit::services::{QueueServer, Refused};
use testkit::stage::{
    QUEUE_URL, Stage, assert_connects_at_start, assert_needs, assert_outlives_bad_events,
};
use testkit::stream::StreamReader;

const BINARY: &str = env!("CARGO_BIN_EXE_relet-stream");

/// A spot VM on a released unit, condemned by a reclaim; returns all records of it.
async fn reclaimed(stage: &Stage) -> Vec<Value> {
    let mut reader = StreamReader::start(stage.engine()).await;
    stage.release(0..2).await;
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    assert!(stage.seat(&spot("spot-1", 1..2)).await);
    stage.reclaim(0..1).await;
    reader.drain().await
}

fn order(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn it_orders_the_condemned_to_stop_and_returns_what_it_could_not_finish() {
    let stage = Stage::set().await;
    let records = reclaimed(&stage).await;
    let queue = QueueServer::start().await.unwrap();
    let mut function = stage.function_with_queue(BINARY, &queue).await;

    queue.refuse(Refused::Message(0));
    let last = records
        .iter()
        .rposition(|r| r["dynamodb"]["Keys"]["SK"]["S"] == "RES#res-1");
    let last = last.unwrap();
    let reply = function.invoke(&batch(&records)).await.unwrap();
    let expected = sequence_number(&records[last]).to_owned();
    assert_eq!(
        failed(&reply),
        Some(vec![expected]),
        "the queue answered 200 and took nothing"
    );
    assert_eq!(queue.taken(), [""; 0]);

    assert_outlives_bad_events(&mut function).await;

    let reply = function.invoke(&batch(&records[last..])).await.unwrap();
    assert_eq!(failed(&reply), Some(vec![]));
    let sent: Vec<Value> = queue.taken().iter().map(|text| order(text)).collect();
    let version = stage.reservation().await.version.get();
    let expected = json!({
        "vmId": "spot-0", "nodeId": "node-1", "reservationId": "res-1", "version": version,
    });
    assert_eq!(sent, [expected]);
    assert_eq!(stage.vm("spot-0").await.status.as_str(), "terminating");
    assert_eq!(stage.vm("spot-1").await.status.as_str(), "running");
    let trail: Vec<u64> = stage
        .trail("res-1")
        .await
        .iter()
        .map(|r| r.event.version.get())
        .collect();
    assert_eq!(
        trail,
        [1, 2, 3, 4, 5, 5],
        "every version, and the condemned VM beside the last"
    );
}

#[tokio::test]
async fn it_says_what_followed_from_a_change_and_counts_it() {
    let stage = Stage::set().await;
    let records = reclaimed(&stage).await;
    let queue = QueueServer::start().await.unwrap();
    let mut function = stage.function_with_queue(BINARY, &queue).await;
    let reply = function.invoke(&batch(&records)).await.unwrap();
    assert_eq!(failed(&reply), Some(vec![]));

    let line = function.logged(|line| line.contains(r#""orders":1"#)).await;
    let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
    let action = stage.reservation().await.last_action;
    let told = [
        "message",
        "request_id",
        "node_id",
        "reservation_id",
        "vm_ids",
    ];
    let told = told.map(|name| line[name].as_str().unwrap_or_default());
    assert_eq!(
        told,
        ["reaction", &action.request_id, "node-1", "res-1", "spot-0"]
    );
    assert_eq!(line["version"], 5);
    assert_eq!(line["records"], 2, "the reclaim and the VM it condemned");
    assert_eq!(line["gap"], false);
    assert!(
        line["duration_us"].is_u64() && line["age_ms"].is_u64(),
        "{line}"
    );

    let counted = |line: &str| embedded(line).is_some_and(|root| root.get("evictions").is_some());
    let numbers = embedded(&function.logged(counted).await.unwrap()).unwrap();
    assert_eq!(numbers["evictions"], 1);
    assert_eq!(numbers["orders_sent"], 1);
    assert!(numbers["reclaim_to_command"].is_number(), "{numbers}");
    let ages = numbers["stream_age"].as_array().unwrap();
    assert_eq!(ages.len(), records.len(), "of every record");
}

/// Records of an earlier build, as the service hands them over.
#[tokio::test]
async fn a_recorded_batch_is_still_understood() {
    let stage = Stage::set().await;
    reclaimed(&stage).await;
    let queue = QueueServer::start().await.unwrap();
    let mut function = stage.function_with_queue(BINARY, &queue).await;
    let recorded: Value = serde_json::from_str(include_str!("reclaim.json")).unwrap();
    let reply = function.invoke(&recorded).await.unwrap();
    assert_eq!(failed(&reply), Some(vec![]), "{:?}", function.logs());
    let sent = queue.taken();
    assert_eq!(sent.len(), 1);
    assert_eq!(order(&sent[0])["vmId"], "spot-0");
    assert_eq!(stage.vm("spot-0").await.status.as_str(), "terminating");
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
    let mut reader = StreamReader::start(stage.engine()).await;
    stage.release(0..2).await;
    let event = batch(&reader.drain().await);
    let more = [("RELET_QUEUE_URL", QUEUE_URL)];
    assert_connects_at_start(&stage, BINARY, &more, &event).await;
}
