//! Settling a VM: told to stop, or its stop confirmed, together with all of its seats.

use std::collections::BTreeSet;

use app::ports::{Commit, Custodian, SettleKind, SettleVm, Settlement, StoreResult};
use domain::{Dying, NodeId, ReservationId, UnitId, Vm, WriteId};

use super::DynamoStore;
use super::rules;
use super::write::{Part, Transacted};
use crate::expr::{Expression, Finished, absent, any, eq, ne};
use crate::item::slots::{
    ARRIVED, DEPARTED, DEPARTED_ARRIVED, DYING, LEFT, OCCUPANT, SLOTS, VM, departed, dying_text,
};
use crate::item::{Item, UPDATED, node, reservation, vm};
use crate::keys::Key;
use crate::retry::stand_aside;

impl SettleVm for DynamoStore {
    async fn settle(&self, change: &Settlement) -> StoreResult<Commit> {
        let mut parts = vec![Part::Update(Key::vm(&change.vm.id), vm_part(change)?)];
        let mut holders = Vec::new();
        for (custodian, units) in &change.seats {
            let key = custodian_key(&change.vm.node, custodian);
            parts.push(Part::Update(key, seats_part(change, custodian, units)?));
            holders.push(custodian.clone());
        }
        if let Some(id) = &change.note {
            let key = Key::reservation(&change.vm.node, id);
            parts.push(Part::Update(key, note_part(change, id)?));
            holders.push(Custodian::Reservation(id.clone()));
        }
        match self.transact(&change.stamp.write, parts).await? {
            Transacted::Done => Ok(Commit::Done),
            Transacted::Refused(items) => {
                let done = settled_before(change, &holders, &items)?;
                if !done {
                    stand_aside().await;
                    return Ok(Commit::Lost);
                }
                Ok(Commit::Done)
            }
        }
    }
}

fn custodian_key(node: &NodeId, custodian: &Custodian) -> Key {
    match custodian {
        Custodian::Pool => Key::node(node),
        Custodian::Reservation(id) => Key::reservation(node, id),
    }
}

