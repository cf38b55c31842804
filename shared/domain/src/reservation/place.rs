//! VMs on a reservation's units: placed, told to stop, gone.

use std::collections::BTreeSet;

use crate::id::{ReservationId, UnitId, VmId};
use crate::refusal::Refusal;
use crate::reservation::decide::changed;
use crate::reservation::state::{Reservation, Status};
use crate::slot::{Dying, Occupant, Slots, Tier, occupants};
use crate::stamp::{ActionKind, Stamp};
use crate::version::Version;
use crate::vm::Vm;

/// Places `vm` on its units of this reservation: spot on released units, for anyone; other tiers on
/// unreleased units, for its audience. Every unit must be empty.
///
/// # Errors
/// [`Refusal::InsufficientCapacity`], saying which units cannot take it.
pub fn place(reservation: &Reservation, vm: &Vm, stamp: &Stamp) -> Result<Reservation, Refusal> {
    let status = reservation.status_at(stamp.now);
    if status != Status::Active {
        return Err(Refusal::InsufficientCapacity(format!(
            "the reservation is {status} now"
        )));
    }
    if vm.tier != Tier::Spot && !reservation.audience.contains(&vm.org) {
        let text = "the org is not in the audience of the reservation".to_owned();
        return Err(Refusal::InsufficientCapacity(text));
    }
    let sellable = |unit: &UnitId| reservation.released.contains(unit) == (vm.tier == Tier::Spot);
    all_free(&reservation.slots, &vm.units, sellable)?;
    let action = stamp.action(ActionKind::Place, &vm.units, Some(&vm.id));
    let mut next = changed(reservation, stamp, action);
    seat(&mut next.slots, vm, next.version);
    Ok(next)
}

/// Tells the VM to stop: from here on it dies whatever comes after. `None` if it is not here.
#[must_use]
pub fn stop(reservation: &Reservation, vm: &VmId, stamp: &Stamp) -> Option<Reservation> {
    let units = seats(&reservation.slots, vm)?;
    let mut next = changed(
        reservation,
        stamp,
        stamp.action(ActionKind::Stop, &units, Some(vm)),
    );
    doom(&mut next.slots, vm);
    // At once, because an earlier end of the term would be overwritten by any later instant.
    next.due_at = Some(stamp.now);
    Some(next)
}

/// Takes a VM whose stop is confirmed off its units. `None` if it is not here.
#[must_use]
pub fn vacate(reservation: &Reservation, vm: &VmId, stamp: &Stamp) -> Option<Reservation> {
    let units = seats(&reservation.slots, vm)?;
    let mut next = changed(
        reservation,
        stamp,
        stamp.action(ActionKind::Confirm, &units, Some(vm)),
    );
    clear(&mut next.slots, vm, next.version);
    Some(next)
}

/// Notes that the stop of a VM here is overdue. `None` if it is not here.
#[must_use]
pub fn mark_stuck(reservation: &Reservation, vm: &VmId, stamp: &Stamp) -> Option<Reservation> {
    let units = seats(&reservation.slots, vm)?;
    let action = stamp.action(ActionKind::Stuck, &units, Some(vm));
    Some(changed(reservation, stamp, action))
}

/// Notes what became of a VM that this reservation condemned, wherever it sits.
#[must_use]
pub fn note(reservation: &Reservation, vm: &Vm, kind: ActionKind, stamp: &Stamp) -> Reservation {
    let action = stamp.action(kind, &vm.units, Some(&vm.id));
    changed(reservation, stamp, action)
}

/// Checks that every unit is here, empty and sellable.
pub(crate) fn all_free(
    slots: &Slots,
    units: &BTreeSet<UnitId>,
    sellable: impl Fn(&UnitId) -> bool,
) -> Result<(), Refusal> {
    let taken: Vec<&str> = units
        .iter()
        .filter(|unit| {
            slots.get(*unit).is_none_or(|slot| slot.occupant.is_some()) || !sellable(unit)
        })
        .map(UnitId::as_str)
        .collect();
    if taken.is_empty() && !units.is_empty() {
        return Ok(());
    }
    Err(Refusal::InsufficientCapacity(format!(
        "not for sale at this tier: {}",
        taken.join(", ")
    )))
}

/// Puts the VM on its units by the change that makes version `arrived`.
pub(crate) fn seat(slots: &mut Slots, vm: &Vm, arrived: Version) {
    for (_, slot) in slots
        .iter_mut()
        .filter(|(unit, _)| vm.units.contains(*unit))
    {
        slot.seat(Occupant {
            vm: vm.id.clone(),
            tier: vm.tier,
            org: vm.org.clone(),
            dying: None,
            arrived,
        });
    }
}

/// The units here that the VM sits on; `None` if there is none.
#[must_use]
pub fn seats(slots: &Slots, vm: &VmId) -> Option<BTreeSet<UnitId>> {
    let units: BTreeSet<UnitId> = occupants(slots)
        .filter(|(_, occupant)| occupant.vm == *vm)
        .map(|(unit, _)| unit.clone())
        .collect();
    (!units.is_empty()).then_some(units)
}

/// The reservation that condemned this VM before its units changed hands, where one did.
#[must_use]
pub fn evicted_by(slots: &Slots, vm: &VmId) -> Option<ReservationId> {
    occupants(slots)
        .filter(|(_, occupant)| occupant.vm == *vm)
        .find_map(|(_, occupant)| match &occupant.dying {
            Some(Dying::Evicted(by)) => Some(by.clone()),
            Some(Dying::Stopped) | None => None,
        })
}

pub(crate) fn doom(slots: &mut Slots, vm: &VmId) {
    for occupant in slots.values_mut().filter_map(|slot| slot.occupant.as_mut()) {
        if occupant.vm == *vm {
            occupant.dying.get_or_insert(Dying::Stopped);
        }
    }
}

pub(crate) fn clear(slots: &mut Slots, vm: &VmId, left: Version) {
    for slot in slots.values_mut() {
        if slot
            .occupant
            .as_ref()
            .is_some_and(|occupant| occupant.vm == *vm)
        {
            slot.vacate(left);
        }
    }
}
