//! What of the store in memory could go wrong by itself. The full contract is tested elsewhere,
//! over this store and the real one.

mod reads;

use std::collections::BTreeSet;

use app::StoreError;
use app::ports::{
    Commit, CondemnVm, CountAttempt, Custodian, CustodyMove, FindMarket, ListReservations, ListVms,
    LoadKey, LoadReservations, LoadVms, MoveCustody, PlaceVm, PutAudit, PutKey, PutNode, ReadAudit,
    ReclaimUnits, Recorded, ReleaseUnits, SettleKind, SettleVm, Settlement, Write,
};
use domain::audit::events;
use domain::reservation::{End, Ended, Reclaim, Release, end};
use domain::vm::Sentence;
use domain::{Caller, Reservation, ReservationId, Tier, Version, VmStatus};

use super::*;
use crate::fixtures::{self, id, manager, node, operator, owner, stamp, stranger, unit_set, units};
use crate::random::Rng;

fn is_a_store(_: &impl crate::Store) {}

/// A store with the node of 8 units, of which the reservation holds the first 4.
async fn fleet() -> MemoryStore {
    let store = MemoryStore::default();
    is_a_store(&store);
    let before = node(8);
    let put = store.put_node(&before, &fixtures::write(0xe001)).await;
    assert_eq!(put, Ok(Write::Done(())));
    let (reservation, after) = fixtures::reserved(&before, 0..4);
    let change = CustodyMove {
        node_seen: before.version,
        node: after,
        reservation_seen: None,
        reservation,
        write: fixtures::write(0xe002),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    assert_eq!(
        store.move_custody(&change).await,
        Ok(Commit::Done),
        "the same write again"
    );
    store
}

fn present(store: &MemoryStore) -> Reservation {
    let world = store.world();
    world
        .reservation(&id(fixtures::NODE), &id(fixtures::RESERVATION))
        .unwrap()
        .clone()
}

fn key() -> (NodeId, ReservationId) {
    (id(fixtures::NODE), id(fixtures::RESERVATION))
}

fn release_of(by: Caller, write: u64, unit: usize) -> Release {
    Release {
        units: unit_set([unit]),
        expected: None,
        stamp: stamp(by, write),
    }
}

async fn released(store: &MemoryStore, write: u64, unit: usize) -> Version {
    let (node, reservation) = key();
    let command = release_of(manager(), write, unit);
    match store.release(&node, &reservation, &command).await.unwrap() {
        Write::Done(landed) => landed.version,
        other => panic!("{other:?}"),
    }
}

async fn placed(store: &MemoryStore, name: &str, tier: Tier, unit: usize, write: u64) -> Commit {
    let vm = fixtures::vm(name, tier, fixtures::AUDIENCE_ORG, [unit]);
    let custodian = if unit < 4 {
        Custodian::Reservation(id(fixtures::RESERVATION))
    } else {
        Custodian::Pool
    };
    let stamp = stamp(fixtures::audience(), write);
    store.place(&vm, &custodian, &stamp).await.unwrap()
}

#[tokio::test]
async fn a_release_lands_once_and_is_known_again_after_others_wrote() {
    let store = fleet().await;
    let (node, reservation) = key();
    let first = released(&store, 0x11, 0).await;
    let second = released(&store, 0x12, 1).await;
    assert_eq!(second, first.next());
    assert_eq!(
        released(&store, 0x11, 0).await,
        first,
        "its own version, though another wrote"
    );
    assert_eq!(present(&store).version, second);
    let refused = release_of(stranger(), 0x13, 2);
    let answer = store.release(&node, &reservation, &refused).await;
    assert_eq!(answer, Ok(Write::Refused(present(&store))));
    let nowhere = store.release(&node, &id("res-none"), &refused).await;
    assert_eq!(nowhere, Ok(Write::Absent));
}

#[tokio::test]
async fn a_reclaim_condemns_and_the_seat_comes_free_with_the_confirmation() {
    let store = fleet().await;
    let (node, reservation) = key();
    released(&store, 0x11, 0).await;
    assert_eq!(
        placed(&store, "vm-s", Tier::Spot, 0, 0x14).await,
        Commit::Done
    );
    assert_eq!(
        placed(&store, "vm-s", Tier::Spot, 0, 0x14).await,
        Commit::Done,
        "again"
    );
    assert_eq!(
        placed(&store, "vm-t", Tier::Spot, 0, 0x15).await,
        Commit::Lost,
        "taken"
    );
    let reclaim = Reclaim {
        units: unit_set([0]),
        expected: None,
        stamp: stamp(owner(), 0x16),
    };
    let answer = store.reclaim(&node, &reservation, &reclaim).await.unwrap();
    assert!(matches!(answer, Write::Done(landed) if landed.image.released.is_empty()));
    let sentence = Sentence {
        reservation: Some(reservation.clone()),
        version: present(&store).version,
        at: fixtures::now(),
    };
    let vm = store
        .condemn(&id("vm-s"), &sentence, "reclaimed")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(vm.status, VmStatus::Terminating);
    assert_eq!(
        store.condemn(&id("vm-s"), &sentence, "twice").await,
        Ok(Some(vm.clone()))
    );
    assert_eq!(
        store.condemn(&id("vm-x"), &sentence, "none").await,
        Ok(None)
    );
    store.count_attempt(&id("vm-s")).await.unwrap();
    let change = Settlement {
        kind: SettleKind::Confirm,
        vm: domain::Vm {
            status: VmStatus::Terminated,
            ..vm
        },
        seen: VmStatus::Terminating,
        seats: vec![(Custodian::Reservation(reservation), units([0]))],
        note: None,
        stamp: fixtures::system_stamp(0x17),
    };
    assert_eq!(store.settle(&change).await, Ok(Commit::Done));
    let version = present(&store).version;
    assert_eq!(
        store.settle(&change).await,
        Ok(Commit::Done),
        "the same write again"
    );
    assert_eq!(present(&store).version, version);
    let gone = store.load_vm(&id("vm-s")).await.unwrap().unwrap();
    assert_eq!((gone.status, gone.attempts), (VmStatus::Terminated, 1));
    assert_eq!(
        placed(&store, "vm-c", Tier::Community, 0, 0x18).await,
        Commit::Done
    );
    assert_eq!(store.world().violations(), []);
}

#[tokio::test]
async fn a_settlement_is_lost_if_a_seat_is_not_where_it_was_read() {
    let store = fleet().await;
    assert_eq!(
        placed(&store, "vm-p", Tier::Verified, 5, 0x14).await,
        Commit::Done
    );
    let vm = store.load_vm(&id("vm-p")).await.unwrap().unwrap();
    let stopped = domain::Vm {
        status: VmStatus::Terminating,
        ..vm
    };
    let stop = |seen, custodian, unit| Settlement {
        kind: SettleKind::Stop,
        vm: stopped.clone(),
        seen,
        seats: vec![(custodian, units([unit]))],
        note: None,
        stamp: stamp(fixtures::audience(), 0x15),
    };
    let before = store.world();
    let elsewhere = Custodian::Reservation(id(fixtures::RESERVATION));
    for lost in [
        stop(VmStatus::Running, elsewhere, 0),
        stop(VmStatus::Running, Custodian::Pool, 6),
        stop(VmStatus::Terminating, Custodian::Pool, 5),
    ] {
        assert_eq!(store.settle(&lost).await, Ok(Commit::Lost), "{lost:?}");
    }
    assert_eq!(store.world(), before, "a lost change changes nothing");
    let right = stop(VmStatus::Running, Custodian::Pool, 5);
    assert_eq!(store.settle(&right).await, Ok(Commit::Done));
    let world = store.world();
    let condemned = domain::slot::condemned(
        &world.nodes[&id(fixtures::NODE)].slots,
        domain::slot::Offer::All,
    );
    assert!(condemned.contains_key(&id("vm-p")));
}

#[tokio::test]
async fn a_move_needs_both_versions_and_sound_items() {
    let store = fleet().await;
    let world = store.world();
    let command = End {
        expected: None,
        stamp: stamp(operator(), 0x20),
    };
    let old = &world.nodes[&id(fixtures::NODE)];
    let Ok(Ended::Now(ended)) = end(&present(&store), old, &command) else {
        panic!("the reservation is active");
    };
    let mut change = CustodyMove {
        node_seen: old.version,
        node: ended.1,
        reservation_seen: Some(present(&store).version),
        reservation: ended.0,
        write: fixtures::write(0x20),
    };
    released(&store, 0x11, 0).await;
    assert_eq!(
        store.move_custody(&change).await,
        Ok(Commit::Lost),
        "the reservation went on"
    );
    change.reservation_seen = Some(present(&store).version);
    change.node_seen = old.version.next();
    assert_eq!(
        store.move_custody(&change).await,
        Ok(Commit::Lost),
        "the node's version is not that"
    );
    change.node_seen = old.version;
    let sound = change.reservation.clone();
    change.reservation.released = units([0]);
    let corrupt = store.move_custody(&change).await;
    assert!(
        matches!(corrupt, Err(StoreError::Corrupt(_))),
        "{corrupt:?}"
    );
    change.reservation = sound;
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    assert_eq!(store.world().violations(), []);
}

#[tokio::test]
async fn a_lost_reply_leaves_the_write_and_a_failure_before_it_does_not() {
    let store = fleet().await;
    let (node, reservation) = key();
    let before = present(&store);
    let lost = || StoreError::Unavailable("told to fail".to_owned());
    store.inject(&[
        Fault::Before(StoreError::Throttled),
        Fault::Pass,
        Fault::After(lost()),
    ]);
    let command = release_of(manager(), 0x11, 0);
    let failed = store.release(&node, &reservation, &command).await;
    assert_eq!(failed, Err(StoreError::Throttled));
    let read = store.load_reservation(&node, &reservation).await;
    assert_eq!(read, Ok(Some(before.clone())));
    let failed = store.release(&node, &reservation, &command).await;
    assert_eq!(failed, Err(lost()));
    assert_eq!(present(&store).version, before.version.next());
    assert_eq!(released(&store, 0x11, 0).await, before.version.next());
}
