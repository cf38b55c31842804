//! A store in memory: every port by the domain's own functions. It is what the real store must be.

mod audit;
mod custody;
mod due;
mod lists;
mod once;
mod registry;
mod vms;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use app::StoreError;
use app::auth::{ApiKey, KeyDigest};
use app::idempotency::{IdempotencyKey, Kept};
use app::ports::{Due, StoreResult, Subject};
use app::react::Change;
use domain::audit::Record;
use domain::invariants::{Violation, check_all, check_node, check_reservation};
use domain::{Node, NodeId, OrgId, Reservation, ReservationId, Version, Vm, VmId, WriteId};

use crate::doubles::lock;
use crate::halt::Halt;

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
            let first = (id.clone(), crate::fixtures::id("-"));
            let on = self.reservations.range(first..);
            let here: Vec<Reservation> = on
                .take_while(|((node, _), _)| node == id)
                .map(|(_, reservation)| reservation.clone())
                .collect();
            check_all(node, &here)
        });
        each.collect()
    }

    /// The same over one node with its live reservations alone, which is quick in a large world.
    #[must_use]
    pub fn violations_on(&self, id: &NodeId) -> Vec<Violation> {
        let Some(node) = self.nodes.get(id) else {
            return Vec::new();
        };
        let booked = node.bookings.keys();
        let live: Vec<Reservation> = booked
            .filter_map(|booked| self.reservation(id, booked).cloned())
            .collect();
        check_all(node, &live)
    }

    /// This reservation of this node.
    #[must_use]
    pub fn reservation(&self, node: &NodeId, id: &ReservationId) -> Option<&Reservation> {
        self.reservations.get(&(node.clone(), id.clone()))
    }

    #[cfg(test)]
    fn put_reservation(&mut self, next: Reservation) {
        let key = (next.node.clone(), next.id.clone());
        self.reservations.insert(key, next);
    }

    fn due(&self) -> BTreeSet<Due> {
        let nodes = self.nodes.values().filter_map(due_of_node);
        let reservations = self.reservations.values().filter_map(due_of_reservation);
        nodes.chain(reservations).collect()
    }
}

fn due_of_node(node: &Node) -> Option<Due> {
    let subject = Subject::Node(node.id.clone());
    node.due_at.map(|at| Due { at, subject })
}

fn due_of_reservation(reservation: &Reservation) -> Option<Due> {
    let (node, id) = (reservation.node.clone(), reservation.id.clone());
    let subject = Subject::Reservation(node, id);
    reservation.due_at.map(|at| Due { at, subject })
}

/// The world with what follows from its changes: the index of what is due, and the stream.
#[derive(Debug, Default)]
struct Held {
    world: World,
    due: BTreeSet<Due>,
    stream: Option<Vec<Change>>,
}

impl Held {
    fn of(world: World) -> Self {
        let due = world.due();
        Self {
            world,
            due,
            stream: None,
        }
    }

    fn reindex(&mut self, old: Option<Due>, new: Option<Due>) {
        if let Some(old) = old {
            self.due.remove(&old);
        }
        self.due.extend(new);
    }

    fn put_node(&mut self, next: Node) {
        let old = self.world.nodes.insert(next.id.clone(), next.clone());
        self.reindex(old.as_ref().and_then(due_of_node), due_of_node(&next));
        if let Some(stream) = &mut self.stream {
            let (old, new) = (old.map(Box::new), Box::new(next));
            stream.push(Change::Node { old, new });
        }
    }

    fn put_reservation(&mut self, next: Reservation) {
        let key = (next.node.clone(), next.id.clone());
        let old = self.world.reservations.insert(key, next.clone());
        self.reindex(
            old.as_ref().and_then(due_of_reservation),
            due_of_reservation(&next),
        );
        if let Some(stream) = &mut self.stream {
            let (old, new) = (old.map(Box::new), Box::new(next));
            stream.push(Change::Reservation { old, new });
        }
    }
}

impl Deref for Held {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
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
    held: Arc<Mutex<Held>>,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    calls: Arc<AtomicUsize>,
    halt: Halt,
}

impl MemoryStore {
    /// A store that holds this.
    #[must_use]
    pub fn holding(world: World) -> Self {
        Self {
            held: Arc::new(Mutex::new(Held::of(world))),
            ..Self::default()
        }
    }

    /// A copy of everything that it holds.
    #[must_use]
    pub fn world(&self) -> World {
        self.peek(World::clone)
    }

    /// Looks at what it holds, which is no call to it.
    pub fn peek<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&lock(&self.held).world)
    }

    /// Keeps every change of a node or a reservation from now on, in order.
    pub fn keep_stream(&self) {
        lock(&self.held).stream.get_or_insert_default();
    }

    /// The changes since this was last asked; none unless they are kept.
    #[must_use]
    pub fn take_stream(&self) -> Vec<Change> {
        let mut held = lock(&self.held);
        held.stream.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Changes what it holds past all rules: to set up what no port would write.
    pub fn tamper(&self, change: impl FnOnce(&mut World)) {
        let mut held = lock(&self.held);
        change(&mut held.world);
        held.due = held.world.due();
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

    /// The points at which its calls can be halted: before and after each takes effect.
    #[must_use]
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    async fn read<T: Send>(&self, read: impl FnOnce(&Held) -> T + Send) -> StoreResult<T> {
        self.change(|held| Ok(read(held))).await
    }

    async fn change<T: Send>(
        &self,
        change: impl FnOnce(&mut Held) -> StoreResult<T> + Send,
    ) -> StoreResult<T> {
        self.halt.point().await;
        self.calls.fetch_add(1, Ordering::SeqCst);
        let fault = lock(&self.faults).pop_front();
        let answer = match fault {
            None | Some(Fault::Pass) => change(&mut lock(&self.held)),
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::After(error)) => change(&mut lock(&self.held)).and(Err(error)),
        };
        self.halt.point().await;
        answer
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
