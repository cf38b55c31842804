//! A node's topology, written with all the reservations that it puts under review.

use app::ports::{Commit, Custodian, TopologyChange};
use domain::node::Report;
use domain::{Node, Reservation, Status};
use testkit::Store;
use testkit::fixtures::{self, NODE, id, owner, unit, unit_set};

use super::{
    command_for, fleet, place, pool, present, registered, released, reservation_id, reserve, stamp,
};

on_both!(
    node_and_reservations_are_written_together,
    all_the_reservations_that_a_node_can_have_fit_into_one_report,
    a_report_is_lost_if_the_node_has_changed,
    a_report_is_lost_if_a_reservation_has_changed,
    a_report_that_comes_again_is_known,
    a_unit_that_vanished_takes_no_vm,
);

/// The report that leaves these units out.
async fn without(store: &impl Store, gone: &[usize], number: u64) -> TopologyChange {
    let node = pool(store).await;
    let mut units = node.units.clone();
    for number in gone {
        units.remove(&unit(*number));
    }
    let report = Report {
        topology_gen: node.topology_gen + 1,
        units,
        stamp: stamp(owner(), number),
    };
    let affected = node.affected(&report);
    let images = store.load_reservations(&id(NODE), &affected).await.unwrap();
    let reported = node.report(&report, &images).unwrap();
    TopologyChange {
        node_seen: node.version,
        node: reported.node,
        reviewed: reported.reviewed,
        write: report.stamp.write,
    }
}

async fn state(store: &impl Store) -> (Node, Reservation) {
    (pool(store).await, present(store).await)
}

async fn node_and_reservations_are_written_together(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0, 1]).await;
    let mut pending = command_for("res-2", 0x12, unit_set([6, 7]));
    pending.starts = Some(fixtures::now().plus_ms(1_000));
    reserve(&store, &pending).await;
    let change = without(&store, &[0, 6, 5], 0x13).await;
    assert_eq!(change.reviewed.len(), 2);
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Done));
    let (node, reservation) = state(&store).await;
    assert_eq!(node, change.node);
    assert!(!node.slots.contains_key(&unit(5)), "nobody was on it");
    assert_eq!(reservation.status, Status::NeedsReview);
    assert_eq!(reservation.released.len(), 2, "what was on offer is kept");
    let other = store.load_reservation(&id(NODE), &id("res-2")).await;
    let other = other.unwrap().unwrap();
    assert_eq!((other.status, other.holds()), (Status::NeedsReview, false));
    assert_eq!(change.reviewed, [reservation, other]);
}

async fn all_the_reservations_that_a_node_can_have_fit_into_one_report(store: impl Store) {
    registered(&store, 96).await;
    for number in 0..96 {
        let write = 0x100 + u64::try_from(number).unwrap();
        let command = command_for(&format!("res-{number:02}"), write, unit_set([number]));
        reserve(&store, &command).await;
    }
    let all: Vec<usize> = (1..96).collect();
    let change = without(&store, &all, 0x13).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Done));
    let page = store.list_reservations(&id(NODE), None, 100).await.unwrap();
    let under_review = page
        .items
        .iter()
        .filter(|r| r.status == Status::NeedsReview);
    assert_eq!(under_review.count(), 95);
}

async fn a_report_is_lost_if_the_node_has_changed(store: impl Store) {
    fleet(&store).await;
    let change = without(&store, &[0], 0x13).await;
    reserve(&store, &command_for("res-2", 0x12, unit_set([6]))).await;
    let before = state(&store).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Lost));
    assert_eq!(state(&store).await, before);
}

async fn a_report_is_lost_if_a_reservation_has_changed(store: impl Store) {
    fleet(&store).await;
    let change = without(&store, &[0], 0x13).await;
    released(&store, 0x12, [0]).await;
    let before = state(&store).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Lost));
    assert_eq!(state(&store).await, before);
}

async fn a_report_that_comes_again_is_known(store: impl Store) {
    fleet(&store).await;
    let change = without(&store, &[0], 0x13).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Done));
    let buyer = ("vm-u", domain::Tier::Spot, fixtures::STRANGER_ORG);
    let placed = place(&store, buyer, [6], &Custodian::Pool, 0x14).await;
    assert_eq!(placed, Commit::Done);
    let before = state(&store).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Done));
    assert_eq!(state(&store).await, before);
}

async fn a_unit_that_vanished_takes_no_vm(store: impl Store) {
    fleet(&store).await;
    let (first, second) = (("vm-1", 6), ("vm-2", 6));
    let buyer = (first.0, domain::Tier::Spot, fixtures::STRANGER_ORG);
    let pool_of = Custodian::Pool;
    assert_eq!(
        place(&store, buyer, [first.1], &pool_of, 0x14).await,
        Commit::Done
    );
    let change = without(&store, &[6], 0x15).await;
    assert_eq!(store.change_topology(&change).await, Ok(Commit::Done));
    assert!(
        pool(&store).await.slots.contains_key(&unit(6)),
        "the VM stays"
    );
    // It leaves, and an empty slot of a unit that is not there any more is left.
    let there = super::vm(&store, "vm-1").await;
    let seats = vec![(Custodian::Pool, fixtures::units([6]))];
    let gone = super::settlement(
        app::ports::SettleKind::Confirm,
        &there,
        seats,
        fixtures::system_stamp(0x16),
    );
    assert_eq!(store.settle(&gone).await, Ok(Commit::Done));
    let buyer = (second.0, domain::Tier::Spot, fixtures::STRANGER_ORG);
    assert_eq!(
        place(&store, buyer, [second.1], &pool_of, 0x17).await,
        Commit::Lost
    );
    assert_eq!(present(&store).await.id, reservation_id());
}
