//! Whatever condemns a VM, and however its units change hands right after: with no event heard
//! of, it is gone two minutes later.

use domain::{ReservationId, VmId, VmStatus};
use testkit::fixtures::{manager, owner, stranger};
use testkit::play::MINUTE_MS;
use testkit::{MemoryStore, Play};

/// How soon it must be gone, in milliseconds.
const GONE_WITHIN_MS: i64 = 120_000;

/// How soon after that a term is over, in milliseconds.
const ENDS_AFTER_MS: i64 = 300;

/// How a VM is condemned.
#[derive(Debug, Clone, Copy)]
enum Way {
    Reclaimed,
    StoppedByItsOrg,
    StoppedByAManager,
    /// Bought in the pool, and its unit reserved.
    Reserved,
    /// Bought in the pool, and a term begins on its unit, for the first call that needs it.
    Begun,
    /// The same with nobody but the sweep to see it.
    BegunUnseen,
    /// Over two units in the pool, one of which is reserved.
    Divided,
}

const WAYS: [Way; 7] = [
    Way::Reclaimed,
    Way::StoppedByItsOrg,
    Way::StoppedByAManager,
    Way::Reserved,
    Way::Begun,
    Way::BegunUnseen,
    Way::Divided,
];

/// What happens right after.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    /// The reservation is ended by an operator.
    Ended,
    /// Its term is over, which only the sweep sees.
    Expired,
    /// Its unit vanishes.
    Reported,
    /// Its unit vanishes, and it is ended.
    ReportedAndEnded,
}

const THENS: [Then; 5] = [
    Then::Nothing,
    Then::Ended,
    Then::Expired,
    Then::Reported,
    Then::ReportedAndEnded,
];

/// A VM condemned in this way, so long after a sweep, and its reservation, which ends
/// [`ENDS_AFTER_MS`] later if it is to.
async fn condemned(
    way: Way,
    what: Then,
    after_ms: i64,
) -> (Play<MemoryStore>, VmId, ReservationId) {
    let play = Play::set(MemoryStore::default(), 6).await;
    let ends = matches!(what, Then::Expired).then(|| play.from_now(after_ms + ENDS_AFTER_MS));
    let begins = Some(play.from_now(after_ms));
    let (vm, id) = match way {
        Way::Reclaimed | Way::StoppedByItsOrg | Way::StoppedByAManager => {
            let id = play.reserve(0..2, None, ends).await;
            play.release(&id, 0..2, manager()).await.unwrap();
            (play.buy_spot(0..2).await.unwrap().id, Some(id))
        }
        Way::Begun | Way::BegunUnseen => {
            let id = play.reserve(0..2, begins, ends).await;
            (play.buy_spot(0..1).await.unwrap().id, Some(id))
        }
        Way::Reserved => (play.buy_spot(0..1).await.unwrap().id, None),
        Way::Divided => (play.buy_spot([1, 4]).await.unwrap().id, None),
    };
    play.clock.advance_ms(after_ms);
    match (way, &id) {
        (Way::Reclaimed, Some(id)) => {
            play.reclaim(id, 0..1, manager()).await.unwrap();
        }
        (Way::StoppedByItsOrg, _) => {
            play.stop(&vm, stranger()).await.unwrap();
        }
        (Way::StoppedByAManager, _) => {
            play.stop(&vm, manager()).await.unwrap();
        }
        (Way::Begun, Some(id)) => {
            play.dry_run(id, 0..1, owner()).await.unwrap();
        }
        _ => {}
    }
    let id = match id {
        Some(id) => id,
        None => play.reserve(0..2, None, ends).await,
    };
    (play, vm, id)
}

async fn then(play: &Play<MemoryStore>, id: &ReservationId, what: Then) {
    match what {
        Then::Nothing => {}
        Then::Ended => {
            play.end(id).await.unwrap();
        }
        Then::Expired => {
            play.clock.advance_ms(ENDS_AFTER_MS);
        }
        Then::Reported | Then::ReportedAndEnded => {
            play.report(1..6).await.unwrap();
            if matches!(what, Then::ReportedAndEnded) {
                play.end(id).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn whoever_is_condemned_unheard_is_gone_two_minutes_later() {
    for way in WAYS {
        for what in THENS {
            for after_ms in [1, 29_000, 31_000, 59_600] {
                let case = format!("{way:?}, {what:?}, {after_ms} ms after a sweep");
                let (play, vm, id) = condemned(way, what, after_ms).await;
                let condemned_at = play.from_now(0);
                then(&play, &id, what).await;
                let mut sweeps_at = condemned_at.plus_ms(MINUTE_MS - after_ms);
                while sweeps_at <= condemned_at.plus_ms(GONE_WITHIN_MS) {
                    play.clock.set(sweeps_at.max(play.from_now(0)));
                    assert_eq!(play.sweep().await.failed, 0, "{case}");
                    play.carry_out().await;
                    sweeps_at = sweeps_at.plus_ms(MINUTE_MS);
                }
                // One that ended before its term was seen to begin never took its units.
                let never =
                    matches!(way, Way::BegunUnseen) && matches!(what, Then::Ended | Then::Expired);
                let status = play.vm(&vm).await.status;
                assert_eq!(status == VmStatus::Running, never, "{case}");
                assert_eq!(status == VmStatus::Terminated, !never, "{case}");
                assert_eq!(play.store.world().violations(), [], "{case}");
            }
        }
    }
}
