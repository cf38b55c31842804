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

#[tokio::test]
async fn a_release_a_sale_and_a_reclaim_are_counted_and_timed() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let leave = notes.path().join("leave");
    // It ends when it is told to by a file, so that everything before can be looked at.
    let wait = format!(
        "trap '' TERM; until [ -e '{}' ]; do sleep 0.02; done",
        leave.display()
    );
    let command = noting(notes.path(), &wait);
    let args = ["--memory", "--grace-ms", "60000", "--vm-command", &command];
    let platform = Platform::start(folder.path(), &args).await;
    let reservation = platform.reservation().await;
    let manager = platform.client("manager");
    let units = json!({ "unitIds": ["u2", "u3"] });
    ok(&manager, &format!("{reservation}/release"), units.clone()).await;
    let vm = buy(&platform, &["u2"]).await;
    let pid = process(notes.path(), &vm).await;
    let stranger = platform.client("stranger");
    let hidden = format!("{reservation}/reclaim");
    let refused = stranger.post(&hidden, Some(&units)).await.unwrap();
    assert_eq!(refused.status, 404);
    ok(&manager, &format!("{reservation}/reclaim"), units).await;

    let of = |samples: &BTreeMap<String, f64>, name: &str| samples.get(name).copied();
    until("the order is sent and told", async || {
        let samples = samples(&platform).await;
        of(&samples, "relet_evictions_total") == Some(1.0)
    })
    .await;
    let before = samples(&platform).await;
    assert_eq!(of(&before, "relet_orders_sent_total"), Some(1.0));
    assert_eq!(
        of(&before, "relet_reclaim_to_command_seconds_count"),
        Some(1.0)
    );
    assert_eq!(
        of(&before, "relet_reclaim_to_confirmed_seconds_count"),
        Some(0.0)
    );

    std::fs::write(&leave, "").unwrap();
    gone(&platform, &vm, &[pid]).await;
    let after = samples(&platform).await;
    assert_eq!(
        of(&after, "relet_reclaim_to_confirmed_seconds_count"),
        Some(1.0)
    );
    let sent = of(&after, "relet_reclaim_to_command_seconds_sum").unwrap();
    let confirmed = of(&after, "relet_reclaim_to_confirmed_seconds_sum").unwrap();
    assert!(
        0.0 < sent && sent <= confirmed,
        "{sent} s, then {confirmed} s"
    );
    let calls = |function: &str, operation: &str, outcome: &str| {
        let labels = [
            ("function", function),
            ("operation", operation),
            ("outcome", outcome),
        ];
        let labels = labels
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .join(",");
        let timed = of(
            &after,
            &format!("relet_call_duration_seconds_count{{{labels}}}"),
        );
        let counted = of(&after, &format!("relet_calls_total{{{labels}}}"));
        assert_eq!(counted, timed, "each call is timed");
        counted
    };
    assert_eq!(calls("release", "ReleaseUnits", "ok"), Some(1.0));
    assert_eq!(calls("reclaim", "ReclaimUnits", "ok"), Some(1.0));
    assert_eq!(calls("reclaim", "ReclaimUnits", "not_found"), Some(1.0));
    assert_eq!(calls("vms", "CreateVm", "ok"), Some(1.0));
    assert!(of(&after, "relet_stream_age_seconds_count").unwrap() >= 4.0);
    assert_eq!(of(&after, "relet_audit_gaps_total"), Some(0.0));
    for (series, _) in after {
        for id in [
            &*vm,
            "gpu-node-1",
            "spot-buyer",
            reservation.rsplit('/').next().unwrap(),
        ] {
            assert!(!series.contains(id), "an id in {series}");
        }
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
