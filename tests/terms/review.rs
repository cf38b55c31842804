//! A reservation whose node changed under it withholds its units until an operator has looked.

use domain::{Refusal, Reservation, ReservationId, Status, VmId, VmStatus};
use testkit::fixtures::{manager, operator, owner, units};
use testkit::play::MINUTE_MS;
use testkit::{Play, Store};

use crate::{refused, sold_out};

const IN_REVIEW: Refusal = Refusal::ReservationNotActive(Status::NeedsReview);

/// A reservation of the units 0 to 3 for an hour: 0 and 1 released, a spot VM on 0, a tenant on 2.
/// Unit 3 has vanished.
struct Review<S> {
    play: Play<S>,
    id: ReservationId,
    spot: VmId,
    tenant: VmId,
    before: Reservation,
}

impl<S: Store> Review<S> {
    async fn set(store: S) -> Self {
        let play = Play::set(store, 6).await;
        let ends = play.from_now(60 * MINUTE_MS);
        let id = play.reserve(0..4, None, Some(ends)).await;
        play.release(&id, 0..2, manager()).await.unwrap();
        let spot = play.buy_spot(0..1).await.unwrap().id;
        let tenant = play.place_tenant(&id, 2..3).await.unwrap().id;
        let before = play.reservation(&id).await;
        play.clock.advance_ms(MINUTE_MS);
        play.report([0, 1, 2, 4, 5]).await.unwrap();
        Self {
            play,
            id,
            spot,
            tenant,
            before,
        }
    }

    async fn assert_nobody_stops(&self) {
        for vm in [&self.spot, &self.tenant] {
            assert_eq!(self.play.vm(vm).await.status, VmStatus::Running);
        }
        assert_eq!(self.play.terminations().await, []);
    }
}

async fn it_withholds_its_units_and_lets_whoever_is_there_be(store: impl Store) {
    let review = Review::set(store).await;
    let Review { play, id, .. } = &review;
    let there = play.reservation(id).await;
    assert_eq!(there.status, Status::NeedsReview);
    assert_eq!(there.slots.len(), 4);
    assert!(sold_out(play.buy_spot(1..2).await));
    assert!(sold_out(play.place_tenant(id, 1..2).await));
    for by in [manager(), owner(), operator()] {
        assert_eq!(refused(play.release(id, 2..3, by).await), IN_REVIEW);
    }
    assert!(matches!(
        refused(play.try_reserve(1..2, None, None).await),
        Refusal::UnitsAlreadyReserved(..)
    ));
    review.assert_nobody_stops().await;
}

async fn the_owner_and_an_operator_may_reclaim_and_a_manager_may_not(store: impl Store) {
    let review = Review::set(store).await;
    let Review { play, id, spot, .. } = &review;
    assert_eq!(refused(play.reclaim(id, 0..1, manager()).await), IN_REVIEW);
    assert_eq!(refused(play.dry_run(id, 0..1, manager()).await), IN_REVIEW);
    review.assert_nobody_stops().await;
    let reclaimed = play.reclaim(id, 1..2, operator()).await.unwrap();
    assert!(reclaimed.victims.spot.is_empty());
    let reclaimed = play.reclaim(id, 0..1, owner()).await.unwrap();
    assert_eq!(reclaimed.victims.spot, [spot.clone()].into());
    assert_eq!(reclaimed.reservation.status, Status::NeedsReview);
    assert!(reclaimed.reservation.released.is_empty());
}

async fn it_can_be_ended(store: impl Store) {
    let review = Review::set(store).await;
    let Review { play, id, .. } = &review;
    assert_eq!(play.end(id).await.unwrap().status, Status::Cancelled);
    let node = play.node().await;
    assert!(node.bookings.is_empty());
    assert!(node.slots.keys().eq(units([0, 1, 2, 4, 5]).iter()));
    review.assert_nobody_stops().await;
}

async fn it_expires_like_any_other(store: impl Store) {
    let review = Review::set(store).await;
    let Review { play, id, .. } = &review;
    play.clock.advance_ms(59 * MINUTE_MS);
    for by in [owner(), operator()] {
        let over = refused(play.reclaim(id, 0..1, by).await);
        assert_eq!(over, Refusal::ReservationNotActive(Status::Expired));
    }
    let over = refused(play.reaffirm(id).await);
    assert_eq!(over, Refusal::NotInReview(Status::Expired));
    assert_eq!(play.sweep().await.expired, 1);
    assert_eq!(play.reservation(id).await.status, Status::Expired);
    review.assert_nobody_stops().await;
}

async fn a_re_affirmation_names_what_is_lost_and_then_restores_what_stood(store: impl Store) {
    let review = Review::set(store).await;
    let Review {
        play, id, before, ..
    } = &review;
    let lost = refused(play.reaffirm(id).await);
    assert_eq!(lost, Refusal::UnitsLost(units(3..4)));
    play.report(0..6).await.unwrap();
    let back = play.reservation(id).await;
    assert_eq!(back.status, Status::NeedsReview, "an operator has to look");
    let after = play.reaffirm(id).await.unwrap();
    assert_eq!(after, play.reservation(id).await);
    let expected = Reservation {
        topology_gen: 3,
        version: after.version,
        updated_at: after.updated_at,
        last_action: after.last_action.clone(),
        recent: after.recent.clone(),
        due_at: after.due_at,
        ..before.clone()
    };
    assert_eq!(after, expected);
    assert_eq!(after.due_at, before.term.ends);
    review.assert_nobody_stops().await;
    play.buy_spot(1..2).await.unwrap();
}

async fn several_change_at_once_and_those_whose_units_stayed_do_not(store: impl Store) {
    let play = Play::set(store, 6).await;
    let begins = play.from_now(MINUTE_MS);
    let first = play.reserve(0..2, None, Some(begins)).await;
    let second = play.reserve(2..4, None, None).await;
    let waiting = play.reserve(0..2, Some(begins), None).await;
    let spared = play.reserve(4..6, None, None).await;
    play.report([0, 3, 4, 5]).await.unwrap();
    for id in [&first, &second, &waiting] {
        let there = play.reservation(id).await;
        assert_eq!(there.status, Status::NeedsReview);
        assert_eq!(there.holds(), id != &waiting);
    }
    assert_eq!(play.reservation(&spared).await.status, Status::Active);
}

on_both!(
    it_withholds_its_units_and_lets_whoever_is_there_be,
    the_owner_and_an_operator_may_reclaim_and_a_manager_may_not,
    it_can_be_ended,
    it_expires_like_any_other,
    a_re_affirmation_names_what_is_lost_and_then_restores_what_stood,
    several_change_at_once_and_those_whose_units_stayed_do_not,
);
