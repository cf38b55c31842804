//! Processes of VMs that do not behave, and a machine at its limits: none outlives its VM, none
//! dies in its place, and no two share a unit.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::json;

use crate::support::{
    NODE, Platform, buy, gone, noted, noting, ok, process, relet, runs, status, stop, until,
};

#[tokio::test]
async fn what_leaves_the_process_group_dies_with_its_vm() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let escaped = notes.path().join("escaped");
    let child = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 1000' &",
        escaped.display()
    );
    let command = noting(notes.path(), &format!("{child} exec sleep infinity"));
    let platform = Platform::start(folder.path(), &["--data", "d", "--vm-command", &command]).await;
    let vm = buy(&platform, &["u6"]).await;
    let leader = process(notes.path(), &vm).await;
    let child = process(notes.path(), "escaped").await;
    stop(&platform, &vm).await;
    gone(&platform, &vm, &[leader, child]).await;
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_vm_begins_only_when_the_last_one_has_left_its_units() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "trap '' TERM; while :; do sleep 0.05; done");
    let args = ["--memory", "--grace-ms", "800", "--vm-command", &command];
    let platform = Platform::start(folder.path(), &args).await;
    let first = buy(&platform, &["u6"]).await;
    let held = process(notes.path(), &first).await;
    stop(&platform, &first).await;
    // Somebody is sure that it is gone, and is wrong.
    let confirm = format!("{NODE}/terminations/{first}/confirm");
    ok(&platform.client("owner"), &confirm, json!({})).await;
    let second = buy(&platform, &["u6"]).await;
    until("the next one has a process", async || {
        let began = noted(notes.path(), &second).is_some();
        assert!(!began || !runs(held), "two processes on one unit");
        began
    })
    .await;
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn what_cannot_be_seen_to_be_gone_is_not_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "exec sleep infinity");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", r#"ulimit -n 128; exec "$0" "$@""#]);
    limited.arg(relet().get_program()).stderr(Stdio::null());
    let args = ["--data", "d", "--vm-command", &command];
    let platform = Platform::spawn_as(limited, folder.path(), &args)
        .ready()
        .await;
    let vm = buy(&platform, &["u6"]).await;
    let pid = process(notes.path(), &vm).await;

    // Calls that never end take all that the platform may open.
    let address = platform.url.strip_prefix("http://").unwrap();
    let stranger = platform.client("stranger");
    assert_eq!(
        stranger.get(&format!("/v1/vms/{vm}")).await.unwrap().status,
        200
    );
    let hogs: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut hog = TcpStream::connect(address).unwrap();
            hog.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
            hog
        })
        .collect();
    let stop = format!("/v1/vms/{vm}/terminate");
    // On the connection that is open already. It may be refused for want of what it needs.
    let _ = stranger.post(&stop, None).await;
    for _ in 0..50 {
        if let Ok(read) = stranger.get(&format!("/v1/vms/{vm}")).await {
            let terminated = read.body["status"] == "terminated";
            assert!(!terminated || !runs(pid), "confirmed before it was gone");
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    drop(hogs);
    until("it is terminated", async || {
        let _ = stranger.post(&stop, None).await;
        let read = stranger.get(&format!("/v1/vms/{vm}")).await;
        let terminated = read.is_ok_and(|read| read.body["status"] == "terminated");
        assert!(!terminated || !runs(pid), "confirmed before it was gone");
        terminated
    })
    .await;
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_log_that_nobody_reads_any_more_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = relet();
    command.stderr(Stdio::piped());
    let mut platform = Platform::spawn_as(command, folder.path(), &["--memory"])
        .ready()
        .await;
    drop(platform.child.stderr.take());
    let vm = buy(&platform, &["u6"]).await;
    assert_eq!(status(&platform, &vm).await, "running");
    assert_eq!(platform.interrupt().await, Some(0));
}
