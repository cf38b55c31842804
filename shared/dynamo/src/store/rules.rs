//! The rules of the domain in the language of the store's conditions, and what every change sets.
//!
//! Each function here says what one of `domain::reservation::decide` and its siblings says; a test
//! holds the two together over many thousands of random cases.

use std::collections::BTreeSet;

use domain::limits::AUDIT_LOST_AFTER_MS;
use domain::stamp::{Action, Recent, Stamp};
use domain::{ReservationId, Status, Timestamp, UnitId, Version, WriteId};

use crate::expr::{Clause, Expression, above, absent, any, at_most, contains, eq, not};
use crate::item::reservation::{ENDS, LAST, MANAGERS, OWNER, STARTS, STATUS, UNITS};
use crate::item::slots::{OCCUPANT, SLOTS};
use crate::item::stamp::{RECENT_IDS, RECENT_VERSIONS, action};
use crate::item::{TYPE, UPDATED, VERSION};
use crate::keys::{DUE_AT, DUE_PK, due_pk};

/// The item is there and of this kind.
pub(super) fn kind(e: &mut Expression, kind: &str) -> Clause {
    let path = e.path(&[TYPE]);
    let value = e.text(kind);
    eq(&path, &value)
}

/// The write has not landed on this item before.
pub(super) fn not_own(e: &mut Expression, write: &WriteId) -> Clause {
    let path = e.path(&[RECENT_IDS]);
    let value = e.text(write.as_str());
    not(contains(&path, &value))
}

/// The item has this version.
pub(super) fn at_version(e: &mut Expression, version: Version) -> Clause {
    let path = e.path(&[VERSION]);
    let value = e.number(version.get());
    eq(&path, &value)
}

/// `now` lies in the term.
pub(super) fn in_term(e: &mut Expression, now: Timestamp) -> [Clause; 2] {
    let (starts, ends) = (e.path(&[STARTS]), e.path(&[ENDS]));
    let now = e.text(now.to_string());
    let open = any(vec![absent(&ends), above(&ends, &now)]);
    [at_most(&starts, &now), open]
}

/// The stored status is this.
pub(super) fn has_status(e: &mut Expression, status: Status) -> Clause {
    let path = e.path(&[STATUS]);
    let value = e.text(status.as_str());
    eq(&path, &value)
}

/// The caller may manage the reservation: nothing to ask for an operator; the platform itself never
/// may, which is said by a clause that no item meets.
pub(super) fn may_manage(e: &mut Expression, stamp: &Stamp) -> Option<Clause> {
    let Some(caller) = stamp.caller() else {
        let path = e.path(&[TYPE]);
        return Some(absent(&path));
    };
    if caller.operator {
        return None;
    }
    let (owner, managers) = (e.path(&[OWNER]), e.path(&[MANAGERS]));
    let org = e.text(caller.org.as_str());
    Some(any(vec![eq(&owner, &org), contains(&managers, &org)]))
}

/// The reservation's own units have each of these; with each unit's alias for further clauses.
pub(super) fn own_units<'a>(
    e: &mut Expression,
    units: impl Iterator<Item = &'a UnitId>,
) -> Vec<(&'a UnitId, String)> {
    let path = e.path(&[UNITS]);
    let mut out = Vec::new();
    for unit in units {
        let value = e.text(unit.as_str());
        e.require(contains(&path, &value));
        out.push((unit, value));
    }
    out
}

/// The path of a unit's occupant.
pub(super) fn occupant_path(e: &mut Expression, unit: &UnitId) -> String {
    e.path(&[SLOTS, unit.as_str(), OCCUPANT])
}

/// Sets what every change sets: the version one up, the instant, the write among the last ones.
/// Returns the next version as an expression.
pub(super) fn stamped(e: &mut Expression, stamp: &Stamp) -> String {
    let version = e.path(&[VERSION]);
    let one = e.number(1);
    let next = format!("{version}+{one}");
    e.set(&version, &next);
    let updated = e.path(&[UPDATED]);
    let now = e.text(stamp.now.to_string());
    e.set(&updated, &now);
    // The latest stands first; the others move on by one, and the last one falls out.
    let (ids, versions) = (e.path(&[RECENT_IDS]), e.path(&[RECENT_VERSIONS]));
    for place in (1..Recent::KEPT).rev() {
        let before = place - 1;
        e.set(&format!("{ids}[{place}]"), &format!("{ids}[{before}]"));
        e.set(
            &format!("{versions}[{place}]"),
            &format!("{versions}[{before}]"),
        );
    }
    let id = e.text(stamp.write.as_str());
    e.set(&format!("{ids}[0]"), &id);
    e.set(&format!("{versions}[0]"), &next);
    next
}

/// Sets that the item with this id is due at once.
pub(super) fn due(e: &mut Expression, id: &str, now: Timestamp) {
    let (partition, at) = (e.path(&[DUE_PK]), e.path(&[DUE_AT]));
    let (own, now) = (e.text(due_pk(id)), e.text(now.to_string()));
    e.set(&partition, &own);
    e.set(&at, &now);
}

/// Sets that the reservation is due, unless it is anyway, when the record of a change at `now` must
/// have come.
pub(super) fn looked_after(e: &mut Expression, id: &ReservationId, now: Timestamp) {
    let (partition, due_at) = (e.path(&[DUE_PK]), e.path(&[DUE_AT]));
    let at = now.plus_ms(AUDIT_LOST_AFTER_MS);
    let (own, at) = (e.text(due_pk(id.as_str())), e.text(at.to_string()));
    e.set(&partition, &own);
    e.set(&due_at, &format!("if_not_exists({due_at},{at})"));
}

/// Sets the last action of a reservation.
pub(super) fn acted(e: &mut Expression, last: &Action) {
    let path = e.path(&[LAST]);
    let value = e.value(action(last));
    e.set(&path, &value);
}

/// A set of units as a value.
pub(super) fn unit_set(e: &mut Expression, units: &BTreeSet<UnitId>) -> String {
    e.value(crate::item::set(units))
}
