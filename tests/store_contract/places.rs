//! Placing a VM: one transaction over the VM and the custodian of its units.

use app::ports::{Commit, Custodian};
use domain::reservation::place::seats;
use domain::stamp::ActionKind;
use domain::{Status, Tier};
use testkit::Store;
use testkit::fixtures::{
    self, AUDIENCE_ORG, MANAGER_ORG, STRANGER_ORG, audience, id, now, stamp, stranger, units,
};

use super::{
    fleet, held, place, pool, present, reclaimed, registered, released, rewrite, spot, vm,
};

on_both!(
    a_vm_takes_its_seats_in_the_pool,
    a_vm_takes_its_seats_on_a_reservation,
    released_units_are_for_spot_alone,
    unreleased_units_are_for_the_audience_alone,
    a_unit_has_one_vm,
    several_units_are_taken_together_or_not_at_all,
    nothing_is_sold_outside_the_term,
    nothing_is_sold_where_there_is_nothing,
    a_vm_is_placed_once_under_its_id,
    a_placement_that_comes_again_is_known_whatever_became_of_the_vm,
);

async fn a_vm_takes_its_seats_in_the_pool(store: impl Store) {
    fleet(&store).await;
    let before = pool(&store).await;
    let placed = fixtures::vm("vm-1", Tier::Verified, STRANGER_ORG, [4, 6]);
    let stamp = stamp(stranger(), 0x12);
    let answer = store.place(&placed, &Custodian::Pool, &stamp).await;
    assert_eq!(answer, Ok(Commit::Done));
    assert_eq!(store.load_vm(&id("vm-1")).await, Ok(Some(placed.clone())));
    let expected = before.place(&placed, &stamp).unwrap();
    assert_eq!(pool(&store).await, expected);
    assert_eq!(
        seats(&expected.slots, &placed.id),
        Some(units([4, 6])),
        "on both of its units"
    );
}

async fn a_vm_takes_its_seats_on_a_reservation(store: impl Store) {
    fleet(&store).await;
    let mut placed = fixtures::vm("vm-1", Tier::Community, AUDIENCE_ORG, [0, 3]);
    placed.reservation = Some(id(fixtures::RESERVATION));
    let before = present(&store).await;
    let stamp = stamp(audience(), 0x12);
    let answer = store.place(&placed, &held(), &stamp).await;
    assert_eq!(answer, Ok(Commit::Done));
    assert_eq!(vm(&store, "vm-1").await, placed);
    let after = present(&store).await;
    let expected = domain::reservation::place::place(&before, &placed, &stamp);
    assert_eq!(Ok(&after), expected.as_ref());
    assert_eq!(after.last_action.kind, ActionKind::Place);
    assert_eq!(after.last_action.vm, Some(placed.id));
}

/// Fails unless the placement is lost and leaves no VM and no seat.
async fn lost(
    store: &impl Store,
    buyer: (&str, Tier, &str),
    numbers: &[usize],
    custodian: &Custodian,
) {
    let before = (present(store).await, pool(store).await);
    let number = 0xd00 + u64::try_from(numbers.len()).unwrap();
    let placed = place(store, buyer, numbers.iter().copied(), custodian, number).await;
    assert_eq!(placed, Commit::Lost, "{buyer:?} on {numbers:?}");
    assert_eq!((present(store).await, pool(store).await), before);
    assert_eq!(store.load_vm(&id(buyer.0)).await, Ok(None));
}

async fn released_units_are_for_spot_alone(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0, 1]).await;
    for tier in [Tier::Community, Tier::Verified] {
        lost(&store, ("vm-1", tier, AUDIENCE_ORG), &[0], &held()).await;
        lost(&store, ("vm-1", tier, AUDIENCE_ORG), &[1, 2], &held()).await;
        lost(&store, ("vm-1", tier, STRANGER_ORG), &[0], &held()).await;
    }
    for (number, org) in (0..).zip([AUDIENCE_ORG, STRANGER_ORG]) {
        let buyer = (org, Tier::Spot, org);
        let unit = usize::try_from(number).unwrap();
        let placed = place(&store, buyer, [unit], &held(), 0x20 + number).await;
        assert_eq!(placed, Commit::Done, "{org}");
    }
}

async fn unreleased_units_are_for_the_audience_alone(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [3]).await;
    lost(&store, ("vm-1", Tier::Spot, STRANGER_ORG), &[0], &held()).await;
    lost(&store, ("vm-1", Tier::Spot, AUDIENCE_ORG), &[0], &held()).await;
    lost(&store, ("vm-1", Tier::Spot, STRANGER_ORG), &[0, 3], &held()).await;
    for org in [STRANGER_ORG, MANAGER_ORG] {
        lost(&store, ("vm-1", Tier::Verified, org), &[0], &held()).await;
    }
    for (number, tier) in (0..).zip([Tier::Community, Tier::Verified]) {
        let unit = usize::try_from(number).unwrap();
        let buyer = (tier.as_str(), tier, AUDIENCE_ORG);
        let placed = place(&store, buyer, [unit], &held(), 0x20 + number).await;
        assert_eq!(placed, Commit::Done, "{tier:?}");
    }
}

