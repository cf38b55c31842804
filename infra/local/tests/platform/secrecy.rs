//! Logs at level `info` say who did what, and never a key, a reason or a body.

use std::fs::File;
use std::path::Path;

use serde_json::json;

use crate::support::{Platform, buy, ok, relet, status, until};

/// What the demo gives as reasons.
const DEMO_REASONS: [&str; 3] = ["idle until Monday", "launch day", "contract over"];

/// The log that the command writes to this file.
fn logging_to(path: &Path) -> std::process::Command {
    let mut command = relet();
    command
        .env("RUST_LOG", "info")
        .stderr(File::create(path).unwrap());
    command
}

/// Whether a text has something in the form of a key.
fn has_key(text: &str) -> bool {
    let long = |prefix: &str| {
        text.match_indices(prefix).any(|(at, _)| {
            let rest = text[at + prefix.len()..].bytes();
            rest.take_while(u8::is_ascii_alphanumeric).count() >= 13
        })
    };
    long("or_") || long("vl_")
}

#[tokio::test]
async fn a_session_s_log_tells_what_happened_and_nothing_that_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let platform = Platform::spawn_as(logging_to(&path), folder.path(), &["--memory"]);
    let platform = platform.ready().await;
    let keys: Vec<String> = platform.keys.values().cloned().collect();
    let reservation = platform.reservation().await;
    let manager = platform.client("manager");
    let body = json!({ "unitIds": ["u2", "u3"], "reason": "hush: a word to nobody" });
    ok(&manager, &format!("{reservation}/release"), body.clone()).await;
    let vm = buy(&platform, &["u2"]).await;
    ok(&manager, &format!("{reservation}/reclaim"), body).await;
    until("the VM is terminated", async || {
        status(&platform, &vm).await == "terminated"
    })
    .await;

    // Keys and reasons in every place where they do not belong.
    let key = platform.keys["stranger"].clone();
    let stranger = platform.client("stranger");
    for path in [
        format!("/v1/vms/{key}"),
        format!("/v1/vms/{key}/terminate"),
        format!("/v1/nodes/{key}/reservations/{key}/release"),
        format!("/{key}"),
        format!("/v1/nodes?key={key}&reason=hush"),
    ] {
        let body = json!({ "reason": 7, "unitIds": "hush: not a list", "hush": key });
        let answer = stranger.post(&path, Some(&body)).await.unwrap();
        assert!(
            (400..500).contains(&answer.status),
            "{path}: {}",
            answer.body
        );
    }
    let end = format!("{reservation}/end");
    let body = json!({ "reason": "hush: over" });
    let ended = ok(&platform.client("operator"), &end, body).await;
    let request_id = ended.body["requestId"].as_str().map(str::to_owned);
    assert_eq!(
        request_id, None,
        "a good answer has its request's id in a header"
    );
    assert_eq!(platform.interrupt().await, Some(0));

    let log = std::fs::read_to_string(&path).unwrap();
    for told in [
        "ReclaimUnits",
        "org_id=neocloud",
        "key_id=local-manager-",
        "operator=true",
        " reaction ",
        "vm_id=(hidden)",
    ] {
        assert!(log.contains(told), "{told} is not in:\n{log}");
    }
    assert!(
        keys.iter().all(|key| !log.contains(key.as_str())) && !has_key(&log),
        "{log}"
    );
    assert!(!log.contains("hush"), "a caller's words are in:\n{log}");
    assert!(!log.contains('\u{1b}'), "colours in a file");
}

#[test]
fn the_demo_s_log_is_as_silent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let output = logging_to(&path).arg("demo").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(
        log.contains("ReclaimUnits") && log.contains("reaction"),
        "{log}"
    );
    assert!(!has_key(&log), "{log}");
    for reason in DEMO_REASONS {
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            told.contains(reason),
            "{reason} is not a reason of the demo any more"
        );
        assert!(!log.contains(reason), "{reason} is in:\n{log}");
    }
}

#[tokio::test]
async fn calls_that_only_read_are_told_to_those_who_ask() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut quiet = relet();
    quiet.stderr(File::create(&path).unwrap());
    let platform = Platform::spawn_as(quiet, folder.path(), &["--memory"])
        .ready()
        .await;
    let reservation = platform.reservation().await;
    let manager = platform.client("manager");
    assert_eq!(manager.get(&reservation).await.unwrap().status, 200);
    ok(
        &manager,
        &format!("{reservation}/release"),
        json!({ "unitIds": ["u2"] }),
    )
    .await;
    assert_eq!(platform.interrupt().await, Some(0));
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(
        log.contains("ReleaseUnits") && !log.contains("GetReservation"),
        "{log}"
    );
}
