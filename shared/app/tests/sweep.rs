//! The order of a sweep's work, over the store in memory: what waits longest comes first, whatever
//! it is called and whatever fails beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use app::ports::{Clock, Commit, Custodian, PlaceVm, ReclaimUnits, ReleaseUnits};
use app::sweep::{Rules, sweep};
use domain::reservation::{Reclaim, Release, Reserve, reserve};
use domain::{Node, Reservation, Status, Timestamp};
use testkit::fixtures::{
    NODE, RESERVATION, id, manager, node, now, reserve_command, reserved, spot, stamp, stranger,
    unit_set,
};
use testkit::{MemoryStore, RecordingOrders, SeededIds, TestClock, World};

/// A clock that goes on by a millisecond whenever it is looked at.
#[derive(Debug, Clone)]
struct Ticking(Arc<AtomicI64>);

impl Ticking {
    fn from(at: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(at.unix_ms())))
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// A node of this name with a reservation whose term ends so long after the fixtures' instant.
fn ending(name: &str, after_ms: i64) -> (Reservation, Node) {
    let bare = Node {
        id: id(name),
        ..node(4)
    };
    let command = Reserve {
        ends: Some(now().plus_ms(after_ms)),
        ..reserve_command(0..2)
    };
    reserve(&bare, &command).unwrap()
}

fn holding(pairs: impl IntoIterator<Item = (Reservation, Node)>) -> MemoryStore {
    let mut world = World::default();
    for (reservation, node) in pairs {
        let key = (node.id.clone(), reservation.id.clone());
        world.reservations.insert(key, reservation);
        world.nodes.insert(node.id.clone(), node);
    }
    MemoryStore::holding(world)
}

/// The nodes whose reservation has expired.
fn expired(store: &MemoryStore) -> Vec<String> {
    let world = store.world();
    let expired = world.reservations.iter();
    let expired = expired.filter(|(_, r)| r.status == Status::Expired);
    expired.map(|((node, _), _)| node.to_string()).collect()
}

#[tokio::test]
async fn a_run_that_is_cut_short_has_done_what_was_due_longest() {
    let store = holding([
        ending("a", 30_000),
        ending("b", 20_000),
        ending("z", 10_000),
    ]);
    let rules = Rules {
        run_ms_max: 2,
        ..Rules::default()
    };
    let (orders, ids) = (RecordingOrders::default(), SeededIds::new(1));
    let clock = Ticking::from(now().plus_ms(60_000));
    let swept = sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert!(swept.behind && swept.items == 1, "{swept:?}");
    assert_eq!(expired(&store), ["z"]);
}

#[tokio::test]
async fn what_fails_for_good_does_not_keep_a_run_from_all_else() {
    let store = holding([
        ending("a", 10_000),
        ending("b", 10_000),
        ending("c", 20_000),
    ]);
    // Without their nodes, the terms of two reservations cannot be ended.
    store.tamper(|world| world.nodes.retain(|node, _| node.as_str() == "c"));
    let rules = Rules {
        items_max: 2,
        ..Rules::default()
    };
    let (orders, ids) = (RecordingOrders::default(), SeededIds::new(1));
    let clock = TestClock::at(now().plus_ms(60_000));
    let first = sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert_eq!((first.failed, first.expired), (2, 0));
    clock.advance_ms(1_000);
    let second = sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert_eq!((second.failed, second.expired), (0, 1), "{second:?}");
    clock.advance_ms(60_000);
    let third = sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert_eq!(third.failed, 2, "they are tried again: {third:?}");
}

#[tokio::test]
async fn a_stop_that_is_overdue_is_told_although_no_order_goes_out() {
    let (reservation, pool) = reserved(&node(4), 0..2);
    let store = holding([(reservation, pool)]);
    let orders = RecordingOrders::default();
    let (at, name) = (id(NODE), id(RESERVATION));
    let units = unit_set(0..1);
    let release = Release {
        units: units.clone(),
        expected: None,
        stamp: stamp(manager(), 1),
    };
    store.release(&at, &name, &release).await.unwrap();
    let custodian = Custodian::Reservation(id(RESERVATION));
    let (vm, by) = (spot("spot-0", 0..1), stamp(stranger(), 2));
    let placed = store.place(&vm, &custodian, &by).await;
    assert_eq!(placed, Ok(Commit::Done));
    let reclaim = Reclaim {
        units,
        expected: None,
        stamp: stamp(manager(), 3),
    };
    store.reclaim(&at, &name, &reclaim).await.unwrap();
    let (clock, ids, rules) = (TestClock::default(), SeededIds::new(1), Rules::default());
    sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert_eq!(orders.vms(), [id("spot-0")]);
    clock.advance_ms(rules.stuck_after_ms);
    orders.fail_next(u32::MAX);
    let swept = sweep(&store, &orders, &clock, &ids, &rules).await.unwrap();
    assert_eq!((swept.failed, swept.stuck), (1, 1), "{swept:?}");
    let vm = store.world().vms.into_values().next().unwrap();
    assert_eq!(vm.stuck_at, Some(clock.now()));
}
