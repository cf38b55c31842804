//! What follows from changes, over the store in memory: repeats, any order, failures in between.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use app::StoreError;
use app::ports::{Custodian, PlaceVm, ReclaimUnits, ReleaseUnits, TerminationOrder};
use app::react::{Change, ReactError, react};
use app::trail::PREDECESSOR_WAIT_MS;
use domain::audit::{EventType, Record, verify};
use domain::reservation::{Reclaim, Release};
use domain::{Node, Reservation, Tier, Timestamp, VmStatus};
use testkit::fixtures::{
    NODE, RESERVATION, STRANGER_ORG, id, manager, node, now, reserved, stamp, stranger, unit_set,
    vm,
};
use testkit::memory::Fault;
use testkit::{MemoryStore, RecordingOrders, World};

/// A life with a sale and a reclaim, as the stream tells it, and the store after it.
async fn story() -> (MemoryStore, Vec<Change>) {
    let (made, pool) = reserved(&node(4), 0..3);
    let store = MemoryStore::holding(World {
        nodes: [(id(NODE), pool.clone())].into(),
        reservations: [((id(NODE), id(RESERVATION)), made.clone())].into(),
        ..World::default()
    });
    let image = |store: &MemoryStore| -> Reservation {
        store.world().reservations.into_values().next().unwrap()
    };
    let mut images = vec![made];
    let release = Release {
        units: unit_set(0..2),
        expected: None,
        stamp: stamp(manager(), 10),
    };
    store
        .release(&id(NODE), &id(RESERVATION), &release)
        .await
        .unwrap();
    images.push(image(&store));
    for (place, name) in ["spot-0", "spot-1"].into_iter().enumerate() {
        let spot = vm(name, Tier::Spot, STRANGER_ORG, place..=place);
        let custodian = Custodian::Reservation(id(RESERVATION));
        let number = 11 + u64::try_from(place).unwrap();
        store
            .place(&spot, &custodian, &stamp(stranger(), number))
            .await
            .unwrap();
        images.push(image(&store));
    }
    let reclaim = Reclaim {
        units: unit_set(0..1),
        expected: None,
        stamp: stamp(manager(), 20),
    };
    store
        .reclaim(&id(NODE), &id(RESERVATION), &reclaim)
        .await
        .unwrap();
    images.push(image(&store));
    let mut changes = vec![change(None, &images[0])];
    changes.extend(
        images
            .windows(2)
            .map(|pair| change(Some(&pair[0]), &pair[1])),
    );
    (store, changes)
}

fn change(old: Option<&Reservation>, new: &Reservation) -> Change {
    Change::Reservation {
        old: old.map(|old| Box::new(old.clone())),
        new: Box::new(new.clone()),
    }
}

fn trail(store: &MemoryStore) -> Vec<Record> {
    store
        .world()
        .audit
        .into_values()
        .flat_map(std::collections::BTreeMap::into_values)
        .collect()
}

fn version(store: &MemoryStore) -> domain::Version {
    store
        .world()
        .reservations
        .into_values()
        .next()
        .unwrap()
        .version
}

async fn all(store: &MemoryStore, orders: &RecordingOrders, changes: &[Change]) {
    for change in changes {
        react(store, orders, now(), change).await.unwrap();
    }
}

#[tokio::test]
async fn the_condemned_vm_and_no_other_is_marked_and_ordered_to_stop() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    all(&store, &orders, &changes).await;
    let sent = orders.sent();
    let expected = TerminationOrder {
        vm: id("spot-0"),
        node: id(NODE),
        reservation: Some(id(RESERVATION)),
        version: version(&store),
    };
    assert_eq!(sent, [expected]);
    let world = store.world();
    assert_eq!(world.vms[&id("spot-0")].status, VmStatus::Terminating);
    assert!(
        world.vms[&id("spot-0")]
            .status_reason
            .as_ref()
            .unwrap()
            .contains(RESERVATION)
    );
    assert_eq!(world.vms[&id("spot-1")].status, VmStatus::Running);
    assert!(verify(&trail(&store), version(&store)).is_ok());
}

#[tokio::test]
async fn repeating_any_tail_changes_nothing() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    all(&store, &orders, &changes).await;
    let (vms, records) = (store.world().vms, trail(&store));
    for from in 0..changes.len() {
        all(&store, &orders, &changes[from..]).await;
        assert_eq!(store.world().vms, vms, "from {from}");
        assert_eq!(trail(&store), records, "from {from}");
    }
    let told: BTreeSet<_> = orders.vms().into_iter().collect();
    assert_eq!(
        told,
        [id("spot-0")].into(),
        "repeats may repeat an order, never add one"
    );
}

#[tokio::test]
async fn an_order_that_was_not_taken_fails_the_change_and_comes_again() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    let (last, before) = changes.split_last().unwrap();
    all(&store, &orders, before).await;
    orders.fail_next(1);
    let failed = react(&store, &orders, now(), last).await;
    assert!(matches!(failed, Err(ReactError::Send(_))));
    assert_eq!(orders.sent(), []);
    react(&store, &orders, now(), last).await.unwrap();
    assert_eq!(orders.vms(), [id("spot-0")]);
}

