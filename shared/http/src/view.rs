//! Resources as callers see them. Ids come sorted; what has no value is left out.

mod keys;

use std::collections::BTreeMap;

use app::availability::Availability;
use app::nodes::{NodeView as LoadedNode, Termination};
use domain::audit::{Record, Snapshot};
use domain::reservation::{Reservation, Victims};
use domain::slot::Slot;
use domain::vm::Vm;
use domain::{Node, Tier, Timestamp, UnitId};
use serde::Serialize;

pub use keys::{CallerView, KeyView, MadeKeyView};

fn texts<T: ToString>(ids: impl IntoIterator<Item = T>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}

/// Exclusive rights of a set of orgs over units of one node, for a term.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Reservation"))]
pub struct ReservationView {
    /// Its id.
    pub id: String,
    /// The node that the units are of.
    pub node_id: String,
    /// The units that the orgs of `allowedOrgIds` have to themselves.
    pub reserved_unit_ids: Vec<String>,
    /// Those of the reserved units that are on the spot market now. They stay part of the
    /// reservation; anyone may buy them, at `tier=spot` only, and they can be reclaimed at any
    /// time.
    pub released_unit_ids: Vec<String>,
    /// The audience: orgs that may place workloads on the reserved units.
    pub allowed_org_ids: Vec<String>,
    /// Orgs that may release these units, reclaim them, and terminate spot workloads on them,
    /// while the reservation is active and inside its term. Being in the audience does not
    /// confer this.
    pub managing_org_ids: Vec<String>,
    /// From when on it counts.
    pub starts_at: String,
    /// From when on it does not count any more; absent while it is open-ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
    /// What it is now. `needs-review`: the node's units changed under it; it grants nothing,
    /// and withholds its units from everyone, until an operator re-affirms it.
    pub status: &'static str,
    /// The generation of the node's topology that it was written against.
    pub topology_gen: u64,
    /// What its maker calls the contract behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<String>,
    /// Why it was made, in the words of who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
    /// On a reclaim alone: the spot VMs terminated to free the units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Vec<String>>,
    /// On a reclaim alone: the VMs left running because they are not spot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<String>>,
    /// On a dry run alone: the spot VMs that this reclaim would terminate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_terminate: Option<Vec<String>>,
    /// On a dry run alone: the VMs that it would leave running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_skip: Option<Vec<String>>,
}

impl ReservationView {
    /// The reservation as it counts at `now`.
    #[must_use]
    pub fn of(reservation: &Reservation, now: Timestamp) -> Self {
        Self {
            id: reservation.id.to_string(),
            node_id: reservation.node.to_string(),
            reserved_unit_ids: texts(reservation.units.iter()),
            released_unit_ids: texts(&reservation.released),
            allowed_org_ids: texts(&reservation.audience),
            managing_org_ids: texts(&reservation.managers),
            starts_at: reservation.term.starts.to_string(),
            ends_at: reservation.term.ends.map(|at| at.to_string()),
            status: reservation.shown_at(now).as_str(),
            topology_gen: reservation.topology_gen,
            contract_ref: reservation.contract_ref.clone(),
            reason: reservation.reason.clone(),
            created_at: reservation.created_at.to_string(),
            updated_at: reservation.updated_at.to_string(),
            terminated: None,
            skipped: None,
            would_terminate: None,
            would_skip: None,
        }
    }

    /// With the VMs a reclaim terminated and those it left running.
    #[must_use]
    pub fn reclaimed(mut self, victims: &Victims) -> Self {
        self.terminated = Some(texts(&victims.spot));
        self.skipped = Some(texts(&victims.other));
        self
    }

