//! Nodes: machines with GPU units, and the public pool of the units that nobody holds.

mod topology;

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GpuModelId, NodeId, OrgId, ReservationId, UnitId, VmId};
use crate::refusal::Refusal;
use crate::reservation::Boundary;
use crate::reservation::place::{all_free, clear, doom, seat, seats};
use crate::slot::{Offer, Slot, Slots, condemned};
use crate::stamp::{Caller, Recent, Stamp};
use crate::time::{Term, Timestamp};
use crate::version::Version;
use crate::vm::Vm;

pub use topology::{Report, Reported};

/// A live reservation as its node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// Its units.
    pub units: BTreeSet<UnitId>,
    /// Its term.
    pub term: Term,
    /// Whether it holds its units now, as against waiting for its term.
    pub holds: bool,
}

impl Booking {
    /// The boundary of its term that has come by `now` and is not written yet.
    #[must_use]
    pub fn boundary(&self, now: Timestamp) -> Option<Boundary> {
        if self.term.is_over(now) {
            return Some(Boundary::End);
        }
        (!self.holds && self.term.contains(now)).then_some(Boundary::Start)
    }
}

/// A node with its public pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The org that owns it.
    pub owner: OrgId,
    /// The model of its GPUs.
    pub gpu_model: GpuModelId,
    /// Which report of its topology this is; counted by its agent.
    pub topology_gen: u64,
    /// Its units with the number of GPUs of each, as reported last.
    pub units: BTreeMap<UnitId, u16>,
    /// The public pool: every unit that no reservation holds. A unit that the node does not have
    /// any more stays in it, for nobody to take, until the last VM has left it.
    pub slots: Slots,
    /// Its live reservations.
    pub bookings: BTreeMap<ReservationId, Booking>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Changes so far.
    pub version: Version,
    /// Write ids of the last changes.
    pub recent: Recent,
    /// When it is to be looked at again, because a VM in its pool is condemned.
    pub due_at: Option<Timestamp>,
}

/// Register a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Its id.
    pub id: NodeId,
    /// The org that owns it.
    pub owner: OrgId,
    /// The model of its GPUs.
    pub gpu_model: GpuModelId,
    /// Its units with the number of GPUs of each.
    pub units: BTreeMap<UnitId, u16>,
    /// Which report of its topology this is.
    pub topology_gen: u64,
    /// Who, when.
    pub stamp: Stamp,
}

impl Register {
    /// The node as it is when registered.
    #[must_use]
    pub fn node(&self) -> Node {
        let mut recent = Recent::default();
        recent.note(&self.stamp.write, Version::FIRST);
        Node {
            id: self.id.clone(),
            owner: self.owner.clone(),
            gpu_model: self.gpu_model.clone(),
            topology_gen: self.topology_gen,
            units: self.units.clone(),
            slots: self
                .units
                .iter()
                .map(|(u, gpus)| (u.clone(), Slot::empty(*gpus)))
                .collect(),
            bookings: BTreeMap::new(),
            created_at: self.stamp.now,
            updated_at: self.stamp.now,
            version: Version::FIRST,
            recent,
            due_at: None,
        }
    }
}

