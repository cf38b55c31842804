//! `relet audit verify`: the trail of a real platform, read page by page, and files of it.

use std::path::Path;

use domain::audit::{Record, gap};
use http_api::{record, view::RecordView};
use serde_json::{Value, json};

use crate::support::{NODE, Platform, buy, gone, ok, run, until};

const NODE_ID: &str = "gpu-node-1";

/// Runs `relet audit verify` to its end: its exit code, and the one line that it prints.
fn verify(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = run(&[&["audit", "verify"], args].concat(), folder);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    (output.status.code(), text.trim().to_owned())
}

/// Wants the trail refused with a line that has these words.
fn refused(args: &[&str], folder: &Path, words: &[&str]) {
    let (code, line) = verify(args, folder);
    assert_eq!(code, Some(1), "{args:?}: {line}");
    for word in words {
        assert!(line.contains(word), "{args:?}: {word} is not in {line}");
    }
}

/// The trail that the API tells, page by page.
async fn trail(platform: &Platform, reservation: &str) -> Vec<Value> {
    let owner = platform.client("owner");
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = owner
            .get(&format!("{reservation}/audit?limit=100{cursor}"))
            .await
            .unwrap();
        items.extend(page.body["items"].as_array().unwrap().clone());
        match page.body["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn the_trail_of_a_platform_is_verified_over_all_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--data", "d"]).await;
    let path = platform.reservation().await;
    let id = path.rsplit_once('/').unwrap().1.to_owned();
    let manager = platform.client("manager");
    let units = json!({ "unitIds": ["u1", "u3"], "reason": "hush: a \"quoted\" reason: ü" });
    ok(&manager, &format!("{path}/release"), units.clone()).await;
    let vm = buy(&platform, &["u1", "u3"]).await;
    ok(&manager, &format!("{path}/reclaim"), units.clone()).await;
    gone(&platform, &vm, &[]).await;
    // Versions: made, released, sold, reclaimed, confirmed; one record more for the VM condemned.
    let url = platform.url.clone();
    let base = [NODE_ID, &id, "--url", &url];
    let args = [&base[..], &["--data", "d"]].concat();
    let (code, line) = verify(&args, folder.path());
    assert_eq!(code, Some(0), "{line}");
    let begin = "verified: 6 records, versions 1..5, head ";
    let head = line.strip_prefix(begin).unwrap().to_owned();

    for _ in 0..55 {
        ok(&manager, &format!("{path}/release"), units.clone()).await;
        ok(&manager, &format!("{path}/reclaim"), units.clone()).await;
    }
    for kept in [head.clone(), format!("5:{head}")] {
        let with_head = [&args[..], &["--head", &kept]].concat();
        let (code, line) = verify(&with_head, folder.path());
        assert_eq!(code, Some(0), "{line}");
        assert!(
            line.starts_with("verified: 116 records, versions 1..115,"),
            "{line}"
        );
    }
    let other = "0".repeat(64);
    refused(
        &[&args[..], &["--head", &other]].concat(),
        folder.path(),
        &["expected hash"],
    );
    let early = format!("4:{head}");
    refused(
        &[&args[..], &["--head", &early]].concat(),
        folder.path(),
        &["version 4"],
    );

    // With a key: one that may read the trail, and one that may not.
    let owner = platform.keys["owner"].clone();
    let (code, _) = verify(&[&base[..], &["--key", &owner]].concat(), folder.path());
    assert_eq!(code, Some(0));
    let stranger = platform.keys["stranger"].clone();
    refused(
        &[&base[..], &["--key", &stranger]].concat(),
        folder.path(),
        &["404"],
    );
    let nowhere = [NODE_ID, "none", "--url", &url, "--data", "d"];
    refused(&nowhere, folder.path(), &["404", "none"]);
    assert_eq!(platform.interrupt().await, Some(0));
    refused(&args, folder.path(), &["does not answer"]);
}

/// The records as a file has them.
fn written(folder: &Path, items: &[Value]) -> String {
    let file = folder.join("trail.json");
    std::fs::write(&file, Value::from(items.to_vec()).to_string()).unwrap();
    file.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_file_is_verified_and_what_was_done_to_it_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory"]).await;
    let path = platform.reservation().await;
    let manager = platform.client("manager");
    for _ in 0..3 {
        for verb in ["release", "reclaim"] {
            ok(
                &manager,
                &format!("{path}/{verb}"),
                json!({ "unitIds": ["u1"] }),
            )
            .await;
        }
    }
    let mut items = Vec::new();
    until("the trail is whole", async || {
        items = trail(&platform, &path).await;
        items.len() == 7
    })
    .await;
    assert!(path.starts_with(NODE));
    assert_eq!(platform.interrupt().await, Some(0));

    let check = |items: &[Value], more: &[&str]| {
        let file = written(folder.path(), items);
        verify(&[&["--file", &file], more].concat(), folder.path())
    };
    let (code, line) = check(&items, &["--at-version", "7"]);
    assert_eq!(code, Some(0), "{line}");
    assert!(
        line.starts_with("verified: 7 records, versions 1..7, head "),
        "{line}"
    );
    let (code, line) = check(&items, &["--at-version", "8"]);
    assert_eq!(code, Some(1));
    assert!(line.contains("record 7, version 8"), "{line}");

    let mut changed = items.clone();
    changed[3]["reason"] = json!("hush: another");
    let (code, line) = check(&changed, &[]);
    assert_eq!(code, Some(1));
    assert!(
        line.contains("record 3, version 4: it was changed"),
        "{line}"
    );
    let mut unknown = items.clone();
    unknown[2]["note"] = json!("more");
    let (code, line) = check(&unknown, &[]);
    assert_eq!(code, Some(1));
    assert!(line.contains("record 2") && line.contains("note"), "{line}");
    let mut removed = items.clone();
    removed.remove(4);
    let (code, line) = check(&removed, &[]);
    assert_eq!(code, Some(1));
    assert!(line.contains("record 4, version 6"), "{line}");

    let (code, line) = check(&with_gap(&items), &["--at-version", "7"]);
    assert_eq!(code, Some(0), "{line}");
    assert!(
        line.starts_with("verified: 5 records, versions 1..7, head "),
        "{line}"
    );
    assert!(line.ends_with(", 1 gap: versions 3..5"), "{line}");
}

/// The trail in which the records of versions 3 to 5 were lost, and a gap says so.
fn with_gap(items: &[Value]) -> Vec<Value> {
    let records: Vec<Record> = items
        .iter()
        .map(|item| record::parse(item).unwrap())
        .collect();
    let mut out: Vec<Record> = records[..2].to_vec();
    let lost = gap(&records[5].event, records[4].event.version);
    let rest = records[5..].iter().map(|record| record.event.clone());
    for event in std::iter::once(lost).chain(rest) {
        let prev = out.last().unwrap().hash.clone();
        out.push(event.seal(&prev));
    }
    let shown = out
        .iter()
        .map(|record| serde_json::to_value(RecordView::of(record)).unwrap());
    shown.collect()
}
