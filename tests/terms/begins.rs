//! A term that has begun is in force for the first call that needs it, swept or not.

use domain::slot::condemned;
use domain::stamp::{ActionKind, Actor};
use domain::{Refusal, Reservation, ReservationId, Status, VmId};
use testkit::fixtures::{manager, owner, unit, units};
use testkit::play::MINUTE_MS;
use testkit::{Play, Store};

use crate::{refused, sold_out};

const PENDING: Refusal = Refusal::ReservationNotActive(Status::Pending);

/// A reservation of the units 0 to 2 that begins in a minute, with a spot VM of strangers on
/// unit 0; the clock is a millisecond before its start.
struct Beginning<S> {
    play: Play<S>,
    id: ReservationId,
    spot: VmId,
}

impl<S: Store> Beginning<S> {
    async fn set(store: S) -> Self {
        let play = Play::set(store, 6).await;
        let starts = play.from_now(MINUTE_MS);
        let id = play.reserve(0..3, Some(starts), None).await;
        let spot = play.buy_spot(0..1).await.unwrap().id;
        play.clock.advance_ms(MINUTE_MS - 1);
        Self { play, id, spot }
    }

    /// The same at its first instant.
    async fn begun(store: S) -> Self {
        let set = Self::set(store).await;
        set.play.clock.advance_ms(1);
        set
    }

    /// It has its units, with the spot VM on them condemned, and the platform wrote so in one
    /// change before any other.
    async fn assert_begun(&self) -> Reservation {
        let after = self.play.reservation(&self.id).await;
        assert_eq!(after.status, Status::Active, "{after:?}");
        assert!(after.slots.keys().eq(units(0..3).iter()));
        assert!(condemned(&after.slots, after.offer()).contains_key(&self.spot));
        let node = self.play.node().await;
        assert!(node.bookings[&self.id].holds);
        assert!(node.slots.keys().eq(units(3..6).iter()));
        let swept = self.play.sweep().await;
        assert_eq!((swept.activated, swept.failed), (0, 0), "it is written");
        after
    }
}

async fn a_millisecond_before_it_is_pending_and_its_units_are_sold(store: impl Store) {
    let set = Beginning::set(store).await;
    let Beginning { play, id, .. } = &set;
    assert_eq!(refused(play.release(id, 0..1, owner()).await), PENDING);
    assert_eq!(refused(play.reclaim(id, 0..1, manager()).await), PENDING);
    assert_eq!(refused(play.dry_run(id, 0..1, manager()).await), PENDING);
    assert!(sold_out(play.place_tenant(id, 1..2).await));
    play.buy_spot(1..2).await.unwrap();
    let there = play.reservation(id).await;
    assert_eq!(there.version.get(), 1, "nothing is written");
}

async fn a_release_begins_it(store: impl Store) {
    let set = Beginning::begun(store).await;
    let draining = refused(set.play.release(&set.id, 0..2, manager()).await);
    assert_eq!(draining, Refusal::UnitDraining(units(0..1)));
    let released = set.play.release(&set.id, 1..2, manager()).await.unwrap();
    assert_eq!(released.version.get(), 3);
    assert_eq!(set.assert_begun().await.released, units(1..2));
}

async fn a_reclaim_begins_it_and_names_whom_that_condemned(store: impl Store) {
    let set = Beginning::begun(store).await;
    let reclaimed = set.play.reclaim(&set.id, 0..3, manager()).await.unwrap();
    assert_eq!(reclaimed.victims.spot, [set.spot.clone()].into());
    assert_eq!(set.assert_begun().await.version.get(), 3);
}

async fn a_dry_run_begins_it_and_does_no_more(store: impl Store) {
    let set = Beginning::begun(store).await;
    let foreseen = set.play.dry_run(&set.id, 0..3, manager()).await.unwrap();
    assert_eq!(foreseen.victims.spot, [set.spot.clone()].into());
    let after = set.assert_begun().await;
    assert_eq!(after, foreseen.reservation);
    assert_eq!(after.version.get(), 2);
    assert_eq!(after.last_action.kind, ActionKind::Activate);
    assert_eq!(after.last_action.actor, Actor::System);
}

