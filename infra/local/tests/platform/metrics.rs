//! `GET /metrics`: what a release, a sale and a reclaim leave there, and who may look.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Platform, buy, gone, noting, ok, process, until};

/// The samples by their names with labels. Fails on what is not the text format.
async fn samples(platform: &Platform) -> BTreeMap<String, f64> {
    let url = format!("{}/metrics", platform.url);
    let response = reqwest::get(url).await.unwrap();
    assert_eq!(response.status(), 200, "without a key");
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = response.text().await.unwrap();
    let mut samples = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, _] => assert_eq!(kinds.insert(*name, ""), None, "{line}"),
            ["#", "TYPE", name, kind] => assert_eq!(kinds.insert(name, kind), Some(""), "{line}"),
            [series, value] => {
                let name = series.split('{').next().unwrap_or_default();
                let mut ends = ["_bucket", "_sum", "_count"].iter();
                let family = ends.find_map(|end| name.strip_suffix(end)).unwrap_or(name);
                let known = kinds.contains_key(name) || kinds.get(family) == Some(&"histogram");
                assert!(known, "{line}");
                samples.insert((*series).to_owned(), value.parse().unwrap());
            }
            _ => unreachable!("not a line of the format: {line}"),
        }
    }
    samples
}

/// How often a call came to an outcome, each time with its duration.
fn calls(of: &BTreeMap<String, f64>, function: &str, operation: &str, outcome: &str) -> f64 {
    let labels =
        format!(r#"{{function="{function}",operation="{operation}",outcome="{outcome}"}}"#);
    let counted = of[&format!("relet_calls_total{labels}")];
    let timed = of[&format!("relet_call_duration_seconds_count{labels}")];
    assert_eq!(counted, timed, "each call is timed");
    counted
}

const EVICTIONS: &str = "relet_evictions_total";
const ORDERS: &str = "relet_orders_sent_total";
const COMMANDED: &str = "relet_reclaim_to_command_seconds";
const CONFIRMED: &str = "relet_reclaim_to_confirmed_seconds";

#[tokio::test]
async fn a_release_a_sale_and_a_reclaim_are_counted_and_timed() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let leave = notes.path().join("leave");
    // It ends when a file tells it to, so that everything before can be looked at.
    let file = leave.display();
    let wait = format!("trap '' TERM; until [ -e '{file}' ]; do sleep 0.02; done");
    let command = noting(notes.path(), &wait);
    let args = ["--memory", "--grace-ms", "60000", "--vm-command", &command];
    let platform = Platform::start(folder.path(), &args).await;
    let reservation = platform.reservation().await;
    let [release, reclaim] = ["release", "reclaim"].map(|verb| format!("{reservation}/{verb}"));
    let (manager, stranger) = (platform.client("manager"), platform.client("stranger"));
    let units = json!({ "unitIds": ["u2", "u3"] });
    ok(&manager, &release, units.clone()).await;
    let vm = buy(&platform, &["u2"]).await;
    let pid = process(notes.path(), &vm).await;
    let refused = stranger.post(&reclaim, Some(&units)).await.unwrap();
    assert_eq!(refused.status, 404);
    ok(&manager, &reclaim, units).await;

    until("the eviction is counted", async || {
        samples(&platform).await[EVICTIONS] == 1.0
    })
    .await;
    let before = samples(&platform).await;
    assert!(before[ORDERS] >= 1.0);
    assert_eq!(before[&format!("{COMMANDED}_count")], 1.0);
    assert_eq!(before[&format!("{CONFIRMED}_count")], 0.0, "it still runs");

    std::fs::write(&leave, "").unwrap();
    gone(&platform, &vm, &[pid]).await;
    let counted = format!("{CONFIRMED}_count");
    until("its end is counted", async || {
        samples(&platform).await[&counted] == 1.0
    })
    .await;
    let after = samples(&platform).await;
    let [sent, confirmed] = [COMMANDED, CONFIRMED].map(|name| after[&format!("{name}_sum")]);
    assert!(
        sent <= confirmed && confirmed > 0.0,
        "{sent} s, then {confirmed} s"
    );
    assert_eq!(calls(&after, "release", "ReleaseUnits", "ok"), 1.0);
    assert_eq!(calls(&after, "reclaim", "ReclaimUnits", "ok"), 1.0);
    assert_eq!(calls(&after, "reclaim", "ReclaimUnits", "not_found"), 1.0);
    assert_eq!(calls(&after, "vms", "CreateVm", "ok"), 1.0);
    assert!(after["relet_stream_age_seconds_count"] >= 4.0);
    assert_eq!(after["relet_audit_gaps_total"], 0.0);
    let reservation = reservation.rsplit('/').next().unwrap();
    for id in [&*vm, "gpu-node-1", "spot-buyer", reservation] {
        assert!(
            after.keys().all(|series| !series.contains(id)),
            "{id} is a label"
        );
    }
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn only_reading_it_on_this_machine_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory", "--no-demo"]).await;
    let operator = platform.client("operator");
    for (method, path) in [
        ("POST", "/metrics"),
        ("GET", "/metrics/"),
        ("GET", "/v1/metrics"),
    ] {
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = operator.send(method, path, None, None).await.unwrap();
        assert_eq!(answer.status, 404, "{path}");
    }
}