async fn a_unit_has_one_vm(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    spot(&store, "vm-r", [0], &held(), 0x12).await;
    spot(&store, "vm-p", [4], &Custodian::Pool, 0x13).await;
    lost(&store, ("vm-1", Tier::Spot, STRANGER_ORG), &[0], &held()).await;
    let pool = Custodian::Pool;
    lost(&store, ("vm-1", Tier::Spot, STRANGER_ORG), &[4], &pool).await;
    reclaimed(&store, 0x14, [0]).await;
    let tenant = ("vm-1", Tier::Community, AUDIENCE_ORG);
    lost(&store, tenant, &[0], &held()).await;
}

async fn several_units_are_taken_together_or_not_at_all(store: impl Store) {
    fleet(&store).await;
    let pool = Custodian::Pool;
    spot(&store, "vm-p", [5], &pool, 0x13).await;
    let buyer = ("vm-1", Tier::Spot, STRANGER_ORG);
    lost(&store, buyer, &[4, 5, 6], &pool).await;
    lost(&store, buyer, &[4, 0], &pool).await;
    lost(&store, buyer, &[4, 99], &pool).await;
    spot(&store, "vm-1", [4, 6, 7], &pool, 0x14).await;
}

async fn nothing_is_sold_outside_the_term(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    rewrite(&store, 0x12, |r| r.term.ends = Some(now().plus_ms(10))).await;
    let wanted = fixtures::vm("vm-1", Tier::Spot, STRANGER_ORG, [0]);
    for ms in [-1, 10] {
        let mut stamp = stamp(stranger(), 0x13);
        stamp.now = now().plus_ms(ms);
        let answer = store.place(&wanted, &held(), &stamp).await;
        assert_eq!(answer, Ok(Commit::Lost), "{ms} ms from the start");
    }
    rewrite(&store, 0x14, |r| r.status = Status::NeedsReview).await;
    let buyer = ("vm-1", Tier::Spot, STRANGER_ORG);
    lost(&store, buyer, &[0], &held()).await;
}

async fn nothing_is_sold_where_there_is_nothing(store: impl Store) {
    registered(&store, 8).await;
    let buyer = ("vm-1", Tier::Spot, STRANGER_ORG);
    let placed = place(&store, buyer, [0], &held(), 0x11).await;
    assert_eq!(placed, Commit::Lost, "no reservation");
    let placed = place(&store, buyer, [], &Custodian::Pool, 0x12).await;
    assert_eq!(placed, Commit::Lost, "no unit");
    let mut elsewhere = fixtures::vm("vm-1", Tier::Spot, STRANGER_ORG, [0]);
    elsewhere.node = id("node-2");
    let stamp = stamp(stranger(), 0x13);
    let answer = store.place(&elsewhere, &Custodian::Pool, &stamp).await;
    assert_eq!(answer, Ok(Commit::Lost), "no node");
    assert_eq!(store.load_vm(&id("vm-1")).await, Ok(None));
}

async fn a_vm_is_placed_once_under_its_id(store: impl Store) {
    fleet(&store).await;
    spot(&store, "vm-1", [4], &Custodian::Pool, 0x11).await;
    let before = (vm(&store, "vm-1").await, pool(&store).await);
    let buyer = ("vm-1", Tier::Community, AUDIENCE_ORG);
    for (number, custodian) in (0..).zip([Custodian::Pool, held()]) {
        let unit = if custodian == Custodian::Pool { 5 } else { 0 };
        let placed = place(&store, buyer, [unit], &custodian, 0x20 + number).await;
        assert_eq!(placed, Commit::Lost);
    }
    let after = (vm(&store, "vm-1").await, pool(&store).await);
    assert_eq!(after, before);
}

async fn a_placement_that_comes_again_is_known_whatever_became_of_the_vm(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    spot(&store, "vm-1", [0], &held(), 0x12).await;
    let version = present(&store).await.version;
    spot(&store, "vm-1", [0], &held(), 0x12).await;
    assert_eq!(present(&store).await.version, version, "done once");
    reclaimed(&store, 0x13, [0]).await;
    let sentence = domain::vm::Sentence {
        reservation: None,
        version,
        at: now(),
    };
    let condemned = store.condemn(&id("vm-1"), &sentence, "reclaimed").await;
    let condemned = condemned.unwrap().unwrap();
    spot(&store, "vm-1", [0], &held(), 0x12).await;
    assert_eq!(vm(&store, "vm-1").await, condemned, "and not brought back");
}
