//! Nodes: registered, read, and the agent's side of terminations.

use std::collections::{BTreeMap, BTreeSet};

use domain::node::{Node, Register};
use domain::slot::condemned;
use domain::{
    Dying, GpuModelId, NodeId, OrgId, Reservation, ReservationId, Timestamp, UnitId, Version, Vm,
    VmId,
};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::ports::{
    Clock, ListNodes, LoadNode, LoadReservations, LoadVms, Page, PutNode, StoreResult, Write,
};

/// A node together with the reservations that hold its units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// The node.
    pub node: Node,
    /// The reservations that hold units of it.
    pub holding: Vec<Reservation>,
}

/// How often a node is read again because its units changed hands while it was being read.
const READS_MAX: usize = 5;

/// Reads a node and the reservations that hold its units, such that every unit is in one hand.
///
/// # Errors
/// The store's failures; `Conflict` if the units keep changing hands.
pub async fn load(
    store: &(impl LoadNode + LoadReservations),
    id: &NodeId,
) -> StoreResult<Option<NodeView>> {
    load_if(store, id, |_| true).await
}

/// The same for a node that passes `visible`. One that does not costs what an absent one costs, so
/// that the two cannot be told apart.
async fn load_if(
    store: &(impl LoadNode + LoadReservations),
    id: &NodeId,
    visible: impl Fn(&Node) -> bool + Send,
) -> StoreResult<Option<NodeView>> {
    for _ in 0..READS_MAX {
        let Some(node) = store.load_node(id).await?.filter(&visible) else {
            return Ok(None);
        };
        let ids: BTreeSet<ReservationId> = node.holding().cloned().collect();
        if ids.is_empty() {
            return Ok(Some(NodeView {
                node,
                holding: Vec::new(),
            }));
        }
        let holding = store.load_reservations(id, &ids).await?;
        // One that was ended in between holds nothing any more: the node was read too early.
        if holding.len() == ids.len() && holding.iter().all(|r| !r.slots.is_empty()) {
            return Ok(Some(NodeView { node, holding }));
        }
    }
    Err(crate::error::StoreError::Conflict)
}

/// Registers a node. Registering it again with the same properties changes nothing.
///
/// # Errors
/// Not found for anyone but an operator; `node_already_registered` if it is there with other
/// properties.
pub async fn put(
    store: &(impl PutNode + LoadNode + LoadReservations),
    clock: &impl Clock,
    context: &Context,
    request: NodeRequest,
) -> Result<NodeView, Error> {
    if !context.caller().operator {
        return Err(Error::not_found());
    }
    let asked = Register {
        id: request.id,
        owner: request.owner,
        gpu_model: request.gpu_model,
        units: request.units,
        topology_gen: request.topology_gen,
        stamp: context.stamp(clock.now(), None)?,
    };
    let node = asked.node();
    match store.put_node(&node, &asked.stamp.write).await? {
        Write::Done(()) => {
            return Ok(NodeView {
                node,
                holding: Vec::new(),
            });
        }
        Write::Absent | Write::Refused(_) => {}
    }
    let there = load(store, &asked.id).await?.ok_or_else(|| {
        Error::Bug(Internal(format!(
            "node {} refused a registration and is not there",
            asked.id
        )))
    })?;
    there.node.same_as(&asked)?;
    Ok(there)
}

/// What a caller asks of a new node.
#[derive(Debug, Clone)]
pub struct NodeRequest {
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
}

/// Reads a node.
///
/// # Errors
/// Not found unless the caller is an operator or of the owner org.
pub async fn get(
    store: &(impl LoadNode + LoadReservations),
    context: &Context,
    id: &NodeId,
) -> Result<NodeView, Error> {
    let view = load_if(store, id, |node| node.may_manage(context.caller())).await?;
    view.ok_or_else(Error::not_found)
}

/// Lists nodes in order of their ids: all of them for an operator, its own for an owner org, and
/// none for anyone else.
///
/// # Errors
/// The store's failures.
pub async fn list(
    store: &impl ListNodes,
    context: &Context,
    after: Option<&NodeId>,
    limit: usize,
) -> Result<Page<Node, NodeId>, Error> {
    let caller = context.caller();
    let owner = (!caller.operator).then_some(&caller.org);
    Ok(store.list_nodes(owner, after, limit).await?)
}

/// A VM that the node's agent is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// The VM.
    pub vm: VmId,
    /// Its units.
    pub units: BTreeSet<UnitId>,
    /// The reservation that condemned it, if one did.
    pub reservation: Option<ReservationId>,
    /// That reservation's version, where it still holds the units.
    pub version: Option<Version>,
    /// When it was condemned.
    pub requested_at: Timestamp,
    /// How often its machine was told.
    pub attempts: u32,
    /// Whether it has been found overdue.
    pub stuck: bool,
}

/// Lists the condemned VMs of a node, read off the state itself and not off any message.
///
/// # Errors
/// As [`get`].
pub async fn terminations(
    store: &(impl LoadNode + LoadReservations + LoadVms),
    context: &Context,
    id: &NodeId,
) -> Result<Vec<Termination>, Error> {
    let view = get(store, context, id).await?;
    let mut found = found_in(&view);
    let ids: BTreeSet<VmId> = found.keys().cloned().collect();
    let vms = if ids.is_empty() {
        Vec::new()
    } else {
        store.load_vms(&ids).await?
    };
    for vm in vms {
        if let Some(termination) = found.get_mut(&vm.id) {
            tell(termination, &vm);
        }
    }
    Ok(found.into_values().collect())
}

/// Adds what the VM's own item knows.
fn tell(termination: &mut Termination, vm: &Vm) {
    termination.attempts = vm.attempts;
    termination.stuck = vm.stuck_at.is_some();
    termination.units.extend(vm.units.iter().cloned());
    if let Some(sentence) = &vm.sentence {
        termination.requested_at = sentence.at;
    }
}

fn found_in(view: &NodeView) -> BTreeMap<VmId, Termination> {
    let mut out = BTreeMap::new();
    let pool = condemned(&view.node.slots, view.node.offer());
    let node = (pool, None, view.node.updated_at);
    let held = view.holding.iter().map(|r| {
        (
            condemned(&r.slots, r.offer()),
            Some((&r.id, r.version)),
            r.updated_at,
        )
    });
    for (vms, custodian, changed_at) in std::iter::once(node).chain(held) {
        for (vm, sentence) in vms {
            let by = match sentence.dying {
                Some(Dying::Evicted(by)) => Some(by),
                Some(Dying::Stopped) => None,
                None => custodian.map(|(id, _)| id.clone()),
            };
            let version = custodian
                .filter(|(id, _)| by.as_ref() == Some(id))
                .map(|(_, v)| v);
            let entry = out.entry(vm.clone()).or_insert(Termination {
                vm,
                units: BTreeSet::new(),
                reservation: by,
                version,
                requested_at: changed_at,
                attempts: 0,
                stuck: false,
            });
            entry.units.extend(sentence.units);
        }
    }
    out
}
