//! Very many terms that are over in the same second.

use app::StoreError;
use app::ports::Clock;
use app::reservations::ReserveRequest;
use app::sweep::{Rules, sweep};
use aws_sdk_dynamodb::types::AttributeValue;
use domain::{ReservationId, Status, Timestamp};
use testkit::engine::{Engine, TABLE};
use testkit::fixtures::{self, GPU_MODEL, id, unit_set};
use testkit::{Fault, MemoryStore, Play, Store, TestClock};

/// A platform on which so many reservations of one unit end in the next second, so many on a node.
/// The clock is past that second.
async fn ending<S: Store>(store: S, nodes: usize, on_each: usize) -> (Play<S>, Vec<ReservationId>) {
    let play = Play::bare(store);
    let mut made = Vec::new();
    for number in 0..nodes {
        let node = node_name(number);
        play.register(&node, on_each).await;
        for unit in 0..on_each {
            let ms = i64::try_from(number * on_each + unit).unwrap() % 1_000;
            let request = ReserveRequest {
                node: id(&node),
                units: unit_set(unit..=unit),
                audience: [id(fixtures::AUDIENCE_ORG)].into(),
                managers: [].into(),
                starts: None,
                ends: Some(play.from_now(1_000 + ms)),
                contract_ref: None,
                reason: None,
            };
            made.push(play.try_reserve_as(request).await.unwrap().id);
        }
    }
    play.clock.advance_ms(2_000);
    (play, made)
}

fn node_name(number: usize) -> String {
    format!("node-{number:02}")
}

async fn due<S: Store>(play: &Play<S>) -> usize {
    play.store
        .find_due(play.clock.now(), 10_000)
        .await
        .unwrap()
        .len()
}

/// All of them are expired, their units are in the pool, and nothing is due.
async fn assert_cleared<S: Store>(play: &Play<S>, nodes: usize, on_each: usize) {
    assert_eq!(due(play).await, 0);
    for number in 0..nodes {
        let node = play.node_named(&node_name(number)).await;
        assert_eq!((node.bookings.len(), node.slots.len()), (0, on_each));
        assert_eq!(node.gpu_model, id(GPU_MODEL));
    }
}

/// A clock that goes on by so much whenever somebody looks at it.
#[derive(Debug, Clone)]
struct Ticking(TestClock, i64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.0.advance_ms(self.1)
    }
}

#[tokio::test]
async fn one_run_clears_a_thousand() {
    let (play, _) = ending(MemoryStore::default(), 20, 50).await;
    let swept = play.sweep().await;
    assert_eq!((swept.items, swept.expired), (1_000, 1_000));
    assert_eq!((swept.failed, swept.behind), (0, false));
    assert_eq!(swept.lag_ms, 1_000);
    assert_cleared(&play, 20, 50).await;
    assert_eq!(play.store.world().violations(), []);
}

#[tokio::test]
async fn one_run_clears_very_many_over_the_real_store() {
    let engine = Engine::start().await;
    let (play, _) = ending(engine.store(), 4, 30).await;
    let swept = play.sweep().await;
    assert_eq!((swept.items, swept.expired), (120, 120));
    assert_eq!((swept.failed, swept.behind), (0, false));
    assert_cleared(&play, 4, 30).await;
}

#[tokio::test]
async fn a_run_with_less_room_says_that_it_is_behind_and_the_next_ones_clear_the_rest() {
    let (play, _) = ending(MemoryStore::default(), 20, 50).await;
    let rules = Rules {
        items_max: 300,
        ..Rules::default()
    };
    for left in [700, 400, 100] {
        let swept = play.sweep_within(&rules).await;
        assert_eq!((swept.expired, swept.behind), (300, true));
        assert_eq!(due(&play).await, left);
    }
    let swept = play.sweep_within(&rules).await;
    assert_eq!((swept.expired, swept.behind), (100, false));
    assert_cleared(&play, 20, 50).await;
}

#[tokio::test]
async fn a_run_that_is_out_of_time_says_that_it_is_behind_and_the_next_one_goes_on() {
    let (play, _) = ending(MemoryStore::default(), 20, 50).await;
    let clock = Ticking(play.clock.clone(), 20);
    let rules = Rules::default();
    let began = play.clock.now();
    let swept = sweep(&play.store, &play.orders, &clock, &play.ids, &rules)
        .await
        .unwrap();
    assert!(swept.behind && swept.failed == 0, "{swept:?}");
    assert!(swept.expired > 300 && swept.expired < 1_000, "{swept:?}");
    // Each node finishes at most the item it is at.
    let took_ms = play.clock.now().unix_ms() - began.unix_ms();
    assert!(took_ms < rules.run_ms_max + 8 * 10 * 20, "{took_ms}");
    let rest = play.sweep().await;
    assert_eq!((rest.expired, rest.behind), (1_000 - swept.expired, false));
    assert_cleared(&play, 20, 50).await;
}

#[tokio::test]
async fn an_item_that_fails_every_time_stops_no_other() {
    let (play, made) = ending(MemoryStore::default(), 20, 50).await;
    for run in 0..3 {
        // The first read of an item: the one that finds what is due goes before it.
        let broken = StoreError::Corrupt("an item".to_owned());
        play.store.inject(&[Fault::Pass, Fault::Before(broken)]);
        let swept = play.sweep().await;
        let expired = if run == 0 { 999 } else { 0 };
        assert_eq!((swept.failed, swept.expired), (1, expired));
        assert_eq!(due(&play).await, 1);
    }
    assert_eq!(play.sweep().await.expired, 1);
    assert_eq!(made.len(), 1_000);
    assert_cleared(&play, 20, 50).await;
}

#[tokio::test]
async fn an_item_that_nobody_can_read_stops_no_other_over_the_real_store() {
    let engine = Engine::start().await;
    let (play, made) = ending(engine.store(), 2, 20).await;
    let poisoned = &made[3];
    spoil(&engine, &node_name(0), poisoned).await;
    for run in 0..3 {
        let swept = play.sweep().await;
        let expired = if run == 0 { 39 } else { 0 };
        assert_eq!((swept.failed, swept.expired), (1, expired), "{swept:?}");
        assert!(!swept.behind);
    }
    let node = play.node_named(&node_name(0)).await;
    assert!(
        node.bookings.keys().eq([poisoned]),
        "its neighbours are done"
    );
    let other = play.node_named(&node_name(1)).await;
    assert!(other.bookings.is_empty());
}

/// Makes an item one that no reader takes: its status is none.
async fn spoil(engine: &Engine, node: &str, reservation: &ReservationId) {
    let text = |value: String| AttributeValue::S(value);
    let spoilt = engine
        .client()
        .update_item()
        .table_name(TABLE)
        .key("PK", text(format!("NODE#{node}")))
        .key("SK", text(format!("RES#{reservation}")))
        .update_expression("SET #status = :nonsense")
        .expression_attribute_names("#status", "status")
        .expression_attribute_values(":nonsense", text("purple".to_owned()))
        .send()
        .await;
    spoilt.unwrap();
    assert!(Status::parse("purple").is_none());
}
