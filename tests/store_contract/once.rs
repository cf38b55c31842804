//! Writes that keep the answer to their call.

use app::idempotency::{Answer, IdempotencyKey, KEPT_MS, Kept, OnceCommit, Repeatable};
use app::ports::{Custodian, CustodyMove, Replacement};
use domain::reservation::release;
use domain::{Reservation, Tier, Timestamp, Version};
use testkit::Store;
use testkit::fixtures::{self, OWNER_ORG, STRANGER_ORG, id, manager, now, stamp, unit_set};

use super::{command_for, fleet, pool, present, release_of, released};

on_both!(
    effect_and_answer_are_written_together,
    an_answer_that_counts_stands_in_the_way_of_another,
    an_answer_of_the_day_before_does_not,
    a_change_that_is_lost_leaves_no_answer,
    a_write_that_comes_again_is_known,
    keys_of_different_orgs_are_different,
    a_move_and_a_placement_keep_their_answers_too,
);

fn kept(org: &str, key: &str, at: Timestamp) -> Kept {
    Kept {
        call: Repeatable {
            org: id(org),
            key: IdempotencyKey::parse(key).unwrap(),
            fingerprint: format!("the call of {org}"),
        },
        answer: Answer {
            body: "{\"a\":\"\u{fc}\"}".to_owned(),
            version: Some(Version::FIRST),
        },
        expires_at: at.plus_ms(KEPT_MS),
    }
}

async fn there(store: &impl Store, kept: &Kept) -> Option<Kept> {
    let found = store.load_kept(&kept.call.org, &kept.call.key).await;
    found.unwrap()
}

/// The release of this unit, decided on the reservation as it is.
async fn releasing(store: &impl Store, number: u64, unit: usize) -> Replacement {
    let image: Reservation = present(store).await;
    let command = release_of(manager(), number, [unit]);
    Replacement {
        seen: image.version,
        reservation: release(&image, &command).unwrap(),
        write: command.stamp.write,
    }
}

async fn effect_and_answer_are_written_together(store: impl Store) {
    fleet(&store).await;
    let kept = kept(OWNER_ORG, "once", now());
    assert_eq!(there(&store, &kept).await, None);
    let change = releasing(&store, 0x11, 0).await;
    assert_eq!(
        store.replace_once(&change, &kept).await,
        Ok(OnceCommit::Done)
    );
    assert_eq!(present(&store).await, change.reservation);
    assert_eq!(there(&store, &kept).await, Some(kept));
}

async fn an_answer_that_counts_stands_in_the_way_of_another(store: impl Store) {
    fleet(&store).await;
    let first = kept(OWNER_ORG, "once", now());
    let change = releasing(&store, 0x11, 0).await;
    assert_eq!(
        store.replace_once(&change, &first).await,
        Ok(OnceCommit::Done)
    );
    let before = present(&store).await;
    let late = kept(OWNER_ORG, "once", now().plus_ms(KEPT_MS - 1));
    let change = releasing(&store, 0x12, 1).await;
    let again = store.replace_once(&change, &late).await;
    assert_eq!(again, Ok(OnceCommit::Answered));
    assert_eq!(present(&store).await, before);
    assert_eq!(there(&store, &late).await, Some(first));
}

async fn an_answer_of_the_day_before_does_not(store: impl Store) {
    fleet(&store).await;
    let first = kept(OWNER_ORG, "once", now());
    let change = releasing(&store, 0x11, 0).await;
    assert_eq!(
        store.replace_once(&change, &first).await,
        Ok(OnceCommit::Done)
    );
    let next = kept(OWNER_ORG, "once", now().plus_ms(KEPT_MS));
    let change = releasing(&store, 0x12, 1).await;
    assert_eq!(
        store.replace_once(&change, &next).await,
        Ok(OnceCommit::Done)
    );
    assert_eq!(there(&store, &first).await, Some(next));
}

async fn a_change_that_is_lost_leaves_no_answer(store: impl Store) {
    fleet(&store).await;
    let change = releasing(&store, 0x11, 0).await;
    released(&store, 0x12, [1]).await;
    let before = present(&store).await;
    let kept = kept(OWNER_ORG, "once", now());
    assert_eq!(
        store.replace_once(&change, &kept).await,
        Ok(OnceCommit::Lost)
    );
    assert_eq!(present(&store).await, before);
    assert_eq!(there(&store, &kept).await, None);
}

async fn a_write_that_comes_again_is_known(store: impl Store) {
    fleet(&store).await;
    let kept = kept(OWNER_ORG, "once", now());
    let change = releasing(&store, 0x11, 0).await;
    assert_eq!(
        store.replace_once(&change, &kept).await,
        Ok(OnceCommit::Done)
    );
    released(&store, 0x12, [1]).await;
    let before = present(&store).await;
    assert_eq!(
        store.replace_once(&change, &kept).await,
        Ok(OnceCommit::Done)
    );
    assert_eq!(present(&store).await, before);
}

async fn keys_of_different_orgs_are_different(store: impl Store) {
    fleet(&store).await;
    for (org, number, unit) in [(OWNER_ORG, 0x11, 0), (STRANGER_ORG, 0x12, 1)] {
        let kept = kept(org, "once", now());
        let change = releasing(&store, number, unit).await;
        assert_eq!(
            store.replace_once(&change, &kept).await,
            Ok(OnceCommit::Done)
        );
        assert_eq!(there(&store, &kept).await, Some(kept));
    }
}

async fn a_move_and_a_placement_keep_their_answers_too(store: impl Store) {
    fleet(&store).await;
    let node = pool(&store).await;
    let command = command_for("res-2", 0x21, unit_set([5]));
    let (reservation, after) = fixtures::reserve_with(&node, &command);
    let change = CustodyMove {
        node_seen: node.version,
        node: after,
        reservation_seen: None,
        reservation,
        write: command.stamp.write,
    };
    let first = kept(OWNER_ORG, "move", now());
    for _ in 0..2 {
        let moved = store.move_custody_once(&change, &first).await;
        assert_eq!(moved, Ok(OnceCommit::Done), "and again");
    }
    let vm = fixtures::vm("vm-1", Tier::Spot, STRANGER_ORG, [6]);
    let by = stamp(fixtures::stranger(), 0x22);
    let second = kept(STRANGER_ORG, "place", now());
    for _ in 0..2 {
        let placed = store.place_once(&vm, &Custodian::Pool, &by, &second).await;
        assert_eq!(placed, Ok(OnceCommit::Done), "and again");
    }
    let other = fixtures::vm("vm-2", Tier::Spot, STRANGER_ORG, [6]);
    let third = kept(STRANGER_ORG, "other", now());
    let by = stamp(fixtures::stranger(), 0x23);
    let taken = store
        .place_once(&other, &Custodian::Pool, &by, &third)
        .await;
    assert_eq!(taken, Ok(OnceCommit::Lost), "the unit is taken");
    assert_eq!(there(&store, &third).await, None);
    for kept in [first, second] {
        assert_eq!(there(&store, &kept).await, Some(kept));
    }
}
