//! Slots that change hands: a node and a reservation written together or not at all.

use app::StoreError;
use app::ports::{Commit, CustodyMove};
use domain::reservation::{End, Ended, end};
use testkit::Store;
use testkit::fixtures::{self, NODE, id, operator, stamp, unit_set, units, write};

use super::{
    command_for, fleet, held, pool, present, registered, released, reservation_id, reserve, spot,
};

on_both!(
    both_items_are_written_as_they_are_given,
    a_move_is_lost_if_the_node_has_changed,
    a_move_is_lost_if_the_reservation_has_changed,
    a_new_reservation_takes_no_other_ones_place,
    a_move_between_things_that_are_not_there_is_lost,
    a_move_that_comes_again_is_known_even_after_others_wrote,
    an_unsound_item_is_not_written,
);

/// The end of the reservation as it is now.
async fn ending(store: &impl Store, number: u64) -> CustodyMove {
    let (reservation, node) = (present(store).await, pool(store).await);
    let command = End {
        expected: None,
        stamp: stamp(operator(), number),
    };
    let Ok(Ended::Now(after)) = end(&reservation, &node, &command) else {
        panic!("the reservation is active: {reservation:?}");
    };
    CustodyMove {
        node_seen: node.version,
        node: after.1,
        reservation_seen: Some(reservation.version),
        reservation: after.0,
        write: command.stamp.write,
    }
}

/// Fails unless the move is lost and leaves everything as it is.
async fn lost(store: &impl Store, change: &CustodyMove) {
    let before = (present(store).await, pool(store).await);
    assert_eq!(store.move_custody(change).await, Ok(Commit::Lost));
    assert_eq!((present(store).await, pool(store).await), before);
}

async fn both_items_are_written_as_they_are_given(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, 0..4).await;
    spot(&store, "vm-s", [0, 1], &held(), 0x12).await;
    let change = ending(&store, 0x13).await;
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    assert_eq!(present(&store).await, change.reservation);
    assert_eq!(pool(&store).await, change.node);
    assert_eq!(change.node.slots.len(), 8, "all units are in the pool");
}

async fn a_move_is_lost_if_the_node_has_changed(store: impl Store) {
    fleet(&store).await;
    let change = ending(&store, 0x13).await;
    spot(&store, "vm-s", [5], &app::ports::Custodian::Pool, 0x12).await;
    lost(&store, &change).await;
}

async fn a_move_is_lost_if_the_reservation_has_changed(store: impl Store) {
    fleet(&store).await;
    let change = ending(&store, 0x13).await;
    released(&store, 0x11, [0]).await;
    lost(&store, &change).await;
    let fresh = ending(&store, 0x14).await;
    assert_eq!(store.move_custody(&fresh).await, Ok(Commit::Done));
}

async fn a_new_reservation_takes_no_other_ones_place(store: impl Store) {
    fleet(&store).await;
    let ended = ending(&store, 0x20).await;
    assert_eq!(store.move_custody(&ended).await, Ok(Commit::Done));
    let before = pool(&store).await;
    let command = command_for(fixtures::RESERVATION, 0x21, unit_set([5]));
    let (reservation, node) = fixtures::reserve_with(&before, &command);
    let change = CustodyMove {
        node_seen: before.version,
        node,
        reservation_seen: None,
        reservation,
        write: command.stamp.write,
    };
    lost(&store, &change).await;
}

async fn a_move_between_things_that_are_not_there_is_lost(store: impl Store) {
    fleet(&store).await;
    let mut change = ending(&store, 0x13).await;
    change.reservation.id = id("res-none");
    lost(&store, &change).await;
    let found = store.load_reservation(&id(NODE), &id("res-none")).await;
    assert_eq!(found, Ok(None));
    let mut change = ending(&store, 0x14).await;
    change.node.id = id("node-2");
    lost(&store, &change).await;
    assert_eq!(store.load_node(&id("node-2")).await, Ok(None));
}

async fn a_move_that_comes_again_is_known_even_after_others_wrote(store: impl Store) {
    registered(&store, 8).await;
    let before = pool(&store).await;
    let made = reserve(&store, &command_for("res-1", 0x21, unit_set([0]))).await;
    let after = pool(&store).await;
    let change = CustodyMove {
        node_seen: before.version,
        node: after.clone(),
        reservation_seen: None,
        reservation: made,
        write: write(0x21),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    released(&store, 0x22, [0]).await;
    reserve(&store, &command_for("res-2", 0x23, unit_set([1]))).await;
    let present = (present(&store).await, pool(&store).await);
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    let found = store.load_reservation(&id(NODE), &reservation_id()).await;
    assert_eq!(found, Ok(Some(present.0)), "and nothing was undone");
    assert_eq!(pool(&store).await, present.1);
}

async fn an_unsound_item_is_not_written(store: impl Store) {
    fleet(&store).await;
    let before = (present(&store).await, pool(&store).await);
    let good = ending(&store, 0x13).await;
    let mut offering = good.clone();
    offering.reservation.released = units([0]);
    let mut holding = good.clone();
    holding.reservation.slots = before.0.slots.clone();
    let mut twice = good;
    twice.node.bookings.clone_from(&before.1.bookings);
    for change in [offering, holding, twice] {
        let answer = store.move_custody(&change).await;
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
        assert_eq!((present(&store).await, pool(&store).await), before);
    }
}
