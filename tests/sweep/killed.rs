//! The sweep is killed in the middle: before and after each of its calls, one after the other. The
//! next one finishes the work, and nothing happens twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use domain::audit::verify;
use domain::slot::occupants;
use domain::{ReservationId, VmId};
use testkit::fixtures::{manager, stranger};
use testkit::play::MINUTE_MS;
use testkit::{MemoryStore, Play, RecordingOrders, Step, World};

/// Points of a whole run: at least so many, or the scene has nothing to kill.
const POINTS_MIN: usize = 60;

/// A node on which everything that a sweep does is due at once: a term ends where another begins,
/// one begins whose unit is gone, VMs are condemned that no event told of, one is overdue, and a
/// trail has lost its end.
pub(crate) struct Scene {
    pub(crate) play: Play<MemoryStore>,
    /// Its trail has lost its end.
    pub(crate) cut_off: ReservationId,
    /// Its term is over, with units reclaimed right before.
    pub(crate) ending: ReservationId,
    /// Its term begins there.
    pub(crate) beginning: ReservationId,
    /// It has the VM that is overdue.
    pub(crate) hanging: ReservationId,
    /// It has a spot VM, and nothing is to be done.
    pub(crate) quiet: ReservationId,
    /// The VM that is overdue.
    pub(crate) overdue: VmId,
    /// All that are to die.
    pub(crate) condemned: BTreeSet<VmId>,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let store = MemoryStore::default();
        store.keep_stream();
        let mut play = Play::set(store, 8).await;
        play.orders = RecordingOrders::halting(play.store.halt());
        let cut_off = play.reserve(7..8, None, None).await;
        tell(&play).await;
        play.end(&cut_off).await.unwrap();
        let _lost = play.store.take_stream();
        // The trail is looked at after an hour, and a day after its last change.
        play.clock.advance_ms(120 * MINUTE_MS);
        play.sweep().await;
        play.clock.advance_ms((22 * 60 - 20) * MINUTE_MS);
        let edge = play.from_now(20 * MINUTE_MS);
        let ending = play.reserve(0..3, None, Some(edge)).await;
        let beginning = play.reserve(0..2, Some(edge), None).await;
        play.reserve(5..6, Some(edge), None).await;
        play.report([0, 1, 2, 3, 4, 6, 7]).await.unwrap();
        play.release(&ending, 0..3, manager()).await.unwrap();
        let first = play.buy_spot(0..1).await.unwrap().id;
        play.buy_spot(2..3).await.unwrap();
        let quiet = play.reserve(4..5, None, None).await;
        play.release(&quiet, 4..5, manager()).await.unwrap();
        play.buy_spot(4..5).await.unwrap();
        let hanging = play.reserve(3..4, None, None).await;
        play.release(&hanging, 3..4, manager()).await.unwrap();
        let overdue = play.buy_spot(3..4).await.unwrap().id;
        play.controller.script(&overdue, &[Step::NotYet]);
        play.reclaim(&hanging, 3..4, manager()).await.unwrap();
        tell(&play).await;
        let _unheard = play.orders.take();
        play.clock.advance_ms(19 * MINUTE_MS);
        // These are heard of by nobody.
        play.reclaim(&ending, 0..1, manager()).await.unwrap();
        let stopped = play.buy_spot(6..7).await.unwrap().id;
        play.stop(&stopped, stranger()).await.unwrap();
        play.clock.advance_ms(MINUTE_MS);
        let condemned = [first, overdue.clone(), stopped].into();
        Self {
            play,
            cut_off,
            ending,
            beginning,
            hanging,
            quiet,
            overdue,
            condemned,
        }
    }
}

async fn scene() -> Play<MemoryStore> {
    Scene::set().await.play
}

/// Tells the stream function all that it has not heard.
pub(crate) async fn tell(play: &Play<MemoryStore>) {
    for change in play.store.take_stream() {
        play.react(&change).await.unwrap();
    }
}

