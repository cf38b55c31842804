//! Nodes: machines with GPU units, and the public pool of the units that nobody holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GpuModelId, NodeId, OrgId, ReservationId, UnitId, VmId};
use crate::refusal::Refusal;
use crate::reservation::place::{all_free, clear, doom, seat, seats};
use crate::slot::{Offer, Slot, Slots};
use crate::stamp::{Caller, Recent, Stamp};
use crate::time::{Term, Timestamp};
use crate::version::Version;
use crate::vm::Vm;

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
    /// The public pool: every unit that no reservation holds.
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

    /// Refuses units that are neither in the pool nor in a reservation's hands.
    ///
    /// # Errors
    /// [`Refusal::UnknownUnit`] with the units the node does not have.
    pub fn known(&self, asked: &BTreeSet<UnitId>) -> Result<(), Refusal> {
        let held: BTreeSet<&UnitId> = self
            .bookings
            .values()
            .filter(|b| b.holds)
            .flat_map(|b| &b.units)
            .collect();
        let unknown: BTreeSet<UnitId> = asked
            .iter()
            .filter(|unit| !self.slots.contains_key(*unit) && !held.contains(*unit))
            .cloned()
            .collect();
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(Refusal::UnknownUnit(unknown))
        }
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

    /// Checks that registering again asks for what is there already. The pool and the reservations
    /// together have the units, so `held` names the sizes of those that reservations hold.
    ///
    /// # Errors
    /// [`Refusal::NodeAlreadyRegistered`] with the property that differs.
    pub fn same_as(&self, asked: &Register, held: &Slots) -> Result<(), Refusal> {
        let sizes = |slots: &Slots| -> BTreeMap<UnitId, u16> {
            slots
                .iter()
                .map(|(unit, slot)| (unit.clone(), slot.gpus))
                .collect()
        };
        let mut units = sizes(&self.slots);
        units.extend(sizes(held));
        let differs = [
            ("ownerOrgId", self.owner != asked.owner),
            ("gpuModelId", self.gpu_model != asked.gpu_model),
            ("topologyGen", self.topology_gen != asked.topology_gen),
            ("set of units", units != asked.units),
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
        all_free(&self.slots, &vm.units, |_| true)?;
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
