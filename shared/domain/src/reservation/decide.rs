//! `decide`: what a command does to a reservation, or why it does nothing.
//!
//! Pure: the same inputs give the same answer. The store's conditions say the same in its own
//! language; a property test holds the two together.

use std::collections::BTreeSet;

use crate::id::{UnitId, VmId};
use crate::limits::AUDIT_LOST_AFTER_MS;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reservation::command::{End, Reclaim, Release};
use crate::reservation::state::{Relation, Reservation, Status};
use crate::reservation::term::give_back;
use crate::slot::Tier;
use crate::stamp::{Action, ActionKind, Caller, Stamp};
use crate::version::Version;

/// Puts units on the spot market.
///
/// # Errors
/// [`Refusal::NotFound`] for a caller that may not manage the reservation, then a version that does
/// not match, a reservation that is not active at the command's instant, units that are not its
/// own, and units on which a condemned VM is still stopping.
pub fn release(reservation: &Reservation, command: &Release) -> Result<Reservation, Refusal> {
    manager(reservation, &command.stamp)?;
    expected(reservation, command.expected)?;
    let status = reservation.status_at(command.stamp.now);
    if status != Status::Active {
        return Err(Refusal::ReservationNotActive(status));
    }
    own_units(reservation, command.units.as_set())?;
    let draining = |unit: &&UnitId| {
        let slot = reservation.slots.get(*unit);
        let occupant = slot.and_then(|slot| slot.occupant.as_ref());
        occupant.is_some_and(|o| o.tier == Tier::Spot) && !reservation.released.contains(*unit)
    };
    let draining: BTreeSet<UnitId> = command.units.iter().filter(draining).cloned().collect();
    if !draining.is_empty() {
        return Err(Refusal::UnitDraining(draining));
    }
    let action = command
        .stamp
        .action(ActionKind::Release, command.units.as_set(), None);
    let mut next = changed(reservation, &command.stamp, action);
    next.released.extend(command.units.iter().cloned());
    Ok(next)
}

/// Takes units back. The spot VMs on them are condemned by that alone.
///
/// # Errors
/// As [`release`], save that nothing is draining here, and that the node's owner and an operator
/// may also reclaim while the reservation needs review.
pub fn reclaim(reservation: &Reservation, command: &Reclaim) -> Result<Reservation, Refusal> {
    let relation = manager(reservation, &command.stamp)?;
    expected(reservation, command.expected)?;
    let status = reservation.status_at(command.stamp.now);
    let in_review = status == Status::NeedsReview && relation != Relation::Manager;
    // A reservation under review may also be reclaimed only inside its term.
    let in_term = reservation.term.contains(command.stamp.now);
    if status != Status::Active && !(in_review && in_term) {
        return Err(Refusal::ReservationNotActive(status));
    }
    own_units(reservation, command.units.as_set())?;
    let action = command
        .stamp
        .action(ActionKind::Reclaim, command.units.as_set(), None);
    let mut next = changed(reservation, &command.stamp, action);
    next.released.retain(|unit| !command.units.contains(unit));
    // At once, because an earlier end of the term would be overwritten by any later instant.
    next.due_at = Some(command.stamp.now);
    Ok(next)
}

/// The VMs that a reclaim concerns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Victims {
    /// Spot VMs: terminated.
    pub spot: BTreeSet<VmId>,
    /// Other VMs: left running.
    pub other: BTreeSet<VmId>,
}

/// The VMs that sat on `units` when the reservation was at version `at`, read off a later image.
///
/// Returns `None` where the image no longer tells: the units changed hands since, or more than one
/// VM has come and gone on one of them.
#[must_use]
pub fn victims(image: &Reservation, units: &BTreeSet<UnitId>, at: Version) -> Option<Victims> {
    let mut found = Victims::default();
    // Under review before its term it has no units, and so no VMs on them.
    if image.status == Status::NeedsReview && !image.holds() {
        return Some(found);
    }
    for unit in units {
        let slot = image.slots.get(unit)?;
        let there = slot
            .occupant
            .as_ref()
            .filter(|o| o.arrived <= at)
            .map(|o| (&o.vm, o.tier));
        let there = match (there, &slot.departed) {
            (None, Some(gone)) if gone.left > at => {
                (gone.arrived <= at).then_some(Some((&gone.vm, gone.tier)))?
            }
            (there, _) => there,
        };
        match there {
            Some((vm, Tier::Spot)) => found.spot.insert(vm.clone()),
            Some((vm, Tier::Community | Tier::Verified)) => found.other.insert(vm.clone()),
            None => false,
        };
    }
    Some(found)
}

/// What ending a reservation comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was ended before; nothing to do.
    Already,
    /// The reservation and the node as they are after it.
    Now(Box<(Reservation, Node)>),
}

/// Ends a reservation: its units go back to the node's pool with whoever is on them.
///
/// # Errors
/// [`Refusal::NotFound`] for anyone but an operator, then a version that does not match, and
/// [`Refusal::ReservationNotActive`] once it has expired.
pub fn end(reservation: &Reservation, node: &Node, command: &End) -> Result<Ended, Refusal> {
    let caller = command.stamp.caller().ok_or(Refusal::NotFound)?;
    if reservation.relation(caller) != Relation::Operator {
        return Err(Refusal::NotFound);
    }
    expected(reservation, command.expected)?;
    if reservation.status == Status::Cancelled {
        return Ok(Ended::Already);
    }
    let status = reservation.status_at(command.stamp.now);
    if !Status::LIVE.contains(&status) {
        return Err(Refusal::ReservationNotActive(status));
    }
    let action = command
        .stamp
        .action(ActionKind::End, reservation.units.as_set(), None);
    let mut next = changed(reservation, &command.stamp, action);
    next.status = Status::Cancelled;
    next.term.ends = Some(command.stamp.now);
    Ok(Ended::Now(Box::new(give_back(next, node, &command.stamp))))
}

/// The reservation one version on, with `action` as its last.
pub(crate) fn changed(reservation: &Reservation, stamp: &Stamp, action: Action) -> Reservation {
    let mut next = reservation.clone();
    next.version = reservation.version.next();
    next.updated_at = stamp.now;
    next.last_action = action;
    next.recent.note(&stamp.write, next.version);
    // Where nothing else is waited for, its trail is: the record of this change must come.
    let look = || stamp.now.plus_ms(AUDIT_LOST_AFTER_MS);
    next.due_at.get_or_insert_with(look);
    next
}

/// What a caller of a capacity verb is, if the verb exists for it.
fn manager(reservation: &Reservation, stamp: &Stamp) -> Result<Relation, Refusal> {
    let relation = stamp
        .caller()
        .map_or(Relation::Stranger, |c: &Caller| reservation.relation(c));
    if relation.may_manage() {
        Ok(relation)
    } else {
        Err(Refusal::NotFound)
    }
}

pub(crate) fn expected(reservation: &Reservation, version: Option<Version>) -> Result<(), Refusal> {
    match version {
        Some(expected) if expected != reservation.version => Err(Refusal::VersionMismatch {
            current: reservation.version,
        }),
        _ => Ok(()),
    }
}

fn own_units(reservation: &Reservation, asked: &BTreeSet<UnitId>) -> Result<(), Refusal> {
    let foreign: BTreeSet<UnitId> = asked
        .difference(reservation.units.as_set())
        .cloned()
        .collect();
    if foreign.is_empty() {
        Ok(())
    } else {
        Err(Refusal::UnitNotReserved(foreign))
    }
}
