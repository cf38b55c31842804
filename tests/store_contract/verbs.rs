//! Release and reclaim: each one conditional write, done, refused with the item as it stands, or
//! known again.

use app::ports::Write;
use domain::reservation::{Reclaim, Release};
use domain::stamp::ActionKind;
use domain::{Caller, Status, Tier};
use testkit::Store;
use testkit::fixtures::{
    self, AUDIENCE_ORG, NODE, audience, id, manager, now, operator, owner, stranger, units,
};

use super::{
    fleet, held, landed, place, present, reclaim, reclaim_of, reclaimed, registered, release,
    release_of, released, rewrite, spot, version,
};

on_both!(
    a_release_puts_the_units_on_offer_and_nothing_else,
    whoever_may_manage_releases_and_nobody_else,
    a_release_is_all_or_nothing,
    a_release_needs_the_version_that_it_names,
    a_release_needs_the_term_and_an_active_reservation,
    a_release_waits_for_a_condemned_vm_to_be_gone,
    a_release_of_released_units_succeeds_as_a_change,
    a_reclaim_condemns_the_spot_vms_and_closes_the_units,
    whoever_may_manage_reclaims_and_nobody_else,
    a_reclaim_is_all_or_nothing,
    a_reclaim_under_review_is_for_owner_and_operator,
    the_last_released_unit_can_come_back,
    a_verb_on_nothing_is_absent,
    a_write_that_comes_again_is_known_by_its_own_version,
    a_write_that_comes_again_is_known_before_its_version_is_judged,
    a_write_forgotten_since_is_judged_anew,
);

async fn a_release_puts_the_units_on_offer_and_nothing_else(store: impl Store) {
    fleet(&store).await;
    let before = present(&store).await;
    let mut command = release_of(manager(), 0x11, [1, 2]);
    command.stamp.reason = Some("hush: idle".to_owned());
    let done = landed(release(&store, &command).await);
    assert_eq!(done.version, before.version.next());
    let mut expected = before.clone();
    expected.released = units([1, 2]);
    expected.version = before.version.next();
    expected.updated_at = command.stamp.now;
    let action = command
        .stamp
        .action(ActionKind::Release, &units([1, 2]), None);
    expected.last_action = action;
    let note = (&command.stamp.write, expected.version);
    expected.recent.note(note.0, note.1);
    assert_eq!(done.image, expected);
    assert_eq!(present(&store).await, expected);
}

/// Fails unless the release is refused with the item as it stands.
async fn refused(store: &impl Store, command: &Release) {
    let before = present(store).await;
    let answer = release(store, command).await;
    assert_eq!(answer, Ok(Write::Refused(before.clone())), "{command:?}");
    assert_eq!(present(store).await, before);
}

/// Fails unless the reclaim is refused with the item as it stands.
async fn reclaim_refused(store: &impl Store, command: &Reclaim) {
    let before = present(store).await;
    let answer = reclaim(store, command).await;
    assert_eq!(answer, Ok(Write::Refused(before.clone())), "{command:?}");
    assert_eq!(present(store).await, before);
}

async fn whoever_may_manage_releases_and_nobody_else(store: impl Store) {
    fleet(&store).await;
    for (number, caller) in (0..).zip([operator(), owner(), manager()]) {
        landed(release(&store, &release_of(caller, 0x10 + number, [0])).await);
    }
    let nobodies = [
        audience(),
        stranger(),
        Caller {
            org: id("org-manage"),
            ..stranger()
        },
    ];
    for (number, caller) in (0..).zip(nobodies) {
        refused(&store, &release_of(caller, 0x20 + number, [1])).await;
    }
    let mut command = release_of(owner(), 0x30, [1]);
    command.stamp = fixtures::system_stamp(0x30);
    refused(&store, &command).await;
}

