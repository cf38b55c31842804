//! A folder that was cut off or damaged: the next start makes the best of it.

use std::time::Duration;

use serde_json::json;

use crate::support::{Platform, buy, gone, noted, noting, ok, process, runs, stop, until};

#[tokio::test]
async fn killed_during_its_first_start_it_starts_the_next_time() {
    for ms in (20..260).step_by(20) {
        let folder = tempfile::tempdir().unwrap();
        let first = Platform::spawn(folder.path(), &["--data", "d"]);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        first.kill();
        let platform = Platform::start(folder.path(), &["--data", "d"]).await;
        let reservation = platform.reservation().await;
        let read = platform.client("manager").get(&reservation).await.unwrap();
        assert_eq!(read.status, 200, "killed after {ms} ms: {}", read.body);
    }
}

#[tokio::test]
async fn a_vm_whose_note_is_damaged_is_found_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let command = noting(notes.path(), "exec sleep infinity");
    let args = ["--data", "d", "--vm-command", &command];
    for damage in ["nothing", "emptied", "removed"] {
        let platform = Platform::start(folder.path(), &args).await;
        let vm = buy(&platform, &["u6"]).await;
        let pid = process(notes.path(), &vm).await;
        platform.kill();
        let note = folder.path().join(format!("d/vms/{vm}.json"));
        match damage {
            "emptied" => std::fs::write(&note, "").unwrap(),
            "removed" => std::fs::remove_file(&note).unwrap(),
            _ => {}
        }
        let platform = Platform::start(folder.path(), &args).await;
        assert!(runs(pid), "{damage}");
        stop(&platform, &vm).await;
        gone(&platform, &vm, &[pid]).await;
        let second = noted(notes.path(), &vm).is_some_and(runs);
        assert!(!second, "{damage}: a second process");
        assert_eq!(platform.interrupt().await, Some(0));
    }
}

#[tokio::test]
async fn a_damaged_checkpoint_costs_no_audit_record() {
    let folder = tempfile::tempdir().unwrap();
    for damage in ["", "nonsense", "\u{0}"] {
        let platform = Platform::start(folder.path(), &["--data", "d"]).await;
        let reservation = platform.reservation().await;
        let (manager, units) = (platform.client("manager"), json!({ "unitIds": ["u1"] }));
        ok(&manager, &format!("{reservation}/release"), units.clone()).await;
        ok(&manager, &format!("{reservation}/reclaim"), units).await;
        assert_eq!(platform.interrupt().await, Some(0));
        std::fs::write(folder.path().join("d/stream-checkpoint"), damage).unwrap();

        let platform = Platform::start(folder.path(), &["--data", "d"]).await;
        let owner = platform.client("owner");
        let etag = owner.get(&reservation).await.unwrap().etag.unwrap();
        let version: u64 = etag.trim_matches('"').parse().unwrap();
        let trail = format!("{reservation}/audit?limit=100");
        until("the trail is complete", async || {
            let read = owner.get(&trail).await.unwrap();
            let records = read.body["items"].as_array().unwrap().iter();
            let versions: Vec<u64> = records.map(|r| r["version"].as_u64().unwrap()).collect();
            versions == (1..=version).collect::<Vec<u64>>()
        })
        .await;
        assert_eq!(platform.interrupt().await, Some(0));
    }
}