/// Whether this very change was written before: the mark of its write is on one of its items, or
/// the VM is exactly as the change makes it.
fn settled_before(
    change: &Settlement,
    holders: &[Custodian],
    items: &[Option<Item>],
) -> StoreResult<bool> {
    let write = &change.stamp.write;
    if let Some(item) = items.first().and_then(Option::as_ref) {
        let there = vm::decode(item)?;
        let same = Vm {
            attempts: there.attempts,
            ..change.vm.clone()
        };
        if vm::written_by(item, write) || (there == same && there.status != change.seen) {
            return Ok(true);
        }
    }
    for (holder, item) in holders.iter().zip(items.iter().skip(1)) {
        if landed_on(holder, item.as_ref(), write)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the write has landed on this image of a custodian.
pub(super) fn landed_on(
    custodian: &Custodian,
    item: Option<&Item>,
    write: &WriteId,
) -> StoreResult<bool> {
    let Some(item) = item else {
        return Ok(false);
    };
    let recent = match custodian {
        Custodian::Pool => node::decode(item)?.recent,
        Custodian::Reservation(_) => reservation::decode(item)?.recent,
    };
    Ok(recent.landed(write).is_some())
}

/// The VM has the status that was seen, and gets the new one with all that belongs to it.
pub(super) fn vm_part(change: &Settlement) -> StoreResult<Finished> {
    let next = &change.vm;
    let mut e = Expression::default();
    let kind = rules::kind(&mut e, vm::KIND);
    e.require(kind);
    let status = e.path(&[vm::STATUS]);
    let seen = e.text(change.seen.as_str());
    e.require(eq(&status, &seen));
    if change.kind == SettleKind::Stuck {
        // Once is enough.
        let stuck = e.path(&[vm::STUCK]);
        e.require(absent(&stuck));
    }
    let value = e.text(next.status.as_str());
    e.set(&status, &value);
    let updated = e.path(&[UPDATED]);
    let value = e.text(next.updated_at.to_string());
    e.set(&updated, &value);
    let write = e.path(&[vm::WRITE]);
    let value = e.text(change.stamp.write.as_str());
    e.set(&write, &value);
    let reason = next.status_reason.as_ref().map(crate::item::text);
    let sentence = next.sentence.as_ref().map(vm::encode_sentence);
    let stuck_at = next.stuck_at.map(crate::item::text);
    for (name, value) in [
        (vm::STATUS_REASON, reason),
        (vm::SENTENCE, sentence),
        (vm::STUCK, stuck_at),
    ] {
        let path = e.path(&[name]);
        match value {
            Some(value) => {
                let value = e.value(value);
                e.set(&path, &value);
            }
            None => e.remove(&path),
        }
    }
    e.finish()
}

/// The custodian has the VM on exactly these units, and marks them or sets them free.
pub(super) fn seats_part(
    change: &Settlement,
    custodian: &Custodian,
    units: &BTreeSet<UnitId>,
) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let kind = match custodian {
        Custodian::Pool => rules::kind(&mut e, node::KIND),
        Custodian::Reservation(_) => rules::kind(&mut e, reservation::KIND),
    };
    let not_own = rules::not_own(&mut e, &change.stamp.write);
    e.require(kind);
    e.require(not_own);
    seated(&mut e, change, units);
    let next = rules::stamped(&mut e, &change.stamp);
    match change.kind {
        SettleKind::Stop => {
            doom(&mut e, units);
            let id = match custodian {
                Custodian::Pool => change.vm.node.as_str(),
                Custodian::Reservation(id) => id.as_str(),
            };
            rules::due(&mut e, id, change.stamp.now);
        }
        SettleKind::Confirm => vacate(&mut e, change, units, &next),
        SettleKind::Stuck => {}
    }
    if let Custodian::Reservation(id) = custodian {
        // A stop has made it due already.
        if change.kind != SettleKind::Stop {
            rules::looked_after(&mut e, id, change.stamp.now);
        }
        let action = change
            .stamp
            .action(change.kind.action(), units, Some(&change.vm.id));
        rules::acted(&mut e, &action);
    }
    e.finish()
}

/// Needs the VM on these of its units, and on no other that the custodian may have.
fn seated(e: &mut Expression, change: &Settlement, units: &BTreeSet<UnitId>) {
    let id = e.text(change.vm.id.as_str());
    for unit in change.vm.units.union(units) {
        let there = e.path(&[SLOTS, unit.as_str(), OCCUPANT, VM]);
        let clause = if units.contains(unit) {
            eq(&there, &id)
        } else {
            any(vec![absent(&there), ne(&there, &id)])
        };
        e.require(clause);
    }
}

fn doom(e: &mut Expression, units: &BTreeSet<UnitId>) {
    let stopped = e.text(dying_text(&Dying::Stopped));
    for unit in units {
        let dying = e.path(&[SLOTS, unit.as_str(), OCCUPANT, DYING]);
        // What condemned it first stays.
        e.set(&dying, &format!("if_not_exists({dying},{stopped})"));
    }
}

fn vacate(e: &mut Expression, change: &Settlement, units: &BTreeSet<UnitId>, next: &str) {
    let gone = e.value(departed(&change.vm.id, change.vm.tier));
    for unit in units {
        let mut slot = |attribute: &str| e.path(&[SLOTS, unit.as_str(), attribute]);
        let (there, arrived) = (slot(OCCUPANT), slot(ARRIVED));
        let (left_vm, left_arrived, left) = (slot(DEPARTED), slot(DEPARTED_ARRIVED), slot(LEFT));
        e.set(&left_vm, &gone);
        e.set(&left_arrived, &arrived);
        e.set(&left, next);
        e.remove(&there);
        e.remove(&arrived);
    }
}

/// The reservation that condemned the VM, and has none of its units now, notes what becomes of it.
pub(super) fn note_part(change: &Settlement, id: &ReservationId) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let kind = rules::kind(&mut e, reservation::KIND);
    let not_own = rules::not_own(&mut e, &change.stamp.write);
    e.require(kind);
    e.require(not_own);
    rules::stamped(&mut e, &change.stamp);
    let units = &change.vm.units;
    let action = change
        .stamp
        .action(change.kind.action(), units, Some(&change.vm.id));
    rules::acted(&mut e, &action);
    rules::looked_after(&mut e, id, change.stamp.now);
    e.finish()
}
