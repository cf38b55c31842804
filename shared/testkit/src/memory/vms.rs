//! VMs: placed on their units, told to stop, gone.

use std::collections::BTreeSet;

use app::ports::{
    Commit, CondemnVm, CountAttempt, Custodian, ListVms, LoadVms, Page, PlaceVm, SettleKind,
    SettleVm, Settlement, StoreResult,
};
use domain::reservation::place;
use domain::stamp::Stamp;
use domain::vm::Sentence;
use domain::{Node, OrgId, Reservation, UnitId, Vm, VmId, VmStatus, WriteId};

use super::{Held, MemoryStore, World, page, sound_node, sound_reservation};

impl LoadVms for MemoryStore {
    async fn load_vm(&self, id: &VmId) -> StoreResult<Option<Vm>> {
        self.read(|world| world.vms.get(id).cloned()).await
    }

    async fn load_vms(&self, ids: &BTreeSet<VmId>) -> StoreResult<Vec<Vm>> {
        self.read(|world| {
            ids.iter()
                .filter_map(|id| world.vms.get(id))
                .cloned()
                .collect()
        })
        .await
    }
}

impl ListVms for MemoryStore {
    async fn list_vms(
        &self,
        org: &OrgId,
        after: Option<&VmId>,
        limit: usize,
    ) -> StoreResult<Page<Vm, VmId>> {
        self.read(|world| {
            let own = world
                .vms
                .values()
                .filter(|vm| vm.org == *org && after.is_none_or(|after| vm.id > *after));
            page(own.cloned(), limit, |vm| vm.id.clone())
        })
        .await
    }
}

/// A custodian as stored, or as it will be.
enum Holder {
    Pool(Box<Node>),
    Reservation(Box<Reservation>),
}

impl Holder {
    fn pool(node: Node) -> Self {
        Holder::Pool(Box::new(node))
    }

    fn reservation(reservation: Reservation) -> Self {
        Holder::Reservation(Box::new(reservation))
    }

    fn of(world: &World, vm: &Vm, custodian: &Custodian) -> Option<Self> {
        match custodian {
            Custodian::Pool => world.nodes.get(&vm.node).cloned().map(Holder::pool),
            Custodian::Reservation(id) => {
                let found = world.reservation(&vm.node, id);
                found.cloned().map(Holder::reservation)
            }
        }
    }

    fn landed(&self, write: &WriteId) -> bool {
        let recent = match self {
            Holder::Pool(node) => &node.recent,
            Holder::Reservation(reservation) => &reservation.recent,
        };
        recent.landed(write).is_some()
    }

    fn seats(&self, vm: &VmId) -> Option<BTreeSet<UnitId>> {
        match self {
            Holder::Pool(node) => place::seats(&node.slots, vm),
            Holder::Reservation(reservation) => place::seats(&reservation.slots, vm),
        }
    }

    fn place(&self, vm: &Vm, stamp: &Stamp) -> Option<Self> {
        match self {
            Holder::Pool(node) => node.place(vm, stamp).ok().map(Holder::pool),
            Holder::Reservation(reservation) => {
                let next = place::place(reservation, vm, stamp);
                next.ok().map(Holder::reservation)
            }
        }
    }

    fn settle(&self, kind: SettleKind, vm: &VmId, stamp: &Stamp) -> Option<Self> {
        match (self, kind) {
            (Holder::Pool(n), SettleKind::Stop) => n.stop(vm, stamp).map(Holder::pool),
            (Holder::Pool(n), SettleKind::Confirm) => n.vacate(vm, stamp).map(Holder::pool),
            (Holder::Pool(n), SettleKind::Stuck) => Some(Holder::pool(n.changed(stamp))),
            (Holder::Reservation(r), SettleKind::Stuck) => {
                place::mark_stuck(r, vm, stamp).map(Holder::reservation)
            }
            (Holder::Reservation(r), SettleKind::Stop) => {
                place::stop(r, vm, stamp).map(Holder::reservation)
            }
            (Holder::Reservation(r), SettleKind::Confirm) => {
                place::vacate(r, vm, stamp).map(Holder::reservation)
            }
        }
    }

    fn sound(&self) -> StoreResult<()> {
        match self {
            Holder::Pool(node) => sound_node(node),
            Holder::Reservation(reservation) => sound_reservation(reservation),
        }
    }

    fn store(self, world: &mut Held) {
        match self {
            Holder::Pool(node) => world.put_node(*node),
            Holder::Reservation(reservation) => world.put_reservation(*reservation),
        }
    }
}