async fn a_release_is_all_or_nothing(store: impl Store) {
    fleet(&store).await;
    refused(&store, &release_of(manager(), 0x11, [0, 1, 4])).await;
    refused(&store, &release_of(manager(), 0x12, [0, 99])).await;
    landed(release(&store, &release_of(manager(), 0x13, 0..4)).await);
}

async fn a_release_needs_the_version_that_it_names(store: impl Store) {
    fleet(&store).await;
    let mut command = release_of(manager(), 0x11, [0]);
    command.expected = Some(version(2));
    refused(&store, &command).await;
    command.expected = Some(version(1));
    assert_eq!(landed(release(&store, &command).await).version, version(2));
    command.stamp.write = fixtures::write(0x12);
    refused(&store, &command).await;
}

async fn a_release_needs_the_term_and_an_active_reservation(store: impl Store) {
    fleet(&store).await;
    let ends = now().plus_ms(10);
    rewrite(&store, 0x11, |r| r.term.ends = Some(ends)).await;
    let at = |ms: i64| {
        let mut command = release_of(operator(), 0x20, [0]);
        command.stamp.now = now().plus_ms(ms);
        command
    };
    refused(&store, &at(-1)).await;
    refused(&store, &at(10)).await;
    landed(release(&store, &at(9)).await);
    rewrite(&store, 0x12, |r| r.status = Status::NeedsReview).await;
    refused(&store, &release_of(operator(), 0x21, [0])).await;
    rewrite(&store, 0x13, |r| {
        r.status = Status::Cancelled;
        r.slots.clear();
        r.released.clear();
    })
    .await;
    refused(&store, &release_of(operator(), 0x22, [0])).await;
}

async fn a_release_waits_for_a_condemned_vm_to_be_gone(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0, 1]).await;
    spot(&store, "vm-s", [0], &held(), 0x12).await;
    let tenant = ("vm-t", Tier::Community, AUDIENCE_ORG);
    place(&store, tenant, [2], &held(), 0x13).await;
    landed(release(&store, &release_of(manager(), 0x14, [0, 1, 2])).await);
    reclaimed(&store, 0x15, [0, 1, 2]).await;
    refused(&store, &release_of(manager(), 0x16, [0])).await;
    refused(&store, &release_of(manager(), 0x17, [0, 1])).await;
    landed(release(&store, &release_of(manager(), 0x18, [1, 2])).await);
}

async fn a_release_of_released_units_succeeds_as_a_change(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    let again = landed(release(&store, &release_of(manager(), 0x12, [0])).await);
    assert_eq!(again.image.released, units([0]));
    assert_eq!(again.version, version(3));
}

async fn a_reclaim_condemns_the_spot_vms_and_closes_the_units(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0, 1]).await;
    spot(&store, "vm-s", [0], &held(), 0x12).await;
    spot(&store, "vm-u", [1], &held(), 0x13).await;
    let before = present(&store).await;
    let done = reclaimed(&store, 0x14, [0]).await;
    assert_eq!(done.image, present(&store).await);
    assert_eq!(done.image.released, units([1]));
    assert_eq!(done.image.slots, before.slots, "whoever sits there stays");
    assert_eq!(done.image.due_at, Some(now()), "its drain is looked at");
    let condemned = domain::slot::condemned(&done.image.slots, done.image.offer());
    let condemned: Vec<&str> = condemned.keys().map(domain::VmId::as_str).collect();
    assert_eq!(condemned, ["vm-s"]);
    let buyer = ("vm-v", Tier::Spot, AUDIENCE_ORG);
    let placed = place(&store, buyer, [0], &held(), 0x15).await;
    assert_eq!(placed, app::ports::Commit::Lost);
}

async fn whoever_may_manage_reclaims_and_nobody_else(store: impl Store) {
    fleet(&store).await;
    for (number, caller) in (0..).zip([operator(), owner(), manager()]) {
        landed(reclaim(&store, &reclaim_of(caller, 0x10 + number, [0])).await);
    }
    for (number, caller) in (0..).zip([audience(), stranger()]) {
        reclaim_refused(&store, &reclaim_of(caller, 0x20 + number, [1])).await;
    }
}

