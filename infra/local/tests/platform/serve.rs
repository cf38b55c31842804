//! `relet serve`: what stays, what goes, and what becomes of the processes of VMs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    NODE, Platform, buy, gone, noted, noting, ok, process, runs, status, stop, until,
};

#[tokio::test]
async fn what_was_done_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", "d"];
    let platform = Platform::start(folder.path(), &data).await;
    let reservation = platform.reservation().await;
    let manager = platform.client("manager");
    let release = format!("{reservation}/release");
    let released = ok(&manager, &release, json!({ "unitIds": ["u1", "u3"] })).await;
    let keys = platform.keys.clone();
    assert_eq!(platform.interrupt().await, Some(0));

    let platform = Platform::start(folder.path(), &data).await;
    assert_eq!(platform.keys, keys);
    assert_eq!(platform.reservation().await, reservation, "made anew");
    let read = platform.client("manager").get(&reservation).await.unwrap();
    assert_eq!((read.body, read.etag), (released.body, released.etag));
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn it_starts_again_after_its_node_has_reported_another_topology() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", "d"];
    let platform = Platform::start(folder.path(), &data).await;
    let reservation = platform.reservation().await;
    let report = json!({ "topologyGen": 2, "units": [{ "id": "u0" }, { "id": "u9" }] });
    let path = format!("{NODE}/topology");
    let agent = platform.client("agent");
    let put = agent.send(http::Method::PUT, &path, Some(&report), None);
    let put = put.await.unwrap();
    assert_eq!(put.status, 200, "{}", put.body);
    assert_eq!(platform.interrupt().await, Some(0));

    let platform = Platform::start(folder.path(), &data).await;
    assert_eq!(platform.reservation().await, reservation);
    let node = platform.client("owner").get(NODE).await.unwrap();
    assert_eq!(node.body["topologyGen"], 2, "{}", node.body);
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn in_memory_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory"]).await;
    let reservation = platform.reservation().await;
    let keys = platform.keys.clone();
    let files = std::fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["ready.json"]);
    assert_eq!(platform.interrupt().await, Some(0));
    let platform = Platform::start(folder.path(), &["--memory"]).await;
    assert_ne!(platform.keys, keys);
    assert_ne!(platform.reservation().await, reservation);
}

#[tokio::test]
async fn without_the_demo_fleet_there_are_keys_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory", "--no-demo"]).await;
    let operator = platform.client("operator");
    assert_eq!(operator.get(NODE).await.unwrap().status, 404);
    let node = json!({ "ownerOrgId": "x", "gpuModelId": "m", "units": [{ "id": "a", "gpus": 1 }] });
    let put = operator
        .send(http::Method::PUT, "/v1/nodes/mine", Some(&node), None)
        .await
        .unwrap();
    assert_eq!(put.status, 200, "{}", put.body);
}

#[tokio::test]
async fn processes_of_vms_end_with_the_platform_and_come_back_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "exec sleep infinity");
    let args = ["--data", "d", "--vm-command", &command];
    let platform = Platform::start(folder.path(), &args).await;
    let vm = buy(&platform, &["u6"]).await;
    let first = process(notes.path(), &vm).await;
    assert_eq!(platform.interrupt().await, Some(0));
    assert!(!runs(first), "left behind");

    let platform = Platform::start(folder.path(), &args).await;
    until("it runs again", async || {
        noted(notes.path(), &vm) != Some(first)
    })
    .await;
    let second = noted(notes.path(), &vm).unwrap();
    platform.kill();
    assert!(runs(second), "a VM does not die with the control plane");

    let platform = Platform::start(folder.path(), &args).await;
    assert_eq!(status(&platform, &vm).await, "running");
    stop(&platform, &vm).await;
    gone(&platform, &vm, &[second]).await;
    assert_eq!(
        noted(notes.path(), &vm),
        Some(second),
        "a second process was started"
    );
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_process_in_memory_never_outlives_the_platform() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "exec cat");
    let platform = Platform::start(folder.path(), &["--memory", "--vm-command", &command]).await;
    let vm = buy(&platform, &["u6"]).await;
    let pid = process(notes.path(), &vm).await;
    assert!(runs(pid));
    platform.kill();
    until("its process ends", async || !runs(pid)).await;
}

#[tokio::test]
async fn a_stubborn_process_is_killed_after_the_grace_and_confirmed_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "trap '' TERM; while :; do sleep 0.05; done");
    let args = ["--memory", "--grace-ms", "400", "--vm-command", &command];
    let platform = Platform::start(folder.path(), &args).await;
    let (doomed, other) = (buy(&platform, &["u6"]).await, buy(&platform, &["u7"]).await);
    let pid = process(notes.path(), &doomed).await;
    let others = process(notes.path(), &other).await;
    let told = stop(&platform, &doomed).await;
    assert_eq!(told.body["status"], "terminating");
    gone(&platform, &doomed, &[pid]).await;
    assert!(runs(others), "another VM died");
    assert_eq!(status(&platform, &other).await, "running");
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn sigterm_stops_it_as_ctrl_c_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut platform = Platform::start(folder.path(), &["--memory"]).await;
    platform.signal(Signal::TERM);
    let mut status = None;
    until("the platform stops", async || {
        status = platform.child.try_wait().unwrap();
        status.is_some()
    })
    .await;
    assert_eq!(status.unwrap().code(), Some(0));
}

/// Sends this and reads the answer to its end.
fn raw(platform: &Platform, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(platform.url.trim_start_matches("http://")).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_header_that_is_no_text_is_refused_as_any_other_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory"]).await;
    let path = format!("{}/release", platform.reservation().await);
    let body = r#"{"unitIds":["u1"]}"#;
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: relet\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nIdempotency-Key: a",
        platform.keys["manager"],
        body.len(),
    )
    .into_bytes();
    request.extend_from_slice(b"\xff\xfe\r\n\r\n");
    request.extend_from_slice(body.as_bytes());
    let answer = raw(&platform, &request);
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let told = [
        "x-request-id: ",
        r#""code":"bad_request""#,
        "Idempotency-Key is sent once",
    ];
    for part in told {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn the_api_document_is_for_anyone_and_says_where_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory", "--no-demo"]).await;
    let nobody = platform.client("manager").with_key("none");
    let document = nobody.get("/v1/openapi.json").await.unwrap();
    assert_eq!(
        (document.status, &document.body["openapi"]),
        (200, &json!("3.1.0"))
    );
    let paths = document.body["paths"].as_object().unwrap();
    assert!(paths.contains_key("/v1/whoami"), "{:?}", paths.keys());
    assert_eq!(platform.interrupt().await, Some(0));
}
