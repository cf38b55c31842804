//! Placing a VM: one transaction over the VM and the custodian of its units.

use app::ports::{Commit, Custodian, PlaceVm, StoreResult};
use domain::stamp::{ActionKind, Stamp};
use domain::{ReservationId, Status, Tier, Vm, WriteId};

use super::DynamoStore;
use super::node::if_absent;
use super::rules;
use super::settle::landed_on;
use super::write::{Part, Transacted};
use crate::expr::{Expression, Finished, absent, contains, not, present};
use crate::item::slots::{ARRIVED, SLOTS, occupant};
use crate::item::{Item, node, reservation, vm};
use crate::keys::Key;

impl PlaceVm for DynamoStore {
    async fn place(&self, vm: &Vm, custodian: &Custodian, stamp: &Stamp) -> StoreResult<Commit> {
        if vm.units.is_empty() {
            return Ok(Commit::Lost);
        }
        match self
            .transact(&stamp.write, parts(vm, custodian, stamp)?)
            .await?
        {
            Transacted::Done => Ok(Commit::Done),
            Transacted::Refused(items) => {
                let items: Vec<Option<&Item>> = items.iter().map(Option::as_ref).collect();
                let landed = landed(custodian, &items, &stamp.write)?;
                if landed == Commit::Lost {
                    metrics::RACES_LOST.increment();
                }
                Ok(landed)
            }
        }
    }
}

/// The parts of a placement: the VM, then the custodian of its units.
pub(super) fn parts(vm: &Vm, custodian: &Custodian, stamp: &Stamp) -> StoreResult<Vec<Part>> {
    let (key, seat) = match custodian {
        Custodian::Pool => (Key::node(&vm.node), in_pool(vm, stamp)?),
        Custodian::Reservation(id) => {
            let seat = in_reservation(id, vm, stamp)?;
            (Key::reservation(&vm.node, id), seat)
        }
    };
    Ok(vec![
        Part::Put(vm::encode(vm, &stamp.write), if_absent()?),
        Part::Update(key, seat),
    ])
}

/// Whether this placement has landed before, by the items as they stand.
pub(super) fn landed(
    custodian: &Custodian,
    items: &[Option<&Item>],
    write: &WriteId,
) -> StoreResult<Commit> {
    let [vm, seats] = [0, 1].map(|place| items.get(place).copied().flatten());
    let placed = vm.is_some_and(|item| vm::written_by(item, write));
    if placed || landed_on(custodian, seats, write)? {
        Ok(Commit::Done)
    } else {
        Ok(Commit::Lost)
    }
}

/// [`domain::reservation::place::place`] as one expression.
pub(super) fn in_reservation(id: &ReservationId, vm: &Vm, stamp: &Stamp) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let clauses = [
        rules::kind(&mut e, reservation::KIND),
        rules::not_own(&mut e, &stamp.write),
        rules::has_status(&mut e, Status::Active),
    ];
    let term = rules::in_term(&mut e, stamp.now);
    clauses
        .into_iter()
        .chain(term)
        .for_each(|clause| e.require(clause));
    if vm.tier != Tier::Spot {
        let audience = e.path(&[reservation::AUDIENCE]);
        let org = e.text(vm.org.as_str());
        e.require(contains(&audience, &org));
    }
    let released = e.path(&[reservation::RELEASED]);
    for unit in &vm.units {
        let alias = e.text(unit.as_str());
        let offered = contains(&released, &alias);
        e.require(if vm.tier == Tier::Spot {
            offered
        } else {
            not(offered)
        });
    }
    seat(&mut e, vm, stamp);
    let action = stamp.action(ActionKind::Place, &vm.units, Some(&vm.id));
    rules::acted(&mut e, &action);
    rules::looked_after(&mut e, id, stamp.now);
    e.finish()
}

/// [`domain::Node::place`] as one expression.
pub(super) fn in_pool(vm: &Vm, stamp: &Stamp) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let clauses = [
        rules::kind(&mut e, node::KIND),
        rules::not_own(&mut e, &stamp.write),
    ];
    clauses.into_iter().for_each(|clause| e.require(clause));
    for unit in &vm.units {
        // One that vanished may still be in the pool.
        let there = e.path(&[node::HARDWARE, unit.as_str()]);
        e.require(present(&there));
    }
    seat(&mut e, vm, stamp);
    e.finish()
}

/// Needs every unit here and empty, and seats the VM.
fn seat(e: &mut Expression, vm: &Vm, stamp: &Stamp) {
    let next = rules::stamped(e, stamp);
    let value = e.value(occupant(&vm.id, vm.tier, &vm.org, None));
    for unit in &vm.units {
        let slot = e.path(&[SLOTS, unit.as_str()]);
        let there = rules::occupant_path(e, unit);
        let arrived = e.path(&[SLOTS, unit.as_str(), ARRIVED]);
        e.require(present(&slot));
        e.require(absent(&there));
        e.set(&there, &value);
        e.set(&arrived, &next);
    }
}