async fn a_reclaim_is_all_or_nothing(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, 0..4).await;
    spot(&store, "vm-s", [0], &held(), 0x12).await;
    reclaim_refused(&store, &reclaim_of(manager(), 0x13, [0, 4])).await;
    let mut command = reclaim_of(manager(), 0x14, [0]);
    command.expected = Some(version(9));
    reclaim_refused(&store, &command).await;
}

async fn a_reclaim_under_review_is_for_owner_and_operator(store: impl Store) {
    fleet(&store).await;
    rewrite(&store, 0x11, |r| r.status = Status::NeedsReview).await;
    reclaim_refused(&store, &reclaim_of(manager(), 0x12, [0])).await;
    landed(reclaim(&store, &reclaim_of(owner(), 0x13, [0])).await);
    landed(reclaim(&store, &reclaim_of(operator(), 0x14, [0])).await);
    let mut late = reclaim_of(operator(), 0x15, [0]);
    late.stamp.now = now().plus_ms(-1);
    reclaim_refused(&store, &late).await;
}

async fn the_last_released_unit_can_come_back(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    assert!(reclaimed(&store, 0x12, [0]).await.image.released.is_empty());
    assert!(reclaimed(&store, 0x13, [0]).await.image.released.is_empty());
    released(&store, 0x14, [0]).await;
    assert_eq!(present(&store).await.released, units([0]));
}

async fn a_verb_on_nothing_is_absent(store: impl Store) {
    let (release, reclaim) = (
        release_of(operator(), 0x11, [0]),
        reclaim_of(operator(), 0x12, [0]),
    );
    registered(&store, 8).await;
    for node in [NODE, "node-2"] {
        let (node, none) = (id(node), id("res-none"));
        let answer = store.release(&node, &none, &release).await;
        assert_eq!(answer, Ok(Write::Absent));
        let answer = store.reclaim(&node, &none, &reclaim).await;
        assert_eq!(answer, Ok(Write::Absent));
        let made = store.load_reservation(&node, &none).await;
        assert_eq!(made, Ok(None), "and none is made");
    }
}

async fn a_write_that_comes_again_is_known_by_its_own_version(store: impl Store) {
    fleet(&store).await;
    let first = release_of(manager(), 0x11, [0]);
    let done = landed(release(&store, &first).await);
    let other = reclaim_of(owner(), 0x12, [0]);
    landed(reclaim(&store, &other).await);
    let before = present(&store).await;
    let again = landed(release(&store, &first).await);
    assert_eq!(again.version, done.version, "the version that it made");
    assert_eq!(again.image, before, "the item as it is now");
    let again = landed(reclaim(&store, &other).await);
    assert_eq!(again.version, done.version.next());
    assert_eq!(present(&store).await, before, "and nothing was done again");
}

async fn a_write_that_comes_again_is_known_before_its_version_is_judged(store: impl Store) {
    fleet(&store).await;
    let mut command = reclaim_of(manager(), 0x11, [0]);
    command.expected = Some(version(1));
    landed(reclaim(&store, &command).await);
    let again = landed(reclaim(&store, &command).await);
    assert_eq!(again.version, version(2));
}

async fn a_write_forgotten_since_is_judged_anew(store: impl Store) {
    fleet(&store).await;
    let first = release_of(manager(), 0x11, [0]);
    landed(release(&store, &first).await);
    // All of these end in the same digit as the first, and still leave it known.
    for number in 1..8 {
        let other = reclaim_of(owner(), 0x100 * number + 0x11, [1]);
        landed(reclaim(&store, &other).await);
    }
    let again = landed(release(&store, &first).await);
    assert_eq!(again.version, version(2));
    landed(reclaim(&store, &reclaim_of(owner(), 0x900, [0])).await);
    let anew = landed(release(&store, &first).await);
    assert_eq!(anew.version, version(11));
    assert_eq!(anew.image.released, units([0]));
}
