//! Keys, nodes, and what is for sale on them.

use app::auth::{ApiKey, KeyDigest};
use app::grant::Keeper;
use app::ports::{
    Commit, Custodian, FindMarket, ListKeys, LoadKey, LoadNode, Page, PutKey, PutNode, RevokeKey,
    StoreResult, Write,
};
use domain::{
    GpuModelId, KeyId, Node, NodeId, OrgId, Reservation, Slot, Status, Timestamp, WriteId,
};

use super::{MemoryStore, page, sound_node};

impl LoadKey for MemoryStore {
    async fn load_key(&self, digest: &KeyDigest) -> StoreResult<Option<ApiKey>> {
        self.read(|world| world.keys.get(digest).cloned()).await
    }
}

impl PutKey for MemoryStore {
    async fn put_key(&self, digest: &KeyDigest, key: &ApiKey) -> StoreResult<Commit> {
        self.change(|world| {
            let named = |there: &ApiKey| there.id == key.id && there.org == key.org;
            match world.keys.get(digest) {
                Some(there) if named(there) => Ok(Commit::Done),
                Some(_) => Ok(Commit::Lost),
                None if world.keys.values().any(named) => Ok(Commit::Lost),
                None => {
                    world.keys.insert(digest.clone(), key.clone());
                    Ok(Commit::Done)
                }
            }
        })
        .await
    }
}

impl ListKeys for MemoryStore {
    async fn list_keys(
        &self,
        org: &OrgId,
        after: Option<&KeyId>,
        limit: usize,
    ) -> StoreResult<Page<ApiKey, KeyId>> {
        self.read(|world| {
            let of_org = world.keys.values().filter(|key| key.org == *org);
            let wanted = of_org.filter(|key| after.is_none_or(|after| key.id > *after));
            let mut keys: Vec<ApiKey> = wanted.cloned().collect();
            keys.sort_by(|a, b| a.id.cmp(&b.id));
            page(keys.into_iter(), limit, |key| key.id.clone())
        })
        .await
    }
}

impl RevokeKey for MemoryStore {
    async fn revoke_key(
        &self,
        org: &OrgId,
        id: &KeyId,
        keeper: Keeper,
        at: Timestamp,
    ) -> StoreResult<Write<ApiKey>> {
        self.change(|world| {
            let mut keys = world.keys.values_mut();
            let Some(key) = keys.find(|key| key.org == *org && key.id == *id) else {
                return Ok(Write::Absent);
            };
            if keeper.check(key.operator, key.grant.role()).is_err() {
                return Ok(Write::Refused(key.clone()));
            }
            key.revoked_at = key.revoked_at.or(Some(at));
            Ok(Write::Done(key.clone()))
        })
        .await
    }
}

impl LoadNode for MemoryStore {
    async fn load_node(&self, id: &NodeId) -> StoreResult<Option<Node>> {
        self.read(|world| world.nodes.get(id).cloned()).await
    }
}

impl PutNode for MemoryStore {
    async fn put_node(&self, node: &Node, write: &WriteId) -> StoreResult<Write<(), Node>> {
        sound_node(node)?;
        self.change(|world| {
            let answer = match world.nodes.get(&node.id) {
                None => {
                    world.put_node(node.clone());
                    Write::Done(())
                }
                Some(there) if there.recent.landed(write).is_some() => Write::Done(()),
                Some(there) => Write::Refused(there.clone()),
            };
            Ok(answer)
        })
        .await
    }
}

/// Whether the reservation has an empty unit on the spot market.
fn spot_sells(reservation: &Reservation) -> bool {
    let mut released = reservation
        .slots
        .iter()
        .filter(|(unit, _)| reservation.released.contains(*unit));
    reservation.status == Status::Active && released.any(|(_, slot)| empty(slot))
}

fn empty(slot: &Slot) -> bool {
    slot.occupant.is_none()
}

impl FindMarket for MemoryStore {
    async fn find_market(
        &self,
        model: &GpuModelId,
        spread: &WriteId,
        limit: usize,
    ) -> StoreResult<Vec<(NodeId, Custodian)>> {
        self.read(|world| {
            let pools = world
                .nodes
                .values()
                .filter(|node| node.gpu_model == *model)
                .map(|node| (node.id.clone(), Custodian::Pool));
            let reservations = world
                .reservations
                .values()
                .filter(|r| r.gpu_model == *model && spot_sells(r))
                .map(|r| (r.node.clone(), Custodian::Reservation(r.id.clone())));
            let mut hints: Vec<_> = pools.chain(reservations).collect();
            let start = spread.as_str().bytes().fold(0_usize, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(usize::from(byte))
            });
            let turn = start % hints.len().max(1);
            hints.rotate_left(turn);
            hints.truncate(limit);
            hints
        })
        .await
    }
}
