//! What is counted and timed: the document says what the table says, and conflicts, retries, races,
//! evictions and faults of the audit trail count as often as they happen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use app::ports::ReadAudit as _;
use app::react::{Change, ReactError, react};
use app::trail::PREDECESSOR_WAIT_MS;
use domain::Reservation;
use metrics::{Counter, Metric, TABLE};
use testkit::engine::Fault;
use testkit::fixtures::{RESERVATION, id, spot};
use testkit::stage::Stage;
use testkit::{MemoryStore, RecordingOrders};
use tokio::sync::{Mutex, MutexGuard};

/// The numbers belong to the process, so tests that look at them take turns.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// The sample of this name in Prometheus text; 0 if it is not there.
fn sample(name: &str) -> f64 {
    let text = metrics::prometheus();
    let mut samples = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = samples.find(|(of, _)| *of == name);
    found.map_or(0.0, |(_, value)| value.parse().unwrap())
}

fn count(counter: Counter<0>) -> u64 {
    // Whole, and small.
    sample(&counter.metric().prometheus_name()) as u64
}

/// By how much each of these grows while something happens.
async fn growth<const N: usize>(of: [Counter<0>; N], deed: impl Future<Output = ()>) -> [u64; N] {
    let before = of.map(count);
    deed.await;
    let mut after = of.map(count);
    for (after, before) in after.iter_mut().zip(before) {
        *after -= before;
    }
    after
}

/// A metric as the document shows it.
fn row(metric: &Metric) -> String {
    let dimensions: Vec<String> = metric.dimensions.iter().map(|d| format!("`{d}`")).collect();
    format!(
        "| `{}` | `{}` | {} | {} | {} | {} |",
        metric.name,
        metric.prometheus_name(),
        metric.kind.as_str(),
        metric.unit.as_str(),
        dimensions.join(", "),
        metric.help
    )
}

#[test]
fn the_document_lists_the_metrics_as_the_table_has_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/observability.md");
    let text = std::fs::read_to_string(path).unwrap();
    let is_row = |line: &&str| line.starts_with("| `") && line.contains("| `relet_");
    let told: Vec<&str> = text.lines().filter(is_row).collect();
    let table: Vec<String> = TABLE.iter().map(|metric| row(metric)).collect();
    assert_eq!(told, table, "write these rows:\n{}", table.join("\n"));
}

#[tokio::test]
async fn conflicts_and_retries_of_the_store_are_counted() {
    let _turn = turn().await;
    let stage = Stage::set().await;
    let wire = stage.engine().wire();
    let counters = [metrics::STORE_CONFLICTS, metrics::STORE_RETRIES];
    assert_eq!(growth(counters, stage.release(0..1)).await, [0, 0]);

    wire.fail("UpdateItem", Fault::Conflict);
    wire.fail("UpdateItem", Fault::Conflict);
    assert_eq!(growth(counters, stage.release(1..2)).await, [2, 2]);

    // These are tried again inside the SDK.
    for fault in [Fault::Throttled, Fault::Broken, Fault::lost_reply()] {
        let what = format!("{fault:?}");
        wire.fail("UpdateItem", fault);
        assert_eq!(
            growth(counters, stage.release(0..1)).await,
            [0, 1],
            "{what}"
        );
    }

    wire.fail("TransactWriteItems", Fault::Conflict);
    let seated = async { assert!(stage.seat(&spot("spot-0", 0..1)).await) };
    assert_eq!(growth(counters, seated).await, [1, 1]);
    assert_eq!(wire.faults_left(), 0);
}

#[tokio::test]
async fn a_lost_race_is_counted() {
    let _turn = turn().await;
    let stage = Stage::set().await;
    stage.release(0..2).await;
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    let late = async { assert!(!stage.seat(&spot("spot-1", 0..2)).await) };
    assert_eq!(growth([metrics::RACES_LOST], late).await, [1]);
}

