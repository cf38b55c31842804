//! What must hold of every stored item and of a node with its reservations, whatever happened.
//!
//! Tests check whole worlds with it; the store checks each item it writes and reads.

use std::collections::BTreeMap;

use crate::id::{UnitId, VmId};
use crate::node::{Booking, Node};
use crate::reservation::{Reservation, Status};
use crate::slot::{Dying, Occupant, Slots, Tier, occupants};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A unit is in two hands, or in none.
    #[error("unit {0} is held by {1} custodians, not by one")]
    Custody(UnitId, usize),
    /// A reservation's slots are not exactly its units while it holds them, or not none otherwise.
    #[error("reservation {0} is {1} and holds the wrong units")]
    Holding(String, Status),
    /// A released unit is not one of the reservation's, or the reservation grants nothing.
    #[error("reservation {0} offers units it may not")]
    Offer(String),
    /// A VM that is not spot was condemned by a reservation.
    #[error("VM {0} is {1:?} and was condemned by a reservation")]
    Evicted(VmId, Tier),
    /// The same VM differs between two of its slots.
    #[error("VM {0} differs between its slots")]
    Divided(VmId),
    /// A booking does not match its reservation.
    #[error("the node's booking of {0} does not match the reservation")]
    Booking(String),
}

/// Checks one reservation by itself.
#[must_use]
pub fn check_reservation(reservation: &Reservation) -> Vec<Violation> {
    let mut found = check_slots(&reservation.slots);
    let id = || reservation.id.to_string();
    let all = reservation.slots.keys().eq(reservation.units.iter());
    let none = reservation.slots.is_empty();
    let right = match reservation.status {
        Status::Active => all,
        Status::NeedsReview => all || none,
        Status::Pending | Status::Expired | Status::Cancelled => none,
    };
    let holding = !none;
    if !right {
        found.push(Violation::Holding(id(), reservation.status));
    }
    let foreign = !reservation.released.is_subset(reservation.units.as_set());
    if foreign || (!holding && !reservation.released.is_empty()) {
        found.push(Violation::Offer(id()));
    }
    found
}

/// Checks one node by itself.
#[must_use]
pub fn check_node(node: &Node) -> Vec<Violation> {
    let mut found = check_slots(&node.slots);
    let mut hands: BTreeMap<&UnitId, usize> = node.units.keys().map(|unit| (unit, 0)).collect();
    for unit in node.slots.keys() {
        *hands.entry(unit).or_default() += 1;
    }
    for unit in node
        .bookings
        .values()
        .filter(|b| b.holds)
        .flat_map(|b| &b.units)
    {
        *hands.entry(unit).or_default() += 1;
    }
    let twice = hands.into_iter().filter(|(_, hands)| *hands != 1);
    found.extend(twice.map(|(unit, hands)| Violation::Custody(unit.clone(), hands)));
    found
}

/// Checks a node together with all its reservations.
#[must_use]
pub fn check_all(node: &Node, reservations: &[Reservation]) -> Vec<Violation> {
    let mut found = check_node(node);
    found.extend(reservations.iter().flat_map(check_reservation));
    for reservation in reservations {
        let live = Status::LIVE.contains(&reservation.status);
        let wanted = live.then(|| Booking {
            units: reservation.units.as_set().clone(),
            term: reservation.term,
            holds: reservation.holds(),
        });
        if node.bookings.get(&reservation.id) != wanted.as_ref() {
            found.push(Violation::Booking(reservation.id.to_string()));
        }
    }
    found
}

fn check_slots(slots: &Slots) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen: BTreeMap<&VmId, &Occupant> = BTreeMap::new();
    for (_, occupant) in occupants(slots) {
        if matches!(occupant.dying, Some(Dying::Evicted(_))) && occupant.tier != Tier::Spot {
            found.push(Violation::Evicted(occupant.vm.clone(), occupant.tier));
        }
        let first = *seen.entry(&occupant.vm).or_insert(occupant);
        if (first.tier, &first.org) != (occupant.tier, &occupant.org) {
            found.push(Violation::Divided(occupant.vm.clone()));
        }
    }
    found
}
