//! One term ends at the very instant at which another begins on the same unit: whoever comes first,
//! the first gives the unit up and the second takes it.

use domain::slot::condemned;
use domain::{ReservationId, Status, VmId};
use testkit::fixtures::{manager, unit, units};
use testkit::play::MINUTE_MS;
use testkit::{Play, Store};

use crate::sold_out;

/// Two terms on the units 0 and 1, with a tenant's VM and a spot VM on them; the clock is where one
/// ends and the other begins.
struct Edge<S> {
    play: Play<S>,
    ending: ReservationId,
    beginning: ReservationId,
    tenant: VmId,
    spot: VmId,
}

impl<S: Store> Edge<S> {
    /// `later_first` makes the later term first, so that the sweep, which goes by ids where two are
    /// due at once, comes to its start before it comes to the end of the other.
    async fn set(store: S, later_first: bool) -> Self {
        let play = Play::set(store, 4).await;
        let edge = play.from_now(MINUTE_MS);
        let ends = Some(edge.plus_ms(MINUTE_MS));
        let (ending, beginning) = if later_first {
            let beginning = play.reserve(0..2, Some(edge), ends).await;
            (play.reserve(0..2, None, Some(edge)).await, beginning)
        } else {
            let ending = play.reserve(0..2, None, Some(edge)).await;
            (ending, play.reserve(0..2, Some(edge), ends).await)
        };
        assert_eq!(beginning < ending, later_first);
        play.release(&ending, 0..1, manager()).await.unwrap();
        let spot = play.buy_spot(0..1).await.unwrap().id;
        let tenant = play.place_tenant(&ending, 1..2).await.unwrap().id;
        play.clock.advance_ms(MINUTE_MS);
        Self {
            play,
            ending,
            beginning,
            tenant,
            spot,
        }
    }

    async fn assert_handed_over(&self) {
        let Self { play, .. } = self;
        let ended = play.reservation(&self.ending).await;
        assert_eq!(ended.status, Status::Expired);
        assert!(ended.slots.is_empty());
        let begun = play.reservation(&self.beginning).await;
        assert_eq!(begun.status, Status::Active);
        assert!(begun.slots.keys().eq(units(0..2).iter()));
        // The spot VM goes, the other stays where it is.
        let doomed = condemned(&begun.slots, begun.offer());
        assert!(doomed.keys().eq([&self.spot]));
        let there = begun.slots[&unit(1)].occupant.as_ref();
        assert_eq!(there.map(|o| &o.vm), Some(&self.tenant));
        let node = play.node().await;
        assert!(node.bookings.keys().eq([&self.beginning]));
        assert!(node.slots.keys().eq(units(2..4).iter()));
        let again = play.sweep().await;
        assert_eq!((again.activated, again.expired, again.failed), (0, 0, 0));
    }
}

async fn the_sweep_meets_the_end_first(store: impl Store) {
    let edge = Edge::set(store, false).await;
    let swept = edge.play.sweep().await;
    assert_eq!((swept.activated, swept.expired, swept.failed), (1, 1, 0));
    edge.assert_handed_over().await;
}

async fn the_sweep_meets_the_start_first(store: impl Store) {
    let edge = Edge::set(store, true).await;
    let swept = edge.play.sweep().await;
    // The end is written on the way to the start, and found done when its turn comes.
    assert_eq!((swept.activated, swept.failed), (1, 0));
    edge.assert_handed_over().await;
}

async fn a_call_upon_the_later_one_comes_first(store: impl Store) {
    let edge = Edge::set(store, true).await;
    let foreseen = edge.play.dry_run(&edge.beginning, 0..2, manager()).await;
    let victims = foreseen.unwrap().victims;
    assert_eq!(victims.spot, [edge.spot.clone()].into());
    assert_eq!(victims.other, [edge.tenant.clone()].into());
    edge.assert_handed_over().await;
}

async fn a_purchase_of_the_unit_comes_first(store: impl Store) {
    let edge = Edge::set(store, true).await;
    assert!(sold_out(edge.play.buy_spot(0..1).await));
    edge.assert_handed_over().await;
}

on_both!(
    the_sweep_meets_the_end_first,
    the_sweep_meets_the_start_first,
    a_call_upon_the_later_one_comes_first,
    a_purchase_of_the_unit_comes_first,
);