/// The images of a reservation whose one spot VM a reclaim condemns, and a store with that VM.
async fn reclaimed() -> (MemoryStore, Vec<Reservation>) {
    let stage = Stage::set().await;
    let mut images = vec![stage.reservation().await];
    stage.release(0..1).await;
    images.push(stage.reservation().await);
    assert!(stage.seat(&spot("spot-0", 0..1)).await);
    images.push(stage.reservation().await);
    stage.reclaim(0..1).await;
    images.push(stage.reservation().await);
    let vm = stage.vm("spot-0").await;
    let store = MemoryStore::holding(testkit::World {
        vms: [(vm.id.clone(), vm)].into(),
        ..testkit::World::default()
    });
    (store, images)
}

fn change(images: &[Reservation], place: usize) -> Change {
    let old = place.checked_sub(1).and_then(|place| images.get(place));
    Change::Reservation {
        old: old.cloned().map(Box::new),
        new: Box::new(images[place].clone()),
    }
}

#[tokio::test]
async fn an_eviction_counts_once_and_its_orders_as_often_as_they_are_sent() {
    let _turn = turn().await;
    let (store, images) = reclaimed().await;
    let orders = RecordingOrders::default();
    let counters = [metrics::EVICTIONS, metrics::ORDERS_SENT];
    let timed = || sample("relet_reclaim_to_command_seconds_count");
    let waited = || sample("relet_reclaim_to_command_seconds_sum");
    let (timed_before, waited_before) = (timed(), waited());
    let later = images[3].updated_at.plus_ms(2_000);
    let all = async {
        for place in 0..images.len() {
            react(&store, &orders, later, &change(&images, place))
                .await
                .unwrap();
        }
    };
    assert_eq!(growth(counters, all).await, [1, 1]);
    assert_eq!(timed() - timed_before, 1.0);
    let waited = waited() - waited_before;
    assert!(
        (2.0..60.0).contains(&waited),
        "{waited} s from the reclaim on"
    );
    let again = async {
        react(&store, &orders, later, &change(&images, 3))
            .await
            .unwrap();
    };
    assert_eq!(growth(counters, again).await, [0, 1]);
}

#[tokio::test]
async fn gaps_and_tampering_of_an_audit_trail_are_counted() {
    let _turn = turn().await;
    let (store, images) = reclaimed().await;
    let orders = RecordingOrders::default();
    let counters = [metrics::AUDIT_GAPS, metrics::AUDIT_TAMPERED];
    let at = images[1].updated_at;
    // The record of the first version is lost. At first that is waited for.
    let waits = async {
        let outcome = react(&store, &orders, at, &change(&images, 1)).await;
        assert!(
            matches!(outcome, Err(ReactError::Waiting(..))),
            "{outcome:?}"
        );
    };
    assert_eq!(growth(counters, waits).await, [0, 0]);
    let later = at.plus_ms(PREDECESSOR_WAIT_MS);
    let gives_up = async {
        let reaction = react(&store, &orders, later, &change(&images, 1)).await;
        assert!(reaction.unwrap().gap);
    };
    assert_eq!(growth(counters, gives_up).await, [1, 0]);

    let mut other = images[1].clone();
    other.last_action.request_id = "another".to_owned();
    let forged = Change::Reservation {
        old: Some(Box::new(images[0].clone())),
        new: Box::new(other),
    };
    let refused = async {
        let outcome = react(&store, &orders, later, &forged).await;
        assert!(
            matches!(outcome, Err(ReactError::Tampered(..))),
            "{outcome:?}"
        );
    };
    assert_eq!(growth(counters, refused).await, [0, 1]);
    let kept = store
        .list_records(&id(RESERVATION), None, 10)
        .await
        .unwrap();
    assert_eq!(kept.items.len(), 2);
}

#[tokio::test]
async fn a_level_is_shown_as_it_was_set_last() {
    let _turn = turn().await;
    for (found, overdue_ms) in [(3, 1_500), (0, -20)] {
        metrics::DRAINS_OPEN.set(found);
        metrics::STUCK.set(found);
        metrics::DUE_BACKLOG.set(found);
        metrics::DUE_LAG.set_ms(overdue_ms);
        let text = metrics::prometheus();
        for name in ["drains_open", "stuck", "due_backlog"] {
            assert!(
                text.contains(&format!("\nrelet_{name} {found}\n")),
                "{name}"
            );
        }
    }
    assert!(metrics::prometheus().contains("\nrelet_due_lag_seconds 0.000000\n"));
}