    /// With the VMs a reclaim would terminate and those it would leave running.
    #[must_use]
    pub fn would_reclaim(mut self, victims: &Victims) -> Self {
        self.would_terminate = Some(texts(&victims.spot));
        self.would_skip = Some(texts(&victims.other));
        self
    }
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Vm"))]
pub struct VmView {
    /// Its id.
    pub id: String,
    /// The org that it belongs to.
    pub organization_id: String,
    /// Its name, as its org chose it.
    pub name: String,
    /// `terminating`: it was told to stop and its machine has not confirmed that it is gone;
    /// only then, `terminated`, are its units free.
    pub status: &'static str,
    /// Why it is terminating or terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// What it was bought as.
    pub tier: &'static str,
    /// The model of its GPUs.
    pub gpu_model_id: String,
    /// How many GPUs it has.
    pub gpu_count: u32,
    /// The node that it runs on.
    pub node_id: String,
    /// The units that it has.
    pub unit_ids: Vec<String>,
    /// The reservation that it was placed on, if any. A spot buyer is not told on whose
    /// reservation its VM runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// When it was made.
    pub created_at: String,
}

impl VmView {
    /// The VM. A spot buyer is not told on whose reservation it landed.
    #[must_use]
    pub fn of(vm: &Vm) -> Self {
        let shown = vm.reservation.as_ref().filter(|_| vm.tier != Tier::Spot);
        Self {
            id: vm.id.to_string(),
            organization_id: vm.org.to_string(),
            name: vm.name.clone(),
            status: vm.status.as_str(),
            status_reason: vm.status_reason.clone(),
            tier: vm.tier.as_str(),
            gpu_model_id: vm.gpu_model.to_string(),
            gpu_count: vm.gpu_count,
            node_id: vm.node.to_string(),
            unit_ids: texts(&vm.units),
            reservation_id: shown.map(ToString::to_string),
            created_at: vm.created_at.to_string(),
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Node"))]
pub struct NodeView {
    /// Its id.
    pub id: String,
    /// The org that owns it.
    pub owner_org_id: String,
    /// The model of all its GPUs.
    pub gpu_model_id: String,
    /// The generation of its topology: one up, at least, with every report of its units.
    pub topology_gen: u64,
    /// Its units, in order of their ids.
    pub units: Vec<UnitView>,
    /// When it was registered.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
}

/// A node as lists show it: without its units, which are read node by node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "NodeSummary"))]
pub struct NodeSummaryView {
    /// Its id.
    pub id: String,
    /// The org that owns it.
    pub owner_org_id: String,
    /// The model of all its GPUs.
    pub gpu_model_id: String,
    /// The generation of its topology.
    pub topology_gen: u64,
    /// How many units it reported last.
    pub unit_count: usize,
    /// When it was registered.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
}

impl NodeSummaryView {
    /// The node, with the number of units that it reported last.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        Self {
            id: node.id.to_string(),
            owner_org_id: node.owner.to_string(),
            gpu_model_id: node.gpu_model.to_string(),
            topology_gen: node.topology_gen,
            unit_count: node.units.len(),
            created_at: node.created_at.to_string(),
            updated_at: node.updated_at.to_string(),
        }
    }
}

/// What is free of a GPU model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Availability"))]
pub struct AvailabilityView {
    /// The model.
    pub gpu_model_id: String,
    /// What is free, by the names of the tiers.
    pub free: BTreeMap<&'static str, FreeView>,
    /// The nodes that have any of it.
    pub nodes: u32,
    /// Set where not all of the fleet was counted: there is as much, and there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<bool>,
}

/// What is free at a tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "FreeCapacity"))]
pub struct FreeView {
    /// GPUs.
    pub gpus: u32,
    /// The units that they are in.
    pub units: u32,
    /// The nodes that those are on.
    pub nodes: u32,
    /// Most GPUs that one VM can have: it never spans nodes.
    pub largest_vm_gpus: u32,
}

impl AvailabilityView {
    /// The counts.
    #[must_use]
    pub fn of(found: &Availability) -> Self {
        let free = found.free.iter().map(|(tier, free)| {
            let view = FreeView {
                gpus: free.gpus,
                units: free.units,
                nodes: free.nodes,
                largest_vm_gpus: free.largest,
            };
            (tier.as_str(), view)
        });
        Self {
            gpu_model_id: found.model.to_string(),
            free: free.collect(),
            nodes: found.nodes,
            at_least: found.at_least.then_some(true),
        }
    }
}

/// A unit of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Unit"))]
pub struct UnitView {
    /// Its id, within its node.
    pub id: String,
    /// How many GPUs are in it.
    pub gpus: u16,
    /// `free` in the public pool, `reserved` by a reservation, or `released` by it to the spot
    /// market.
    pub state: &'static str,
    /// The VM on it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
    /// The reservation that has it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
}

impl NodeView {
    /// The node with its units, whoever holds them.
    #[must_use]
    pub fn of(loaded: &LoadedNode) -> Self {
        let node = &loaded.node;
        let mut units: Vec<UnitView> = node
            .slots
            .iter()
            // A unit that is gone is shown for as long as a VM is on it.
            .filter(|(unit, slot)| node.units.contains_key(*unit) || slot.occupant.is_some())
            .map(|(unit, slot)| unit_view(unit, slot, "free", None))
            .collect();
        for reservation in &loaded.holding {
            units.extend(reservation.slots.iter().map(|(unit, slot)| {
                let released = reservation.released.contains(unit);
                let state = if released { "released" } else { "reserved" };
                unit_view(unit, slot, state, Some(reservation.id.to_string()))
            }));
        }
        units.sort_by(|a, b| a.id.cmp(&b.id));
        Self {
            id: node.id.to_string(),
            owner_org_id: node.owner.to_string(),
            gpu_model_id: node.gpu_model.to_string(),
            topology_gen: node.topology_gen,
            units,
            created_at: node.created_at.to_string(),
            updated_at: node.updated_at.to_string(),
        }
    }
}

fn unit_view(
    unit: &UnitId,
    slot: &Slot,
    state: &'static str,
    reservation_id: Option<String>,
) -> UnitView {
    UnitView {
        id: unit.to_string(),
        gpus: slot.gpus,
        state,
        vm_id: slot
            .occupant
            .as_ref()
            .map(|occupant| occupant.vm.to_string()),
        reservation_id,
    }
}

/// A VM that the node's agent is to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Termination"))]
pub struct TerminationView {
    /// The VM to be stopped.
    pub vm_id: String,
    /// The units that it is on.
    pub unit_ids: Vec<String>,
    /// The reservation that condemned it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// The version of that reservation which condemned it: an older order must not be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_version: Option<u64>,
    /// Since when it is to be stopped.
    pub requested_at: String,
    /// How often its machine was told.
    pub attempts: u32,
    /// Whether it has not been confirmed for too long: somebody should look.
    pub stuck: bool,
}

impl TerminationView {
    /// The termination.
    #[must_use]
    pub fn of(termination: &Termination) -> Self {
        Self {
            vm_id: termination.vm.to_string(),
            unit_ids: texts(&termination.units),
            reservation_id: termination.reservation.as_ref().map(ToString::to_string),
            reservation_version: termination.version.map(domain::Version::get),
            requested_at: termination.requested_at.to_string(),
            attempts: termination.attempts,
            stuck: termination.stuck,
        }
    }
}

/// An audit record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "AuditRecord"))]
pub struct RecordView {
    /// Its id.
    pub id: String,
    /// What happened.
    pub r#type: &'static str,
    /// The reservation.
    pub reservation_id: String,
    /// The node.
    pub node_id: String,
    /// The version of the reservation that this made: there is no gap between versions.
    pub version: u64,
    /// When.
    pub at: String,
    /// Who did it.
    pub actor: ActorView,
    /// The request that it was done by.
    pub request_id: String,
    /// Why, in the words of who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The units that it concerns.
    pub unit_ids: Vec<String>,
    /// The VMs that it concerns.
    pub vm_ids: Vec<String>,
    /// The reservation before it; absent on the first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<SnapshotView>,
    /// The reservation after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<SnapshotView>,
    /// The `hash` of the record before; empty on the first.
    pub prev_hash: String,
    /// SHA-256 over the canonical JSON of this record without `hash`.
    pub hash: String,
}

/// Who acted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Actor"))]
pub struct ActorView {
    /// The org, unless the platform itself acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// The key, by its public id, unless the platform itself acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// What it was to the reservation.
    pub kind: &'static str,
}

/// A reservation before or after an audited change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Snapshot"))]
pub struct SnapshotView {
    /// Its status.
    pub status: &'static str,
    /// Its units that were on the spot market.
    pub released_unit_ids: Vec<String>,
}

impl RecordView {
    /// The record.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let event = &record.event;
        let snapshot = |snapshot: &Snapshot| SnapshotView {
            status: snapshot.status.as_str(),
            released_unit_ids: texts(&snapshot.released),
        };
        Self {
            id: event.id(),
            r#type: event.event.as_str(),
            reservation_id: event.reservation.to_string(),
            node_id: event.node.to_string(),
            version: event.version.get(),
            at: event.at.to_string(),
            actor: ActorView {
                org_id: event.actor.org.as_ref().map(ToString::to_string),
                key_id: event.actor.key.as_ref().map(ToString::to_string),
                kind: event.actor.kind.as_str(),
            },
            request_id: event.request_id.clone(),
            reason: event.reason.clone(),
            unit_ids: texts(&event.units),
            vm_ids: texts(&event.vms),
            before: event.before.as_ref().map(snapshot),
            after: event.after.as_ref().map(snapshot),
            prev_hash: record.prev_hash.clone(),
            hash: record.hash.clone(),
        }
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "{T}Page"))]
pub struct PageView<T> {
    /// The items.
    pub items: Vec<T>,
    /// What to send as `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// That the platform is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Health"))]
pub struct HealthView {
    /// `ok`.
    pub status: &'static str,
}
