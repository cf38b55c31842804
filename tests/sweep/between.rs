//! Something happens between two calls of the sweep, at each place in turn, and no event tells of
//! it: the sweep writes over nothing, and whatever it left undone is done later.

use std::collections::BTreeSet;

use domain::audit::verify;
use domain::{ReservationId, Vm, VmId, VmStatus};
use testkit::Step;
use testkit::fixtures::{manager, owner};
use testkit::play::MINUTE_MS;

use crate::killed::Scene;

/// What happens in between.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Units of the term that begins are released and bought.
    Sold,
    /// A unit is taken back under a spot VM that nobody had told to go.
    Reclaimed,
    /// The VM that is overdue turns out to be gone.
    Confirmed,
    /// The reservation of the VM that is overdue is ended.
    Ended,
    /// The unit that had vanished is back.
    Reported,
    /// Another sweep.
    Swept,
}

const ACTS: [Act; 6] = [
    Act::Sold,
    Act::Reclaimed,
    Act::Confirmed,
    Act::Ended,
    Act::Reported,
    Act::Swept,
];

/// Does it. Returns whom it condemned.
async fn act(scene: &Scene, what: Act) -> BTreeSet<VmId> {
    let play = &scene.play;
    match what {
        Act::Sold => {
            play.release(&scene.beginning, 1..2, manager())
                .await
                .unwrap();
            play.buy_spot(1..2).await.unwrap();
        }
        Act::Reclaimed => {
            let reclaimed = play.reclaim(&scene.quiet, 4..5, manager()).await.unwrap();
            assert_eq!(reclaimed.victims.spot.len(), 1);
            return reclaimed.victims.spot;
        }
        Act::Confirmed => {
            play.confirm(&scene.overdue, owner()).await.unwrap();
        }
        Act::Ended => {
            play.end(&scene.hanging).await.unwrap();
        }
        Act::Reported => {
            play.report(0..8).await.unwrap();
        }
        Act::Swept => {
            assert_eq!(play.sweep().await.failed, 0);
        }
    }
    BTreeSet::new()
}

/// Lets all machines stop, and a day and some hours pass without any event.
async fn settle(scene: &Scene) {
    let play = &scene.play;
    play.controller.script(&scene.overdue, &[Step::Gone]);
    for minutes in [1, 1, 1, 60, 60, 24 * 60, 60] {
        assert_eq!(play.sweep().await.failed, 0);
        play.carry_out().await;
        play.clock.advance_ms(minutes * MINUTE_MS);
    }
}

/// All is done that was to be done, whoever did it.
async fn assert_settled(scene: &Scene, condemned: &BTreeSet<VmId>, case: &str) {
    let play = &scene.play;
    let world = play.store.world();
    assert_eq!(world.violations(), [], "{case}");
    assert_eq!(play.terminations().await, [], "{case}");
    let gone = |vm: &Vm| vm.status == VmStatus::Terminated;
    for vm in scene.condemned.iter().chain(condemned) {
        assert!(gone(&world.vms[vm]), "{case}: {:?}", world.vms[vm]);
    }
    let running = world.vms.values().filter(|vm| !gone(vm)).count();
    let expected = world.vms.len() - scene.condemned.len() - condemned.len();
    assert_eq!(running, expected, "{case}: nobody else is told to stop");
    let now = play.from_now(0);
    assert_eq!(play.node().await.boundaries(now), [], "{case}");
    assert_eq!(play.node().await.due_at, None, "{case}");
    for reservation in world.reservations.values() {
        let due = reservation.due_at.filter(|at| *at <= now);
        assert_eq!(due, None, "{case}: {reservation:?}");
    }
}

/// Every trail is told to its end, be it that events were lost.
async fn assert_told(scene: &Scene, ids: &[&ReservationId], case: &str) {
    for id in ids {
        let trail = scene.play.trail(id).await;
        let current = scene.play.reservation(id).await.version;
        assert_eq!(verify(&trail, current).map(drop), Ok(()), "{case}: {id}");
    }
}

#[tokio::test]
async fn whatever_happens_between_two_calls_of_a_sweep_is_neither_lost_nor_undone() {
    for what in ACTS {
        let mut points = 0;
        loop {
            let case = format!("{what:?} after {points} points");
            let scene = Scene::set().await;
            let halt = scene.play.store.halt().clone();
            let mut condemned = BTreeSet::new();
            let meanwhile = async { condemned = act(&scene, what).await };
            let (swept, whole) = halt
                .pause_after(points, scene.play.sweep(), meanwhile)
                .await;
            assert_eq!(swept.failed, 0, "{case}");
            settle(&scene).await;
            assert_settled(&scene, &condemned, &case).await;
            assert_told(&scene, &[&scene.cut_off, &scene.ending], &case).await;
            if whole {
                break;
            }
            points += 1;
        }
    }
}
