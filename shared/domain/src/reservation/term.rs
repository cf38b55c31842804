//! The boundaries of a term: units taken when it begins, given back when it is over.

use std::collections::BTreeSet;

use crate::id::{ReservationId, UnitId, VmId};
use crate::node::Node;
use crate::reservation::decide::changed;
use crate::reservation::state::{Boundary, Reservation, Status};
use crate::slot::{Dying, Offer, Slot, Slots, hand_over, occupants};
use crate::stamp::{ActionKind, Stamp};
use crate::version::Version;

/// Begins the term: the reservation takes its units with whoever is on them. Spot VMs there are
/// condemned, others stay.
///
/// One that needs review still does: it withholds its units from everyone. So does one whose units
/// are not all on the node any more.
///
/// # Errors
/// The reservations that have its units in their hands still: their terms must be ended first.
/// `Ok(None)` if its term does not begin now, or has begun before.
pub fn activate(
    reservation: &Reservation,
    node: &Node,
    stamp: &Stamp,
) -> Result<Option<(Reservation, Node)>, BTreeSet<ReservationId>> {
    if reservation.boundary(stamp.now) != Some(Boundary::Start) {
        return Ok(None);
    }
    let units = reservation.units.as_set();
    let holders: BTreeSet<ReservationId> = node.holders(units).into_values().collect();
    if !holders.is_empty() {
        return Err(holders);
    }
    let whole = units.iter().all(|unit| node.units.contains_key(unit));
    let (status, kind) = match reservation.status {
        Status::Pending if whole => (Status::Active, ActionKind::Activate),
        _ => (Status::NeedsReview, ActionKind::Review),
    };
    let mut next = changed(reservation, stamp, stamp.action(kind, units, None));
    let mut pool = node.changed(stamp);
    next.status = status;
    next.slots = take_units(&mut pool, &reservation.id, units, next.version);
    next.look_after(stamp.now);
    pool.due_at = pool.next_due();
    Ok(Some((next, pool)))
}

/// Ends the term that is over: the units go back to the pool, and workloads keep running. `None` if
/// it is not over, or was ended before.
#[must_use]
pub fn expire(
    reservation: &Reservation,
    node: &Node,
    stamp: &Stamp,
) -> Option<(Reservation, Node)> {
    if reservation.boundary(stamp.now) != Some(Boundary::End) {
        return None;
    }
    let action = stamp.action(ActionKind::Expire, reservation.units.as_set(), None);
    let mut next = changed(reservation, stamp, action);
    next.status = Status::Expired;
    Some(give_back(next, node, stamp))
}

/// Puts the units of a reservation that is not live any more back into the pool. Whoever it had
/// condemned stays condemned. A unit that the node does not have any more goes with the last VM on
/// it.
pub(crate) fn give_back(
    mut reservation: Reservation,
    node: &Node,
    stamp: &Stamp,
) -> (Reservation, Node) {
    let mut pool = node.changed(stamp);
    let offer = reservation.offer();
    let returned = hand_over(&reservation.slots, offer, &reservation.id, pool.version);
    let kept = returned
        .into_iter()
        .filter(|(unit, slot)| pool.units.contains_key(unit) || slot.occupant.is_some());
    pool.slots.extend(kept);
    pool.bookings.remove(&reservation.id);
    pool.due_at = pool.next_due();
    reservation.slots.clear();
    reservation.released.clear();
    reservation.look_after(stamp.now);
    (reservation, pool)
}

/// Takes these units of the reservation `id` out of the pool, by the change that makes its version
/// `arrived`. A unit that is not there is held as one without GPUs.
///
/// Nothing is on offer under the new custodian, so every spot VM on them is condemned, wherever
/// else it sits.
pub(crate) fn take_units(
    pool: &mut Node,
    id: &ReservationId,
    units: &BTreeSet<UnitId>,
    arrived: Version,
) -> Slots {
    let taken: Slots = units
        .iter()
        .map(|unit| {
            let slot = pool.slots.remove(unit);
            (unit.clone(), slot.unwrap_or_else(|| Slot::empty(0)))
        })
        .collect();
    let nothing = BTreeSet::new();
    let slots = hand_over(&taken, Offer::Only(&nothing), id, arrived);
    let evicted: BTreeSet<VmId> = occupants(&slots)
        .filter(|(_, occupant)| occupant.dying.is_some())
        .map(|(_, occupant)| occupant.vm.clone())
        .collect();
    for slot in pool.slots.values_mut() {
        if let Some(occupant) = slot.occupant.as_mut().filter(|o| evicted.contains(&o.vm)) {
            let by = || Dying::Evicted(id.clone());
            occupant.dying.get_or_insert_with(by);
        }
    }
    if let Some(booking) = pool.bookings.get_mut(id) {
        booking.holds = true;
    }
    slots
}
