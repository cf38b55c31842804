//! A term that is over grants nothing from its last instant on, whether or not that is written.

use domain::{Refusal, ReservationId, Status};
use testkit::fixtures::{manager, operator, owner, units};
use testkit::play::MINUTE_MS;
use testkit::{Play, Store};

use crate::{refused, sold_out};

const HOUR_MS: i64 = 60 * MINUTE_MS;
const EXPIRED: Refusal = Refusal::ReservationNotActive(Status::Expired);

/// A reservation of the units 0 and 1 for an hour, with unit 0 released; the clock is a millisecond
/// before its end.
async fn ending<S: Store>(store: S) -> (Play<S>, ReservationId) {
    let play = Play::set(store, 4).await;
    let id = play.reserve(0..2, None, Some(play.from_now(HOUR_MS))).await;
    play.release(&id, 0..1, manager()).await.unwrap();
    play.clock.advance_ms(HOUR_MS - 1);
    (play, id)
}

async fn the_verbs_are_refused_from_the_last_instant_on(store: impl Store) {
    let (play, id) = ending(store).await;
    for by in [manager(), owner(), operator()] {
        play.release(&id, 0..1, by).await.unwrap();
    }
    play.clock.advance_ms(1);
    let before = play.reservation(&id).await;
    for by in [manager(), owner(), operator()] {
        assert_eq!(refused(play.release(&id, 1..2, by.clone()).await), EXPIRED);
        assert_eq!(refused(play.reclaim(&id, 0..1, by.clone()).await), EXPIRED);
        assert_eq!(refused(play.dry_run(&id, 0..1, by).await), EXPIRED);
    }
    assert_eq!(refused(play.end(&id).await), EXPIRED);
    assert_eq!(play.reservation(&id).await, before, "nothing is written");
}

async fn nothing_is_placed_on_it_and_its_units_are_everybodys(store: impl Store) {
    let (play, id) = ending(store).await;
    play.place_tenant(&id, 1..2).await.unwrap();
    let tenant = play.place_tenant(&id, 1..2).await;
    assert!(sold_out(tenant), "the unit is taken");
    play.clock.advance_ms(1);
    assert!(sold_out(play.place_tenant(&id, 0..1).await));
    let bought = play.buy_spot(0..1).await.unwrap();
    assert_eq!(bought.reservation, None);
    let after = play.reservation(&id).await;
    assert_eq!(after.status, Status::Expired);
    assert!(after.slots.is_empty() && after.released.is_empty());
    assert_eq!(play.sweep().await.expired, 0, "it is written");
}

async fn the_next_reservation_takes_its_units_at_that_instant(store: impl Store) {
    let (play, first) = ending(store).await;
    let early = play.try_reserve(0..1, None, None).await;
    assert!(matches!(
        refused(early),
        Refusal::UnitsAlreadyReserved(_, Some(at)) if at == play.from_now(1)
    ));
    play.clock.advance_ms(1);
    let second = play.reserve(0..1, None, None).await;
    assert_eq!(play.reservation(&first).await.status, Status::Expired);
    let second = play.reservation(&second).await;
    assert_eq!(second.status, Status::Active);
    assert!(second.slots.keys().eq(units(0..1).iter()));
}

async fn a_report_of_topology_leaves_it_alone(store: impl Store) {
    let (play, id) = ending(store).await;
    play.clock.advance_ms(1);
    let node = play.report(1..4).await.unwrap();
    assert!(node.bookings.is_empty());
    assert!(node.slots.keys().eq(units(1..4).iter()));
    assert_eq!(play.reservation(&id).await.status, Status::Expired);
}

async fn a_pending_one_that_ran_out_unseen_expires(store: impl Store) {
    let play = Play::set(store, 4).await;
    let term = (play.from_now(1_000), play.from_now(2_000));
    let id = play.reserve(0..2, Some(term.0), Some(term.1)).await;
    play.clock.advance_ms(2_000);
    assert_eq!(refused(play.release(&id, 0..1, owner()).await), EXPIRED);
    assert_eq!(
        refused(play.reaffirm(&id).await),
        Refusal::NotInReview(Status::Expired)
    );
    let swept = play.sweep().await;
    assert_eq!((swept.activated, swept.expired), (0, 1));
    assert!(play.node().await.bookings.is_empty());
}

on_both!(
    the_verbs_are_refused_from_the_last_instant_on,
    nothing_is_placed_on_it_and_its_units_are_everybodys,
    the_next_reservation_takes_its_units_at_that_instant,
    a_report_of_topology_leaves_it_alone,
    a_pending_one_that_ran_out_unseen_expires,
);
