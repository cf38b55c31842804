//! A store in memory: every port by the domain's own functions. It is what the real store must be.

mod audit;
mod custody;
mod due;
mod lists;
mod once;
mod registry;
mod vms;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use app::StoreError;
use app::auth::{ApiKey, KeyDigest};
use app::idempotency::{IdempotencyKey, Kept};
use app::ports::StoreResult;
use domain::audit::Record;
use domain::invariants::{Violation, check_all, check_node, check_reservation};
use domain::{Node, NodeId, OrgId, Reservation, ReservationId, Version, Vm, VmId, WriteId};

use crate::doubles::lock;

/// Everything that a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct World {
    /// API keys by the digest of their secret.
    pub keys: BTreeMap<KeyDigest, ApiKey>,
    /// Nodes.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Reservations by node and id.
    pub reservations: BTreeMap<(NodeId, ReservationId), Reservation>,
    /// VMs.
    pub vms: BTreeMap<VmId, Vm>,
    /// Answers kept for calls, by org and key, each with the write that left it.
    pub kept: BTreeMap<(OrgId, IdempotencyKey), (Kept, WriteId)>,
    /// Audit records in the order of their chains.
    pub audit: BTreeMap<ReservationId, BTreeMap<(Version, Option<VmId>), Record>>,
}

impl World {
    /// What must not be and is, over all nodes with their reservations.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let each = self.nodes.iter().flat_map(|(id, node)| {
            let here: Vec<Reservation> = self
                .reservations
                .iter()
                .filter(|((node, _), _)| node == id)
                .map(|(_, reservation)| reservation.clone())
                .collect();
            check_all(node, &here)
        });
        each.collect()
    }

    fn reservation(&self, node: &NodeId, id: &ReservationId) -> Option<&Reservation> {
        self.reservations.get(&(node.clone(), id.clone()))
    }

    fn put_reservation(&mut self, next: Reservation) {
        let key = (next.node.clone(), next.id.clone());
        self.reservations.insert(key, next);
    }
}

/// What goes wrong with a call to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through. Stands before others, to let calls pass.
    Pass,
    /// The call fails and does nothing.
    Before(StoreError),
    /// The call is done, and its reply is lost on the way: the caller sees this failure.
    After(StoreError),
}

/// The store in memory. Its clones hold the same world.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    world: Arc<Mutex<World>>,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    calls: Arc<AtomicUsize>,
}

impl MemoryStore {
    /// A store that holds this.
    #[must_use]
    pub fn holding(world: World) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            ..Self::default()
        }
    }

    /// A copy of everything that it holds.
    #[must_use]
    pub fn world(&self) -> World {
        lock(&self.world).clone()
    }

    /// Changes what it holds past all rules: to set up what no port would write.
    pub fn tamper(&self, change: impl FnOnce(&mut World)) {
        change(&mut lock(&self.world));
    }

    /// Gives the next calls these faults, one each, in order; calls after them go through.
    pub fn inject(&self, faults: &[Fault]) {
        *lock(&self.faults) = faults.iter().cloned().collect();
    }

    /// How many calls there were since this was last asked.
    #[must_use]
    pub fn take_calls(&self) -> usize {
        self.calls.swap(0, Ordering::SeqCst)
    }

    fn read<T>(&self, read: impl FnOnce(&World) -> T) -> StoreResult<T> {
        self.change(|world| Ok(read(world)))
    }

    fn change<T>(&self, change: impl FnOnce(&mut World) -> StoreResult<T>) -> StoreResult<T> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let fault = lock(&self.faults).pop_front();
        match fault {
            None | Some(Fault::Pass) => change(&mut lock(&self.world)),
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::After(error)) => change(&mut lock(&self.world)).and(Err(error)),
        }
    }
}

/// Refuses to write a node that breaks an invariant.
fn sound_node(node: &Node) -> StoreResult<()> {
    sound(&check_node(node))
}

/// Refuses to write a reservation that breaks an invariant.
fn sound_reservation(reservation: &Reservation) -> StoreResult<()> {
    sound(&check_reservation(reservation))
}

fn sound(violations: &[Violation]) -> StoreResult<()> {
    match violations.first() {
        None => Ok(()),
        Some(violation) => Err(StoreError::Corrupt(violation.to_string())),
    }
}

/// The first `limit` of `items`, and the key of the last of them if there are more.
fn page<T, K>(
    items: impl Iterator<Item = T>,
    limit: usize,
    key: impl Fn(&T) -> K,
) -> app::ports::Page<T, K> {
    let mut items: Vec<T> = items.take(limit.saturating_add(1)).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(key);
    app::ports::Page { items, next }
}

#[cfg(test)]
mod tests;
