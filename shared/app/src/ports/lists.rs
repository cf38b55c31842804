//! Ports of lists over many nodes, and of reads of many things at once.

use std::collections::BTreeSet;
use std::future::Future;

use domain::node::Node;
use domain::reservation::Reservation;
use domain::{GpuModelId, NodeId, OrgId, ReservationId};

use super::{Page, StoreResult};

/// Lists nodes in order of their ids.
pub trait ListNodes: Send + Sync {
    /// At most `limit` of them, those after `after`: the nodes of `owner`, or all of them.
    fn list_nodes(
        &self,
        owner: Option<&OrgId>,
        after: Option<&NodeId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<Node, NodeId>>> + Send;
}

/// Lists the GPU models that nodes were ever registered with, in order of their ids.
pub trait ListModels: Send + Sync {
    /// At most `limit` of them, those after `after`.
    fn list_models(
        &self,
        after: Option<&GpuModelId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<GpuModelId, GpuModelId>>> + Send;

    /// Whether it is one of them.
    fn has_model(&self, model: &GpuModelId) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Reads holders of units of several nodes at once, strongly consistent, but each at an instant of
/// its own: a unit that changes hands meanwhile may be seen in both hands or in none.
pub trait LoadCustodians: Send + Sync {
    /// Those of the nodes that exist, in order of their ids.
    fn load_nodes(
        &self,
        ids: &BTreeSet<NodeId>,
    ) -> impl Future<Output = StoreResult<Vec<Node>>> + Send;

    /// Those of the reservations that exist, in order of their nodes' ids and their own.
    fn load_reservations_of(
        &self,
        ids: &BTreeSet<(NodeId, ReservationId)>,
    ) -> impl Future<Output = StoreResult<Vec<Reservation>>> + Send;
}

/// The part that an org has in a reservation. It has it from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// It may place workloads on the units.
    Audience,
    /// It may release and reclaim them.
    Manager,
    /// It owns the node.
    Owner,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 3] = [Part::Audience, Part::Manager, Part::Owner];

    /// Its name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Audience => "audience",
            Part::Manager => "manager",
            Part::Owner => "owner",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == text)
    }

    /// Whether the org has this part in the reservation.
    #[must_use]
    pub fn is_of(self, org: &OrgId, reservation: &Reservation) -> bool {
        match self {
            Part::Audience => reservation.audience.contains(org),
            Part::Manager => reservation.managers.contains(org),
            Part::Owner => reservation.node_owner == *org,
        }
    }
}

/// Lists the reservations that an org has a part in, in order of their ids, whatever their nodes.
pub trait ListOrgReservations: Send + Sync {
    /// At most `limit` of those in which it has one of these parts, each once, those after `after`.
    fn list_org_reservations(
        &self,
        org: &OrgId,
        parts: &[Part],
        after: Option<&ReservationId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Page<Reservation, ReservationId>>> + Send;
}
