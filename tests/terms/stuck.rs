//! A stop that is never confirmed: marked once, shown, and for somebody to confirm by hand.

use app::Error;
use app::sweep::Rules;
use domain::stamp::ActionKind;
use domain::{Refusal, ReservationId, Tier, VmId, VmStatus};
use testkit::fixtures::{manager, operator, owner, stranger, units};
use testkit::play::MINUTE_MS;
use testkit::{Play, Step, Store};

use crate::{refused, sold_out};

/// A spot VM on unit 0 of a reservation, reclaimed, whose machine never answers.
async fn hanging<S: Store>(store: S) -> (Play<S>, ReservationId, VmId) {
    let play = Play::set(store, 4).await;
    let id = play.reserve(0..2, None, None).await;
    play.release(&id, 0..1, manager()).await.unwrap();
    let vm = play.buy_spot(0..1).await.unwrap().id;
    play.controller.script(&vm, &[Step::NotYet, Step::Fail]);
    play.reclaim(&id, 0..1, manager()).await.unwrap();
    (play, id, vm)
}

/// A minute passes: the sweep runs, and the queue's orders are carried out.
async fn minute<S: Store>(play: &Play<S>) -> usize {
    play.clock.advance_ms(MINUTE_MS);
    let swept = play.sweep().await;
    assert_eq!(swept.failed, 0);
    play.carry_out().await;
    let _ = play.orders.take();
    swept.stuck
}

async fn it_is_marked_once_after_ten_minutes_and_shown(store: impl Store) {
    let (play, id, vm) = hanging(store).await;
    // The first sweep condemns it, for no event came.
    for passed in 0..10 {
        assert_eq!(minute(&play).await, 0, "after {passed} minutes");
        assert!(!play.terminations().await[0].stuck);
    }
    let before = play.reservation(&id).await.version;
    assert_eq!(minute(&play).await, 1);
    let marked = play.vm(&vm).await;
    assert_eq!(marked.stuck_at, Some(play.from_now(0)));
    let there = play.reservation(&id).await;
    assert_eq!(there.version, before.next());
    assert_eq!(there.last_action.kind, ActionKind::Stuck);
    assert_eq!(there.last_action.vm.as_ref(), Some(&vm));
    for _ in 0..5 {
        assert_eq!(minute(&play).await, 1, "it still is");
    }
    assert_eq!(play.reservation(&id).await.version, there.version, "once");
    let shown = play.terminations().await;
    assert!(shown[0].stuck && shown[0].vm == vm && shown[0].units == units(0..1));
    assert!(shown[0].attempts >= 10, "{shown:?}");
}

async fn its_unit_is_nobodys_until_an_operator_or_the_agent_confirms(store: impl Store) {
    let (play, id, vm) = hanging(store).await;
    for _ in 0..12 {
        minute(&play).await;
    }
    let draining = Refusal::UnitDraining(units(0..1));
    assert_eq!(refused(play.release(&id, 0..1, owner()).await), draining);
    assert!(sold_out(play.place_tenant(&id, 0..1).await));
    assert!(sold_out(play.buy_spot(0..1).await));
    assert_eq!(
        play.confirm(&vm, stranger()).await.map(|vm| vm.status),
        Err(Error::not_found())
    );
    let confirmed = play.confirm(&vm, operator()).await.unwrap();
    assert_eq!(confirmed.status, VmStatus::Terminated);
    assert_eq!(play.terminations().await, []);
    let again = play.confirm(&vm, owner()).await.unwrap();
    assert_eq!(again, confirmed, "confirming again changes nothing");
    play.place_tenant(&id, 0..1).await.unwrap();
}

async fn the_agent_confirms_and_the_unit_is_sold_again(store: impl Store) {
    let (play, id, vm) = hanging(store).await;
    for _ in 0..12 {
        minute(&play).await;
    }
    play.confirm(&vm, owner()).await.unwrap();
    play.release(&id, 0..1, manager()).await.unwrap();
    let next = play.buy_spot(0..1).await.unwrap();
    assert_eq!(next.tier, Tier::Spot);
    assert_eq!(minute(&play).await, 0);
}

async fn how_long_is_a_matter_of_configuration(store: impl Store) {
    let (play, _, vm) = hanging(store).await;
    minute(&play).await;
    play.clock.advance_ms(2 * MINUTE_MS);
    let rules = Rules {
        stuck_after_ms: 2 * MINUTE_MS,
        ..Rules::default()
    };
    assert_eq!(play.sweep_within(&rules).await.stuck, 1);
    assert!(play.vm(&vm).await.stuck_at.is_some());
}

async fn one_in_the_pool_is_marked_as_well(store: impl Store) {
    let play = Play::set(store, 4).await;
    let vm = play.buy_spot(0..1).await.unwrap().id;
    play.controller.script(&vm, &[Step::NotYet]);
    play.stop(&vm, stranger()).await.unwrap();
    for _ in 0..12 {
        minute(&play).await;
    }
    assert!(play.vm(&vm).await.stuck_at.is_some());
    assert!(play.terminations().await[0].stuck);
    assert!(sold_out(play.buy_spot(0..1).await));
    play.confirm(&vm, owner()).await.unwrap();
    play.buy_spot(0..1).await.unwrap();
}

on_both!(
    it_is_marked_once_after_ten_minutes_and_shown,
    its_unit_is_nobodys_until_an_operator_or_the_agent_confirms,
    the_agent_confirms_and_the_unit_is_sold_again,
    how_long_is_a_matter_of_configuration,
    one_in_the_pool_is_marked_as_well,
);