#[tokio::test]
async fn a_record_waits_for_the_one_before_it() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    react(&store, &orders, now(), &changes[0]).await.unwrap();
    let early = react(&store, &orders, now(), &changes[2]).await;
    assert!(matches!(early, Err(ReactError::Waiting(..))));
    all(&store, &orders, &changes[1..]).await;
    assert!(verify(&trail(&store), version(&store)).is_ok());
}

#[tokio::test]
async fn what_is_lost_for_good_becomes_one_gap_and_the_chain_goes_on() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    react(&store, &orders, now(), &changes[0]).await.unwrap();
    let later: Timestamp = now().plus_ms(PREDECESSOR_WAIT_MS);
    for change in &changes[3..] {
        react(&store, &orders, later, change).await.unwrap();
    }
    let records = trail(&store);
    let verified = verify(&records, version(&store)).unwrap();
    assert_eq!(verified.gaps.len(), 1);
    let gaps: Vec<u64> = records
        .iter()
        .filter(|record| record.event.event == EventType::Gap)
        .map(|record| record.event.version.get())
        .collect();
    assert_eq!(gaps, [3], "versions 2 and 3 were lost");
    assert_eq!(orders.vms(), [id("spot-0")], "a gap loses no termination");
}

#[tokio::test]
async fn a_vm_that_is_gone_or_unknown_gets_no_order() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    store.tamper(|world| {
        world.vms.remove(&id("spot-0"));
    });
    all(&store, &orders, &changes).await;
    assert_eq!(orders.sent(), []);
}

#[tokio::test]
async fn records_of_one_transaction_may_come_in_either_order() {
    let pool = node(4);
    let spot = vm("wide", Tier::Spot, STRANGER_ORG, 0..2);
    let pool = pool.place(&spot, &stamp(stranger(), 5)).unwrap();
    let (made, after): (Reservation, Node) = reserved(&pool, 0..1);
    let of_node = Change::Node {
        old: Some(Box::new(pool.clone())),
        new: Box::new(after.clone()),
    };
    let of_reservation = change(None, &made);
    let mut outcomes = Vec::new();
    for order in [[&of_node, &of_reservation], [&of_reservation, &of_node]] {
        let store = MemoryStore::holding(World {
            nodes: [(id(NODE), after.clone())].into(),
            reservations: [((id(NODE), id(RESERVATION)), made.clone())].into(),
            vms: [(spot.id.clone(), spot.clone())].into(),
            ..World::default()
        });
        let orders = RecordingOrders::default();
        for change in order {
            react(&store, &orders, now(), change).await.unwrap();
        }
        let told: BTreeSet<_> = orders.vms().into_iter().collect();
        let statuses: Vec<_> = store
            .world()
            .vms
            .into_values()
            .map(|vm| vm.status)
            .collect();
        outcomes.push((told, statuses, trail(&store)));
    }
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0].1, [VmStatus::Terminating]);
}

#[tokio::test]
async fn changes_of_other_items_have_no_consequence() {
    let (store, _) = story().await;
    let before = store.world();
    let done = react(&store, &RecordingOrders::default(), now(), &Change::Other)
        .await
        .unwrap();
    assert_eq!(done, app::react::Reaction::default());
    assert_eq!(store.world(), before);
}

#[tokio::test]
async fn the_trail_does_not_wait_for_orders_that_nobody_takes() {
    let (store, changes) = story().await;
    let orders = RecordingOrders::default();
    let (last, before) = changes.split_last().unwrap();
    all(&store, &orders, before).await;
    // What drives the function gives a record up that fails too often: all that it tells is lost.
    orders.fail_next(u32::MAX);
    let failed = react(&store, &orders, now(), last).await;
    assert!(matches!(failed, Err(ReactError::Send(_))), "{failed:?}");
    let verified = verify(&trail(&store), version(&store)).unwrap();
    assert!(verified.gaps.is_empty(), "{verified:?}");
}

#[tokio::test]
async fn a_vm_that_cannot_be_marked_does_not_keep_the_others_running() {
    let (store, mut changes) = story().await;
    let orders = RecordingOrders::default();
    let Some(Change::Reservation { old, .. }) = changes.pop() else {
        unreachable!("the reclaim is the last change");
    };
    let reclaim = Reclaim {
        units: unit_set(1..2),
        expected: None,
        stamp: stamp(manager(), 21),
    };
    let (at, name) = (id(NODE), id(RESERVATION));
    store.reclaim(&at, &name, &reclaim).await.unwrap();
    let new = store.world().reservations.into_values().next().unwrap();
    let both = change(old.as_deref(), &new);
    store.inject(&[Fault::Before(StoreError::Corrupt("spot-0".to_owned()))]);
    let failed = react(&store, &orders, now(), &both).await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(orders.vms(), [id("spot-1")]);
}
