//! Slots that change hands: by every way there is, over random states, nothing gets lost and nobody
//! escapes.

use std::collections::{BTreeMap, BTreeSet};

use domain::invariants::{Violation, check_node, check_reservation};
use domain::node::Report;
use domain::reservation::{End, Ended, Reaffirm, activate, end, expire, reaffirm};
use domain::slot::{condemned, occupants};
use domain::{Dying, Node, Reservation, Status, Tier, UnitId, VmId};

use super::{Rng, pair};
use crate::fixtures::{now, operator, owner, stamp, system_stamp};

/// Cases of each move.
const CASES: u64 = 5_000;

/// Who sits where, in both.
fn seated(reservation: &Reservation, node: &Node) -> BTreeMap<UnitId, VmId> {
    let both = occupants(&reservation.slots).chain(occupants(&node.slots));
    both.map(|(unit, occupant)| (unit.clone(), occupant.vm.clone()))
        .collect()
}

/// Who is to be terminated, in either.
fn dying(reservation: &Reservation, node: &Node) -> BTreeSet<VmId> {
    let here = condemned(&reservation.slots, reservation.offer());
    let there = condemned(&node.slots, node.offer());
    here.into_keys().chain(there.into_keys()).collect()
}

/// Those of other tiers than spot whom a reservation has condemned: there must be none.
fn wronged(reservation: &Reservation, node: &Node) -> Vec<VmId> {
    let both = occupants(&reservation.slots).chain(occupants(&node.slots));
    both.filter(|(_, occupant)| {
        occupant.tier != Tier::Spot && matches!(occupant.dying, Some(Dying::Evicted(_)))
    })
    .map(|(_, occupant)| occupant.vm.clone())
    .collect()
}

/// Checks a move of random things. Returns whether there was one.
fn assert_moved(
    seed: u64,
    before: (&Reservation, &Node),
    after: Option<(Reservation, Node)>,
) -> bool {
    let Some((reservation, node)) = after else {
        return false;
    };
    let none: [Violation; 0] = [];
    assert_eq!(check_reservation(&reservation), none, "seed {seed}");
    assert_eq!(check_node(&node), none, "seed {seed}");
    let live = Status::LIVE.contains(&reservation.status);
    let booking = node.bookings.get(&reservation.id);
    assert_eq!(booking.is_some(), live, "seed {seed}");
    let holds = booking.is_some_and(|booking| booking.holds);
    assert_eq!(holds, reservation.holds(), "seed {seed}");
    let (old, new) = (seated(before.0, before.1), seated(&reservation, &node));
    assert_eq!(old, new, "seed {seed}: nobody moves, appears or vanishes");
    let escaped: BTreeSet<VmId> = dying(before.0, before.1)
        .difference(&dying(&reservation, &node))
        .cloned()
        .collect();
    assert_eq!(escaped, BTreeSet::new(), "seed {seed}");
    assert_eq!(wronged(&reservation, &node), [], "seed {seed}");
    let due = !condemned(&node.slots, node.offer()).is_empty();
    assert!(
        !due || node.due_at.is_some(),
        "seed {seed}: it is looked after"
    );
    let due = !condemned(&reservation.slots, reservation.offer()).is_empty();
    assert!(!due || reservation.due_at.is_some(), "seed {seed}");
    true
}

/// Runs a move over random pairs; it must come about, and must not, in a fair share of them.
fn over_pairs(
    share_min: u64,
    mut play: impl FnMut(&mut Rng, &Reservation, &Node) -> Option<(Reservation, Node)>,
) {
    let mut moved = 0;
    for seed in 0..CASES {
        let rng = &mut Rng::new(seed);
        let (reservation, node) = pair(rng, now());
        let after = play(rng, &reservation, &node);
        moved += u64::from(assert_moved(seed, (&reservation, &node), after));
    }
    let share = moved * 100 / CASES;
    assert!((share_min..=98).contains(&share), "{share} % came about");
}

#[test]
fn the_end_of_a_term_loses_nobody() {
    over_pairs(5, |_, reservation, node| {
        expire(reservation, node, &system_stamp(0xc1))
    });
}

#[test]
fn the_begin_of_a_term_loses_nobody() {
    over_pairs(2, |_, reservation, node| {
        activate(reservation, node, &system_stamp(0xc1))
            .ok()
            .flatten()
    });
}

#[test]
fn an_end_by_an_operator_loses_nobody() {
    over_pairs(30, |_, reservation, node| {
        let command = End {
            expected: None,
            stamp: stamp(operator(), 0xc1),
        };
        match end(reservation, node, &command) {
            Ok(Ended::Now(after)) => Some(*after),
            Ok(Ended::Already) | Err(_) => None,
        }
    });
}

/// A report of some of the units in other sizes, without others, and with one that is new.
fn report(rng: &mut Rng, node: &Node) -> Report {
    let mut units = node.units.clone();
    units.retain(|_, _| !rng.chance(20));
    for gpus in units.values_mut().filter(|_| rng.chance(20)) {
        *gpus += 1;
    }
    units.insert(super::state::any_unit(rng), 1);
    Report {
        topology_gen: node.topology_gen + 1,
        units,
        stamp: stamp(owner(), 0xc1),
    }
}

fn reported(rng: &mut Rng, reservation: &Reservation, node: &Node) -> Option<(Reservation, Node)> {
    let report = report(rng, node);
    if !node.affected(&report).contains(&reservation.id) {
        return None;
    }
    let images = std::slice::from_ref(reservation);
    let mut after = node.report(&report, images).ok()?;
    let reviewed = after.reviewed.pop()?;
    assert_eq!(reviewed.status, Status::NeedsReview);
    assert_eq!(reviewed.released, reservation.released);
    assert_eq!(after.node.units, report.units);
    for unit in report.units.keys() {
        let held = after.node.holders(&[unit.clone()].into()).len();
        let pooled = usize::from(after.node.slots.contains_key(unit));
        assert_eq!(held + pooled, 1, "{unit} is in one hand");
    }
    Some((reviewed, after.node))
}

#[test]
fn a_topology_that_changes_under_them_moves_nobody() {
    over_pairs(30, reported);
}

#[test]
fn a_review_ends_as_it_began() {
    over_pairs(10, |rng, reservation, node| {
        let (under_review, changed) = reported(rng, reservation, node)?;
        let back = Report {
            topology_gen: changed.topology_gen + 1,
            units: node.units.clone(),
            stamp: stamp(owner(), 0xc2),
        };
        let images = std::slice::from_ref(&under_review);
        let mut restored = changed.report(&back, images).ok()?;
        let reviewed = restored.reviewed.pop()?;
        let command = Reaffirm {
            expected: None,
            stamp: stamp(operator(), 0xc3),
        };
        let (after, pool) = reaffirm(&reviewed, &restored.node, &command).ok()?;
        assert_eq!(after.topology_gen, pool.topology_gen);
        assert_eq!(after.released, reservation.released);
        if reservation.status != Status::NeedsReview {
            assert_eq!(after.status, reservation.status);
        }
        let there: Vec<_> = occupants(&after.slots).collect();
        assert_eq!(there, occupants(&reservation.slots).collect::<Vec<_>>());
        Some((after, pool))
    });
}
