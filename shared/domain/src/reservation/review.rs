//! Review: what becomes of a reservation whose node has changed under it.

use std::collections::BTreeSet;

use crate::id::UnitId;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reservation::command::Reaffirm;
use crate::reservation::decide::{changed, expected};
use crate::reservation::state::{Relation, Reservation, Status};
use crate::stamp::{ActionKind, Stamp};

/// Puts a reservation under review because these units of it have changed: it grants nothing and
/// withholds its units until an operator re-affirms it. Whoever is on them stays.
pub(crate) fn review(
    reservation: &Reservation,
    node: &Node,
    units: &BTreeSet<UnitId>,
    stamp: &Stamp,
) -> Reservation {
    let action = stamp.action(ActionKind::Review, units, None);
    let mut next = changed(reservation, stamp, action);
    next.status = Status::NeedsReview;
    for (unit, slot) in &mut next.slots {
        // A unit that is gone keeps its size: a bill may hang on it.
        if let Some(gpus) = node.units.get(unit) {
            slot.gpus = *gpus;
        }
    }
    next.look_after(stamp.now);
    next
}

/// Puts a reservation back in force after a review, exactly as it stood before: its released units
/// are on offer again.
///
/// # Errors
/// [`Refusal::NotFound`] for anyone but an operator, then a version that does not match, one that
/// is not under review at the command's instant, and units that the node does not have any more.
pub fn reaffirm(
    reservation: &Reservation,
    node: &Node,
    command: &Reaffirm,
) -> Result<(Reservation, Node), Refusal> {
    let stamp = &command.stamp;
    let caller = stamp.caller().ok_or(Refusal::NotFound)?;
    if reservation.relation(caller) != Relation::Operator {
        return Err(Refusal::NotFound);
    }
    expected(reservation, command.expected)?;
    let status = reservation.status_at(stamp.now);
    if status != Status::NeedsReview {
        return Err(Refusal::NotInReview(status));
    }
    let units = reservation.units.as_set();
    let here = |unit: &&UnitId| node.units.contains_key(*unit);
    let lost: BTreeSet<UnitId> = units.iter().filter(|unit| !here(unit)).cloned().collect();
    if !lost.is_empty() {
        return Err(Refusal::UnitsLost(lost));
    }
    let action = stamp.action(ActionKind::Reaffirm, units, None);
    let mut next = changed(reservation, stamp, action);
    next.status = if next.holds() {
        Status::Active
    } else {
        Status::Pending
    };
    next.topology_gen = node.topology_gen;
    next.look_after(stamp.now);
    // The node is written as well: its units must be the ones that were looked at.
    Ok((next, node.changed(stamp)))
}
