//! Reserving: a booking on the node for a term, and its units at once where the term has begun.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{ReservationId, UnitId};
use crate::limits::{BOOKED_UNITS_PER_NODE_MAX, BOOKINGS_PER_NODE_MAX};
use crate::node::{Booking, Node};
use crate::refusal::Refusal;
use crate::reservation::command::Reserve;
use crate::reservation::state::{Reservation, Status};
use crate::reservation::term::take_units;
use crate::slot::Slots;
use crate::stamp::{ActionKind, Recent};
use crate::time::{Term, Timestamp};
use crate::version::Version;

/// Reserves units of a node for a term. One that has begun takes them out of the pool with whoever
/// is on them: spot VMs there are condemned, others stay. One that lies ahead books them.
///
/// # Errors
/// [`Refusal::NotFound`] for anyone but an operator and the node's owner, then unknown units, a
/// term that is not one, units that another reservation has within the term, and a full node.
pub fn reserve(node: &Node, command: &Reserve) -> Result<(Reservation, Node), Refusal> {
    let caller = command.stamp.caller().ok_or(Refusal::NotFound)?;
    if !node.may_manage(caller) {
        return Err(Refusal::NotFound);
    }
    let asked = command.units.as_set();
    node.known(asked)?;
    let now = command.stamp.now;
    let term = Term {
        starts: command.starts.unwrap_or(now),
        ends: command.ends,
    };
    if term.is_over(now) || term.is_over(term.starts) {
        return Err(Refusal::EndsTooEarly);
    }
    let begun = term.starts <= now;
    let holders = holders(node, asked, &term, now, begun);
    if !holders.is_empty() {
        let free_from = free_from(node, asked, &term, now);
        return Err(Refusal::UnitsAlreadyReserved(holders, free_from));
    }
    room(node, command)?;
    let mut pool = node.changed(&command.stamp);
    let booking = Booking {
        units: asked.clone(),
        term,
        holds: false,
    };
    pool.bookings.insert(command.id.clone(), booking);
    let mut reservation = booked(node, command, term);
    if begun {
        reservation.status = Status::Active;
        reservation.slots = take_units(&mut pool, &command.id, asked, Version::FIRST);
    }
    reservation.look_after(now);
    pool.due_at = pool.next_due();
    Ok((reservation, pool))
}

/// The units that other reservations have within the term, each with one of them. Where the term
/// has begun, also those that are in anybody's hands, whose own term is over or, by this clock,
/// has not begun: another writer's may have been ahead.
fn holders(
    node: &Node,
    asked: &BTreeSet<UnitId>,
    term: &Term,
    now: Timestamp,
    begun: bool,
) -> BTreeMap<UnitId, ReservationId> {
    let in_the_way = |booking: &Booking| {
        let over = booking.term.is_over(now);
        (!over && booking.term.overlaps(term)) || (begun && booking.holds)
    };
    let found = node.bookings.iter().filter(|(_, b)| in_the_way(b));
    let pairs = found.flat_map(|(id, booking)| {
        let units = booking.units.intersection(asked);
        units.map(|unit| (unit.clone(), id.clone()))
    });
    pairs.collect()
}

/// The first instant from which a term of the same length would be free of all bookings.
fn free_from(
    node: &Node,
    asked: &BTreeSet<UnitId>,
    term: &Term,
    now: Timestamp,
) -> Option<Timestamp> {
    let taken: Vec<&Term> = node
        .bookings
        .values()
        .filter(|booking| !booking.term.is_over(now) && !booking.units.is_disjoint(asked))
        .map(|booking| &booking.term)
        .collect();
    let earliest = term.starts.max(now);
    let length_ms = term.ends.map(|ends| ends.unix_ms() - earliest.unix_ms());
    let mut starts: Vec<Timestamp> = taken.iter().filter_map(|term| term.ends).collect();
    starts.push(earliest);
    starts.retain(|at| *at >= earliest);
    starts.sort_unstable();
    starts.into_iter().find(|starts| {
        let shifted = Term {
            starts: *starts,
            ends: length_ms.map(|ms| starts.plus_ms(ms)),
        };
        taken.iter().all(|term| !term.overlaps(&shifted))
    })
}

/// Refuses a booking past the bounds of a node.
fn room(node: &Node, command: &Reserve) -> Result<(), Refusal> {
    if node.bookings.len() >= BOOKINGS_PER_NODE_MAX {
        let text = format!("the node already has {BOOKINGS_PER_NODE_MAX} reservations");
        return Err(Refusal::LimitReached(text));
    }
    let booked: usize = node.bookings.values().map(|b| b.units.len()).sum();
    if booked + command.units.len() > BOOKED_UNITS_PER_NODE_MAX {
        return Err(Refusal::LimitReached(format!(
            "the reservations of a node name at most {BOOKED_UNITS_PER_NODE_MAX} units together, \
             and there are {booked} already"
        )));
    }
    Ok(())
}

/// The reservation before its term.
fn booked(node: &Node, command: &Reserve, term: Term) -> Reservation {
    let stamp = &command.stamp;
    let mut recent = Recent::default();
    recent.note(&stamp.write, Version::FIRST);
    Reservation {
        id: command.id.clone(),
        node: node.id.clone(),
        node_owner: node.owner.clone(),
        gpu_model: node.gpu_model.clone(),
        units: command.units.clone(),
        released: BTreeSet::new(),
        audience: command.audience.clone(),
        managers: command.managers.clone(),
        term,
        status: Status::Pending,
        topology_gen: node.topology_gen,
        contract_ref: command.contract_ref.clone(),
        reason: stamp.reason.clone(),
        created_at: stamp.now,
        updated_at: stamp.now,
        slots: Slots::new(),
        version: Version::FIRST,
        last_action: stamp.action(ActionKind::Create, command.units.as_set(), None),
        recent,
        due_at: None,
    }
}
