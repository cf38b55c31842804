//! Lists over many nodes, and reads of many things at once.

use std::collections::BTreeSet;

use app::ports::{
    ListModels, ListNodes, ListOrgReservations, LoadCustodians, Page, Part, StoreResult,
};
use domain::{GpuModelId, Node, NodeId, OrgId, Reservation, ReservationId};

use super::{MemoryStore, World, page};

impl ListNodes for MemoryStore {
    async fn list_nodes(
        &self,
        owner: Option<&OrgId>,
        after: Option<&NodeId>,
        limit: usize,
    ) -> StoreResult<Page<Node, NodeId>> {
        self.read(|world| {
            let nodes = world
                .nodes
                .values()
                .filter(|node| owner.is_none_or(|owner| node.owner == *owner))
                .filter(|node| after.is_none_or(|after| node.id > *after));
            page(nodes.cloned(), limit, |node| node.id.clone())
        })
        .await
    }
}

fn models(world: &World) -> BTreeSet<&GpuModelId> {
    world.nodes.values().map(|node| &node.gpu_model).collect()
}

impl ListModels for MemoryStore {
    async fn list_models(
        &self,
        after: Option<&GpuModelId>,
        limit: usize,
    ) -> StoreResult<Page<GpuModelId, GpuModelId>> {
        self.read(|world| {
            let rest = models(world)
                .into_iter()
                .filter(|model| after.is_none_or(|after| *model > after));
            page(rest.cloned(), limit, GpuModelId::clone)
        })
        .await
    }

    async fn has_model(&self, model: &GpuModelId) -> StoreResult<bool> {
        self.read(|world| models(world).contains(model)).await
    }
}

impl LoadCustodians for MemoryStore {
    async fn load_nodes(&self, ids: &BTreeSet<NodeId>) -> StoreResult<Vec<Node>> {
        self.read(|world| {
            let found = ids.iter().filter_map(|id| world.nodes.get(id));
            found.cloned().collect()
        })
        .await
    }

    async fn load_reservations_of(
        &self,
        ids: &BTreeSet<(NodeId, ReservationId)>,
    ) -> StoreResult<Vec<Reservation>> {
        self.read(|world| {
            let found = ids.iter().filter_map(|pair| world.reservations.get(pair));
            found.cloned().collect()
        })
        .await
    }
}

impl ListOrgReservations for MemoryStore {
    async fn list_org_reservations(
        &self,
        org: &OrgId,
        parts: &[Part],
        after: Option<&ReservationId>,
        limit: usize,
    ) -> StoreResult<Page<Reservation, ReservationId>> {
        self.read(|world| {
            let mut own: Vec<&Reservation> = world
                .reservations
                .values()
                .filter(|r| after.is_none_or(|after| r.id > *after))
                .filter(|r| parts.iter().any(|part| part.is_of(org, r)))
                .collect();
            own.sort_by(|a, b| a.id.cmp(&b.id));
            page(own.into_iter().cloned(), limit, |r| r.id.clone())
        })
        .await
    }
}