impl Held {
    /// Seats a VM.
    pub(super) fn place(
        &mut self,
        vm: &Vm,
        custodian: &Custodian,
        stamp: &Stamp,
    ) -> StoreResult<Commit> {
        let Some(holder) = Holder::of(self, vm, custodian) else {
            return Ok(Commit::Lost);
        };
        if holder.landed(&stamp.write) {
            return Ok(Commit::Done);
        }
        if self.vms.contains_key(&vm.id) {
            return Ok(Commit::Lost);
        }
        let Some(next) = holder.place(vm, stamp) else {
            return Ok(Commit::Lost);
        };
        next.sound()?;
        next.store(self);
        self.vms.insert(vm.id.clone(), vm.clone());
        Ok(Commit::Done)
    }
}

impl PlaceVm for MemoryStore {
    async fn place(&self, vm: &Vm, custodian: &Custodian, stamp: &Stamp) -> StoreResult<Commit> {
        self.change(|world| world.place(vm, custodian, stamp)).await
    }
}

/// The custodians after the change; `None` if a seat or the noted reservation is not as required.
fn settled(world: &World, change: &Settlement) -> Option<Vec<Holder>> {
    let mut out = Vec::new();
    for (custodian, units) in &change.seats {
        let holder = Holder::of(world, &change.vm, custodian)?;
        if holder.seats(&change.vm.id).as_ref() != Some(units) {
            return None;
        }
        out.push(holder.settle(change.kind, &change.vm.id, &change.stamp)?);
    }
    if let Some(id) = &change.note {
        let reservation = world.reservation(&change.vm.node, id)?;
        let kind = change.kind.action();
        let noted = place::note(reservation, &change.vm, kind, &change.stamp);
        out.push(Holder::reservation(noted));
    }
    Some(out)
}

/// Whether this very change was written before: the mark of its write is on one of its custodians,
/// or, where it has none, the VM is exactly as the change makes it.
fn settled_before(world: &World, change: &Settlement, present: &Vm) -> bool {
    let noted = change
        .note
        .iter()
        .map(|id| Custodian::Reservation(id.clone()));
    let custodians = change
        .seats
        .iter()
        .map(|(custodian, _)| custodian.clone())
        .chain(noted);
    let mut holders = custodians.filter_map(|custodian| Holder::of(world, &change.vm, &custodian));
    holders.any(|holder| holder.landed(&change.stamp.write))
        || (present == &change.vm && change.vm.status != change.seen)
}

impl SettleVm for MemoryStore {
    async fn settle(&self, change: &Settlement) -> StoreResult<Commit> {
        self.change(|world| {
            let Some(present) = world.vms.get(&change.vm.id) else {
                return Ok(Commit::Lost);
            };
            if settled_before(world, change, present) {
                return Ok(Commit::Done);
            }
            let noted = change.kind == SettleKind::Stuck && present.stuck_at.is_some();
            if present.status != change.seen || noted {
                return Ok(Commit::Lost);
            }
            let attempts = present.attempts;
            let Some(holders) = settled(world, change) else {
                return Ok(Commit::Lost);
            };
            for holder in &holders {
                holder.sound()?;
            }
            for holder in holders {
                holder.store(world);
            }
            // Attempts are counted beside all other changes, so the count as read may be behind.
            let vm = Vm {
                attempts,
                ..change.vm.clone()
            };
            world.vms.insert(vm.id.clone(), vm);
            Ok(Commit::Done)
        })
        .await
    }
}

impl CondemnVm for MemoryStore {
    async fn condemn(
        &self,
        id: &VmId,
        sentence: &Sentence,
        reason: &str,
    ) -> StoreResult<Option<Vm>> {
        self.change(|world| {
            let Some(vm) = world.vms.get_mut(id) else {
                return Ok(None);
            };
            if vm.status == VmStatus::Running {
                vm.status = VmStatus::Terminating;
                vm.status_reason = Some(reason.to_owned());
                vm.sentence = Some(sentence.clone());
                vm.updated_at = sentence.at;
            }
            Ok(Some(vm.clone()))
        })
        .await
    }
}

impl CountAttempt for MemoryStore {
    async fn count_attempt(&self, id: &VmId) -> StoreResult<()> {
        self.change(|world| {
            if let Some(vm) = world.vms.get_mut(id) {
                vm.attempts += 1;
            }
            Ok(())
        })
        .await
    }
}