async fn a_placement_on_it_begins_it(store: impl Store) {
    let set = Beginning::begun(store).await;
    assert!(
        sold_out(set.play.place_tenant(&set.id, 0..1).await),
        "dying there"
    );
    let tenant = set.play.place_tenant(&set.id, 1..2).await.unwrap();
    assert_eq!(tenant.reservation.as_ref(), Some(&set.id));
    set.assert_begun().await;
}

async fn a_purchase_in_the_pool_begins_it_and_gets_none_of_its_units(store: impl Store) {
    let set = Beginning::begun(store).await;
    assert!(sold_out(set.play.buy_spot(1..2).await));
    set.assert_begun().await;
    set.play.buy_spot(3..4).await.unwrap();
}

async fn a_new_reservation_of_its_units_begins_it_and_is_refused(store: impl Store) {
    let set = Beginning::begun(store).await;
    let holders = refused(set.play.try_reserve(2..4, None, None).await);
    let expected = [(unit(2), set.id.clone())].into();
    assert_eq!(holders, Refusal::UnitsAlreadyReserved(expected, None));
    set.assert_begun().await;
}

async fn a_report_of_topology_begins_it_before_it_looks(store: impl Store) {
    let set = Beginning::begun(store).await;
    set.play.report([0, 1, 3, 4, 5]).await.unwrap();
    let after = set.play.reservation(&set.id).await;
    assert_eq!(
        (after.status, after.version.get()),
        (Status::NeedsReview, 3)
    );
    assert!(after.slots.keys().eq(units(0..3).iter()));
    assert!(condemned(&after.slots, after.offer()).contains_key(&set.spot));
}

async fn a_re_affirmation_begins_it(store: impl Store) {
    let set = Beginning::set(store).await;
    let Beginning { play, id, .. } = &set;
    play.report([1, 2, 3, 4, 5]).await.unwrap();
    play.report(0..6).await.unwrap();
    let waiting = play.reservation(id).await;
    assert_eq!(
        (waiting.status, waiting.holds()),
        (Status::NeedsReview, false)
    );
    play.clock.advance_ms(1);
    let after = play.reaffirm(id).await.unwrap();
    assert_eq!(after.status, Status::Active);
    set.assert_begun().await;
}

async fn a_re_affirmation_before_it_leaves_it_pending(store: impl Store) {
    let set = Beginning::set(store).await;
    let Beginning { play, id, .. } = &set;
    play.report([1, 2, 3, 4, 5]).await.unwrap();
    assert_eq!(
        refused(play.reaffirm(id).await),
        Refusal::UnitsLost(units(0..1))
    );
    play.report(0..6).await.unwrap();
    let after = play.reaffirm(id).await.unwrap();
    assert_eq!((after.status, after.holds()), (Status::Pending, false));
    assert!(!play.node().await.bookings[id].holds);
    play.clock.advance_ms(1);
    assert_eq!(play.sweep().await.activated, 1);
    set.assert_begun().await;
}

async fn one_whose_unit_is_gone_takes_the_rest_and_withholds_it(store: impl Store) {
    let set = Beginning::set(store).await;
    let Beginning { play, id, .. } = &set;
    // The VM stays on the unit that vanished, and nobody else gets there.
    play.report([1, 2, 3, 4, 5]).await.unwrap();
    play.clock.advance_ms(1);
    assert_eq!(play.sweep().await.withheld, 1);
    let after = play.reservation(id).await;
    assert_eq!(after.status, Status::NeedsReview);
    assert!(after.slots.keys().eq(units(0..3).iter()));
    assert!(sold_out(play.buy_spot(1..2).await));
    assert!(sold_out(play.place_tenant(id, 1..2).await));
}

on_both!(
    a_millisecond_before_it_is_pending_and_its_units_are_sold,
    a_release_begins_it,
    a_reclaim_begins_it_and_names_whom_that_condemned,
    a_dry_run_begins_it_and_does_no_more,
    a_placement_on_it_begins_it,
    a_purchase_in_the_pool_begins_it_and_gets_none_of_its_units,
    a_new_reservation_of_its_units_begins_it_and_is_refused,
    a_report_of_topology_begins_it_before_it_looks,
    a_re_affirmation_begins_it,
    a_re_affirmation_before_it_leaves_it_pending,
    one_whose_unit_is_gone_takes_the_rest_and_withholds_it,
);