/// What comes after: a whole run, the events, the orders, and the same a minute later.
async fn finish(play: &Play<MemoryStore>) -> String {
    for _ in 0..3 {
        assert_eq!(play.sweep().await.failed, 0);
        tell(play).await;
        // In one order, however often each VM was told.
        let mut orders = play.orders.take();
        orders.sort_by(|one, other| one.vm.cmp(&other.vm));
        orders.dedup_by(|one, other| one.vm == other.vm);
        play.orders.put_back(orders);
        play.carry_out().await;
        play.clock.advance_ms(MINUTE_MS);
    }
    tell(play).await;
    let world = play.store.world();
    assert_eq!(world.violations(), []);
    for reservation in world.reservations.values() {
        let trail = play.trail(&reservation.id).await;
        assert_eq!(
            verify(&trail, reservation.version).map(drop),
            Ok(()),
            "{reservation:?}"
        );
    }
    summary(&world)
}

/// All that is to come out alike: not the ids of writes, nor instants, nor how often a machine was
/// told.
fn summary(world: &World) -> String {
    let mut out = String::new();
    for node in world.nodes.values() {
        let booked: Vec<(&ReservationId, bool)> = node
            .bookings
            .iter()
            .map(|(id, booking)| (id, booking.holds))
            .collect();
        let there: Vec<_> = occupants(&node.slots).collect();
        writeln!(out, "{} {} {booked:?} {there:?}", node.id, node.version).unwrap();
    }
    for r in world.reservations.values() {
        let there: Vec<_> = occupants(&r.slots).collect();
        let (units, kind) = (r.slots.keys(), r.last_action.kind);
        writeln!(
            out,
            "{} {} {} {units:?} {:?} {kind:?} {there:?}",
            r.id, r.version, r.status, r.released
        )
        .unwrap();
    }
    for vm in world.vms.values() {
        let by = vm.sentence.as_ref().map(|sentence| &sentence.reservation);
        let (status, why, stuck) = (vm.status, &vm.status_reason, vm.stuck_at.is_some());
        writeln!(out, "{} {status:?} {why:?} {by:?} {stuck}", vm.id).unwrap();
    }
    for chain in world.audit.values() {
        for record in chain.values() {
            let e = &record.event;
            writeln!(
                out,
                "{} {} {:?} {:?} {:?} {:?} {:?}",
                e.id(),
                e.event.as_str(),
                e.actor,
                e.units,
                e.vms,
                e.before,
                e.after
            )
            .unwrap();
        }
    }
    out
}

#[tokio::test]
async fn a_sweep_killed_anywhere_is_finished_by_the_next_and_nothing_happens_twice() {
    let play = scene().await;
    let undisturbed = play.sweep().await;
    assert_eq!((undisturbed.failed, undisturbed.behind), (0, false));
    // The end of one term is written on the way to the start of the other, if that comes first.
    assert_eq!((undisturbed.activated, undisturbed.withheld), (1, 1));
    assert_eq!((undisturbed.stuck, undisturbed.gaps), (1, 1));
    assert!(undisturbed.orders >= 2, "{undisturbed:?}");
    let expected = finish(&play).await;
    let mut points = 0;
    loop {
        let play = scene().await;
        let halt = play.store.halt().clone();
        let done = halt.kill_after(points, play.sweep());
        assert_eq!(
            finish(&play).await,
            expected,
            "killed after {points} points"
        );
        if done.is_some() {
            break;
        }
        points += 1;
    }
    assert!(points >= POINTS_MIN, "{points}");
}

/// Killed again and again, always a little later, it still comes to its end.
#[tokio::test]
async fn sweeps_that_are_all_killed_come_to_the_end_together() {
    let play = scene().await;
    play.sweep().await;
    let expected = finish(&play).await;
    for step in [7, 10, 13] {
        let play = scene().await;
        let halt = play.store.halt().clone();
        let mut points = step;
        while halt.kill_after(points, play.sweep()).is_none() {
            points += step;
        }
        assert_eq!(finish(&play).await, expected, "by {step}");
    }
}
