//! What a store owes, port by port: one suite that runs over the store in memory and over the real
//! one on the engine, so that the first may stand for the second in other tests.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[macro_use]
extern crate relet_tests;

mod audit;
mod due;
mod engines;
mod keys;
mod lists;
mod moves;
mod once;
mod places;
mod registry;
mod reservations;
mod settlements;
mod topology;
mod verbs;
mod vms;

use app::ports::{
    Commit, Custodian, CustodyMove, Landed, SettleKind, Settlement, StoreResult, Write,
};
use domain::reservation::{Reclaim, Release, Reserve};
use domain::{
    Caller, Node, Reservation, ReservationId, Stamp, Tier, UnitSet, Version, Vm, VmStatus,
};
use testkit::Store;
use testkit::fixtures::{self, NODE, RESERVATION, id, stamp, unit_set, write};

/// Registers the node, with so many units in its pool.
async fn registered(store: &impl Store, unit_count: usize) -> Node {
    let node = fixtures::node(unit_count);
    let put = store.put_node(&node, &write(0xe001)).await;
    assert_eq!(put, Ok(Write::Done(())));
    node
}

/// The node of 8 units, of which the reservation holds the first 4.
async fn fleet(store: &impl Store) {
    registered(store, 8).await;
    reserve(store, &fixtures::reserve_command(0..4)).await;
}

/// Makes this reservation on the node as it is now.
async fn reserve(store: &impl Store, command: &Reserve) -> Reservation {
    let before = pool(store).await;
    let (reservation, after) = fixtures::reserve_with(&before, command);
    let change = CustodyMove {
        node_seen: before.version,
        node: after,
        reservation_seen: None,
        reservation,
        write: command.stamp.write.clone(),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    change.reservation
}

/// The command that makes a reservation of this id on these units.
fn command_for(name: &str, number: u64, units: UnitSet) -> Reserve {
    Reserve {
        id: id(name),
        units,
        stamp: stamp(fixtures::owner(), number),
        ..fixtures::reserve_command([0])
    }
}

/// Changes the stored reservation past all rules but those of an image by itself.
async fn rewrite(store: &impl Store, number: u64, edit: impl FnOnce(&mut Reservation)) {
    let (node, mut reservation) = (pool(store).await, present(store).await);
    let seen = reservation.version;
    edit(&mut reservation);
    reservation.version = seen.next();
    let change = CustodyMove {
        node_seen: node.version,
        node,
        reservation_seen: Some(seen),
        reservation,
        write: write(number),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
}

async fn present(store: &impl Store) -> Reservation {
    let found = store.load_reservation(&id(NODE), &id(RESERVATION)).await;
    found.unwrap().unwrap()
}

async fn pool(store: &impl Store) -> Node {
    store.load_node(&id(NODE)).await.unwrap().unwrap()
}

async fn vm(store: &impl Store, name: &str) -> Vm {
    store.load_vm(&id(name)).await.unwrap().unwrap()
}

fn held() -> Custodian {
    Custodian::Reservation(reservation_id())
}

fn reservation_id() -> ReservationId {
    id(RESERVATION)
}

fn release_of(by: Caller, number: u64, units: impl IntoIterator<Item = usize>) -> Release {
    Release {
        units: unit_set(units),
        expected: None,
        stamp: stamp(by, number),
    }
}

fn reclaim_of(by: Caller, number: u64, units: impl IntoIterator<Item = usize>) -> Reclaim {
    Reclaim {
        units: unit_set(units),
        expected: None,
        stamp: stamp(by, number),
    }
}

type Answer = StoreResult<Write<Landed, Reservation>>;

async fn release(store: &impl Store, command: &Release) -> Answer {
    store.release(&id(NODE), &reservation_id(), command).await
}

async fn reclaim(store: &impl Store, command: &Reclaim) -> Answer {
    store.reclaim(&id(NODE), &reservation_id(), command).await
}

/// What a write that must go through left.
fn landed(answer: Answer) -> Landed {
    match answer {
        Ok(Write::Done(landed)) => landed,
        other => panic!("the write goes through: {other:?}"),
    }
}

/// Has the manager release these units.
async fn released(store: &impl Store, number: u64, units: impl IntoIterator<Item = usize>) {
    let command = release_of(fixtures::manager(), number, units);
    landed(release(store, &command).await);
}

/// Has the manager reclaim these units.
async fn reclaimed(
    store: &impl Store,
    number: u64,
    units: impl IntoIterator<Item = usize>,
) -> Landed {
    let command = reclaim_of(fixtures::manager(), number, units);
    landed(reclaim(store, &command).await)
}

/// Places a VM of this org, by a call of its own.
async fn place(
    store: &impl Store,
    (name, tier, org): (&str, Tier, &str),
    units: impl IntoIterator<Item = usize>,
    custodian: &Custodian,
    number: u64,
) -> Commit {
    let vm = fixtures::vm(name, tier, org, units);
    let stamp = stamp(fixtures::caller(org), number);
    store.place(&vm, custodian, &stamp).await.unwrap()
}

/// Places a spot VM of a stranger.
async fn spot(
    store: &impl Store,
    name: &str,
    units: impl IntoIterator<Item = usize>,
    custodian: &Custodian,
    number: u64,
) {
    let buyer = (name, Tier::Spot, fixtures::STRANGER_ORG);
    let placed = place(store, buyer, units, custodian, number).await;
    assert_eq!(placed, Commit::Done, "{name} finds its units free");
}

/// The change that stops this VM or confirms its stop, from what the store has of it.
fn settlement(
    kind: SettleKind,
    vm: &Vm,
    seats: Vec<(Custodian, std::collections::BTreeSet<domain::UnitId>)>,
    stamp: Stamp,
) -> Settlement {
    let status = match kind {
        SettleKind::Stop | SettleKind::Stuck => VmStatus::Terminating,
        SettleKind::Confirm => VmStatus::Terminated,
    };
    Settlement {
        kind,
        vm: Vm {
            status,
            status_reason: Some("for a test".to_owned()),
            stuck_at: (kind == SettleKind::Stuck).then_some(stamp.now),
            updated_at: stamp.now,
            ..vm.clone()
        },
        seen: vm.status,
        seats,
        note: None,
        stamp,
    }
}

fn version(number: u64) -> Version {
    Version::stored(number).unwrap()
}
