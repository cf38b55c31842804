//! Two sweeps at once, as when a run takes longer than the pause between two of them.

use std::collections::BTreeMap;

use app::sweep::Swept;
use domain::stamp::ActionKind;
use domain::{ReservationId, Status};
use testkit::engine::Engine;
use testkit::fixtures::{id, manager};
use testkit::play::MINUTE_MS;
use testkit::{Play, Store};

/// Eight pairs of terms, one ending where the other begins, on the units of one node; and condemned
/// VMs that no event tells of.
async fn busy<S: Store>(store: S) -> (Play<S>, Vec<(ReservationId, ReservationId)>) {
    let play = Play::set(store, 10).await;
    let edge = play.from_now(MINUTE_MS);
    let mut pairs = Vec::new();
    for unit in 0..8 {
        let first = play.reserve(unit..=unit, None, Some(edge)).await;
        play.release(&first, unit..=unit, manager()).await.unwrap();
        play.buy_spot(unit..=unit).await.unwrap();
        let second = play.reserve(unit..=unit, Some(edge), None).await;
        pairs.push((first, second));
    }
    play.clock.advance_ms(MINUTE_MS);
    (play, pairs)
}

async fn assert_once<S: Store>(
    play: &Play<S>,
    pairs: &[(ReservationId, ReservationId)],
    runs: &[Swept],
) {
    for (first, second) in pairs {
        let ended = play.reservation(first).await;
        // Made, released, sold, expired.
        assert_eq!((ended.status, ended.version.get()), (Status::Expired, 4));
        let begun = play.reservation(second).await;
        assert_eq!((begun.status, begun.version.get()), (Status::Active, 2));
        assert_eq!(begun.last_action.kind, ActionKind::Activate);
    }
    let activated: usize = runs.iter().map(|run| run.activated).sum();
    assert_eq!(activated, pairs.len(), "{runs:?}");
    let expired: usize = runs.iter().map(|run| run.expired).sum();
    assert!(expired <= pairs.len(), "{runs:?}");
    let mut told: BTreeMap<_, usize> = BTreeMap::new();
    for order in play.orders.sent() {
        *told.entry(order.vm).or_default() += 1;
    }
    assert!(told.len() <= pairs.len(), "nobody else is told to stop");
    play.carry_out().await;
    play.clock.advance_ms(MINUTE_MS);
    let after = play.sweep().await;
    assert_eq!((after.activated, after.expired, after.failed), (0, 0, 0));
    play.carry_out().await;
    assert_eq!(play.terminations().await, []);
    let node = play.node().await;
    assert_eq!(node.id, id(testkit::fixtures::NODE));
    assert_eq!(node.bookings.len(), pairs.len());
}

#[tokio::test]
async fn two_sweeps_at_once_do_nothing_twice() {
    let engine = Engine::start().await;
    let (play, pairs) = busy(engine.store()).await;
    let runs = futures_util::future::join(play.sweep(), play.sweep()).await;
    let runs = [runs.0, runs.1];
    // One that lost every race leaves the item due, for the other one has done it.
    assert_once(&play, &pairs, &runs).await;
}

#[tokio::test]
async fn four_sweeps_at_once_do_nothing_twice() {
    let engine = Engine::start().await;
    let (play, pairs) = busy(engine.store()).await;
    let runs = futures_util::future::join_all((0..4).map(|_| play.sweep())).await;
    assert_once(&play, &pairs, &runs).await;
}
