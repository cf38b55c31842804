//! Keys, nodes, and what is for sale on them.

use app::auth::{ApiKey, KeyDigest};
use app::ports::{Custodian, FindMarket, LoadKey, LoadNode, PutKey, PutNode, StoreResult, Write};
use domain::{GpuModelId, Node, NodeId, Reservation, Slot, Status, WriteId};

use super::{MemoryStore, sound_node};

impl LoadKey for MemoryStore {
    async fn load_key(&self, digest: &KeyDigest) -> StoreResult<Option<ApiKey>> {
        self.read(|world| world.keys.get(digest).cloned())
    }
}

impl PutKey for MemoryStore {
    async fn put_key(&self, digest: &KeyDigest, key: &ApiKey) -> StoreResult<()> {
        self.change(|world| {
            world.keys.insert(digest.clone(), key.clone());
            Ok(())
        })
    }
}

impl LoadNode for MemoryStore {
    async fn load_node(&self, id: &NodeId) -> StoreResult<Option<Node>> {
        self.read(|world| world.nodes.get(id).cloned())
    }
}

impl PutNode for MemoryStore {
    async fn put_node(&self, node: &Node, write: &WriteId) -> StoreResult<Write<(), Node>> {
        sound_node(node)?;
        self.change(|world| {
            let answer = match world.nodes.get(&node.id) {
                None => {
                    world.nodes.insert(node.id.clone(), node.clone());
                    Write::Done(())
                }
                Some(there) if there.recent.landed(write).is_some() => Write::Done(()),
                Some(there) => Write::Refused(there.clone()),
            };
            Ok(answer)
        })
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
    }
}
