//! Lists that hang on links: one strongly consistent query of links, one batch of what they name.

use std::collections::{BTreeMap, BTreeSet};

use app::ports::{
    ListModels, ListNodes, ListOrgReservations, LoadCustodians, Page, Part, StoreResult,
};
use domain::{GpuModelId, Node, NodeId, OrgId, Reservation, ReservationId};

use super::DynamoStore;
use super::read::page;
use crate::item::{link, node, reservation};
use crate::keys::{
    Key, Subject, models_after, models_pk, nodes_after, nodes_pk, of_org_pk, org_reservations_after,
};

impl DynamoStore {
    async fn nodes_by_id(&self, ids: impl Iterator<Item = &NodeId>) -> StoreResult<Vec<Node>> {
        let found = self.get_all(ids.map(Key::node).collect(), true).await?;
        let nodes: StoreResult<Vec<Node>> = found.values().map(node::decode).collect();
        let mut nodes = nodes?;
        // Keys sort as ids do, but for those of which one is the start of another.
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(nodes)
    }
}

impl ListNodes for DynamoStore {
    async fn list_nodes(
        &self,
        owner: Option<&OrgId>,
        after: Option<&NodeId>,
        limit: usize,
    ) -> StoreResult<Page<Node, NodeId>> {
        let links = self.within(nodes_pk(owner), nodes_after(after), limit);
        let ids: StoreResult<Vec<NodeId>> = links
            .await?
            .iter()
            .map(|item| {
                link::decode(item, |subject| match subject {
                    Subject::NodeLink(_, node) => Some(node),
                    _ => None,
                })
            })
            .collect();
        let ids = page(ids?, limit, NodeId::clone);
        Ok(Page {
            items: self.nodes_by_id(ids.items.iter()).await?,
            next: ids.next,
        })
    }
}

impl ListModels for DynamoStore {
    async fn list_models(
        &self,
        after: Option<&GpuModelId>,
        limit: usize,
    ) -> StoreResult<Page<GpuModelId, GpuModelId>> {
        let links = self.within(models_pk(), models_after(after), limit);
        let models: StoreResult<Vec<GpuModelId>> = links
            .await?
            .iter()
            .map(|item| {
                link::decode(item, |subject| match subject {
                    Subject::Model(model) => Some(model),
                    _ => None,
                })
            })
            .collect();
        Ok(page(models?, limit, GpuModelId::clone))
    }

    async fn has_model(&self, model: &GpuModelId) -> StoreResult<bool> {
        Ok(self.get(&Key::model(model)).await?.is_some())
    }
}

impl LoadCustodians for DynamoStore {
    async fn load_nodes(&self, ids: &BTreeSet<NodeId>) -> StoreResult<Vec<Node>> {
        self.nodes_by_id(ids.iter()).await
    }

    async fn load_reservations_of(
        &self,
        ids: &BTreeSet<(NodeId, ReservationId)>,
    ) -> StoreResult<Vec<Reservation>> {
        let keys = ids.iter().map(|(node, id)| Key::reservation(node, id));
        let found = self.get_all(keys.collect(), true).await?;
        let each: StoreResult<BTreeMap<_, Reservation>> = found
            .values()
            .map(|item| {
                let found = reservation::decode(item)?;
                Ok(((found.node.clone(), found.id.clone()), found))
            })
            .collect();
        Ok(each?.into_values().collect())
    }
}

impl ListOrgReservations for DynamoStore {
    /// One query for each part, their links merged; one batch of what they name.
    async fn list_org_reservations(
        &self,
        org: &OrgId,
        parts: &[Part],
        after: Option<&ReservationId>,
        limit: usize,
    ) -> StoreResult<Page<Reservation, ReservationId>> {
        // The first ones of all are among the first ones of each.
        let mut links: BTreeMap<ReservationId, NodeId> = BTreeMap::new();
        for part in parts {
            let range = org_reservations_after(*part, after);
            for item in self.within(of_org_pk(org), range, limit).await? {
                let (id, node) = link::decode_reservation(&item)?;
                links.insert(id, node);
            }
        }
        let page = page(links.into_iter().collect(), limit, |(id, _)| id.clone());
        let pairs = page.items.into_iter().map(|(id, node)| (node, id));
        let mut items = self.load_reservations_of(&pairs.collect()).await?;
        items.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Page {
            items,
            next: page.next,
        })
    }
}