impl Node {
    /// What the pool offers to spot: everything.
    #[must_use]
    pub fn offer(&self) -> Offer<'_> {
        Offer::All
    }

    /// Whether the caller may see the node, reserve its units and speak for its agent.
    #[must_use]
    pub fn may_manage(&self, caller: &Caller) -> bool {
        caller.operator || caller.org == self.owner
    }

    /// When its pool is to be looked at next: at once where a VM in it is condemned.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let draining = !condemned(&self.slots, self.offer()).is_empty();
        draining.then_some(self.updated_at)
    }

    /// Its reservations for which a boundary of the term has come by `now` and is not written yet,
    /// those to end before those to begin: their units are waited for.
    #[must_use]
    pub fn boundaries(&self, now: Timestamp) -> Vec<ReservationId> {
        let of = |wanted: Boundary| {
            let bookings = self.bookings.iter();
            bookings
                .filter(move |(_, booking)| booking.boundary(now) == Some(wanted))
                .map(|(id, _)| id.clone())
        };
        of(Boundary::End).chain(of(Boundary::Start)).collect()
    }

    /// Refuses units that the node does not have.
    ///
    /// # Errors
    /// [`Refusal::UnknownUnit`] with those.
    pub fn known(&self, asked: &BTreeSet<UnitId>) -> Result<(), Refusal> {
        let unknown: BTreeSet<UnitId> = asked
            .iter()
            .filter(|unit| !self.units.contains_key(*unit))
            .cloned()
            .collect();
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(Refusal::UnknownUnit(unknown))
        }
    }

    /// The units that are in reservations' hands.
    fn held(&self) -> impl Iterator<Item = &UnitId> {
        let holding = self.bookings.values().filter(|booking| booking.holds);
        holding.flat_map(|booking| &booking.units)
    }

    /// Which of these units are in a reservation's hands, and whose.
    #[must_use]
    pub fn holders(&self, asked: &BTreeSet<UnitId>) -> BTreeMap<UnitId, ReservationId> {
        let holding = self.bookings.iter().filter(|(_, booking)| booking.holds);
        let pairs = holding.flat_map(|(id, booking)| {
            booking
                .units
                .intersection(asked)
                .map(|unit| (unit.clone(), id.clone()))
        });
        pairs.collect()
    }

    /// The reservations that hold units now.
    pub fn holding(&self) -> impl Iterator<Item = &ReservationId> {
        self.bookings
            .iter()
            .filter(|(_, booking)| booking.holds)
            .map(|(id, _)| id)
    }

    /// Checks that registering again asks for what is there already.
    ///
    /// # Errors
    /// [`Refusal::NodeAlreadyRegistered`] with the property that differs.
    pub fn same_as(&self, asked: &Register) -> Result<(), Refusal> {
        let differs = [
            ("ownerOrgId", self.owner != asked.owner),
            ("gpuModelId", self.gpu_model != asked.gpu_model),
            ("topologyGen", self.topology_gen != asked.topology_gen),
            ("set of units", self.units != asked.units),
        ];
        match differs.into_iter().find(|(_, differs)| *differs) {
            Some((what, _)) => Err(Refusal::NodeAlreadyRegistered(what)),
            None => Ok(()),
        }
    }

    /// The node one version on.
    #[must_use]
    pub fn changed(&self, stamp: &Stamp) -> Node {
        let mut next = self.clone();
        next.version = self.version.next();
        next.updated_at = stamp.now;
        next.recent.note(&stamp.write, next.version);
        next
    }

    /// Places a VM of any tier on empty units of the pool.
    ///
    /// # Errors
    /// [`Refusal::InsufficientCapacity`], saying which units cannot take it.
    pub fn place(&self, vm: &Vm, stamp: &Stamp) -> Result<Node, Refusal> {
        let here = |unit: &UnitId| self.units.contains_key(unit);
        all_free(&self.slots, &vm.units, here)?;
        let mut next = self.changed(stamp);
        seat(&mut next.slots, vm, next.version);
        Ok(next)
    }

    /// Tells a VM in the pool to stop. `None` if it is not here.
    #[must_use]
    pub fn stop(&self, vm: &VmId, stamp: &Stamp) -> Option<Node> {
        seats(&self.slots, vm)?;
        let mut next = self.changed(stamp);
        doom(&mut next.slots, vm);
        next.due_at = Some(stamp.now);
        Some(next)
    }

    /// Takes a VM whose stop is confirmed off its units. `None` if it is not here.
    #[must_use]
    pub fn vacate(&self, vm: &VmId, stamp: &Stamp) -> Option<Node> {
        seats(&self.slots, vm)?;
        let mut next = self.changed(stamp);
        clear(&mut next.slots, vm, next.version);
        Some(next)
    }
}
