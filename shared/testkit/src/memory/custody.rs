//! Reservations: read, released, reclaimed, and slots that change hands.

use std::collections::BTreeSet;

use app::ports::{
    ChangeTopology, Commit, CustodyMove, Landed, ListReservations, LoadReservations, MoveCustody,
    Page, ReclaimUnits, ReleaseUnits, StoreResult, TopologyChange, Write,
};
use domain::reservation::{Reclaim, Release, reclaim, release};
use domain::{NodeId, Refusal, Reservation, ReservationId, WriteId};

use super::{Held, MemoryStore, page, sound_node, sound_reservation};

impl LoadReservations for MemoryStore {
    async fn load_reservation(
        &self,
        node: &NodeId,
        id: &ReservationId,
    ) -> StoreResult<Option<Reservation>> {
        self.read(|world| world.reservation(node, id).cloned())
            .await
    }

    async fn load_reservations(
        &self,
        node: &NodeId,
        ids: &BTreeSet<ReservationId>,
    ) -> StoreResult<Vec<Reservation>> {
        self.read(|world| {
            let found = ids.iter().filter_map(|id| world.reservation(node, id));
            found.cloned().collect()
        })
        .await
    }
}

impl ListReservations for MemoryStore {
    async fn list_reservations(
        &self,
        node: &NodeId,
        after: Option<&ReservationId>,
        limit: usize,
    ) -> StoreResult<Page<Reservation, ReservationId>> {
        self.read(|world| {
            let here = world
                .reservations
                .values()
                .filter(|r| r.node == *node && after.is_none_or(|after| r.id > *after));
            page(here.cloned(), limit, |reservation| reservation.id.clone())
        })
        .await
    }
}

/// Applies `rule` to one reservation, unless the write has landed before.
fn apply(
    world: &mut Held,
    (node, id): (&NodeId, &ReservationId),
    write: &WriteId,
    rule: impl FnOnce(&Reservation) -> Result<Reservation, Refusal>,
) -> StoreResult<Write<Landed, Reservation>> {
    let Some(present) = world.reservation(node, id) else {
        return Ok(Write::Absent);
    };
    if let Some(version) = present.recent.landed(write) {
        let image = present.clone();
        return Ok(Write::Done(Landed { image, version }));
    }
    let Ok(next) = rule(present) else {
        return Ok(Write::Refused(present.clone()));
    };
    sound_reservation(&next)?;
    world.put_reservation(next.clone());
    let version = next.version;
    Ok(Write::Done(Landed {
        image: next,
        version,
    }))
}

impl ReleaseUnits for MemoryStore {
    async fn release(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Release,
    ) -> StoreResult<Write<Landed, Reservation>> {
        let write = &command.stamp.write;
        self.change(|world| apply(world, (node, id), write, |r| release(r, command)))
            .await
    }
}

impl ReclaimUnits for MemoryStore {
    async fn reclaim(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Reclaim,
    ) -> StoreResult<Write<Landed, Reservation>> {
        let write = &command.stamp.write;
        self.change(|world| apply(world, (node, id), write, |r| reclaim(r, command)))
            .await
    }
}

impl Held {
    /// Moves slots between a node and a reservation.
    pub(super) fn move_custody(&mut self, change: &CustodyMove) -> StoreResult<Commit> {
        sound_node(&change.node)?;
        sound_reservation(&change.reservation)?;
        let reservation = &change.reservation;
        let Some(node) = self.nodes.get(&change.node.id) else {
            return Ok(Commit::Lost);
        };
        let present = self.reservation(&reservation.node, &reservation.id);
        let landed = node.recent.landed(&change.write).is_some()
            || present.is_some_and(|r| r.recent.landed(&change.write).is_some());
        if landed {
            return Ok(Commit::Done);
        }
        let unchanged = node.version == change.node_seen
            && present.map(|r| r.version) == change.reservation_seen;
        if !unchanged {
            return Ok(Commit::Lost);
        }
        self.put_node(change.node.clone());
        self.put_reservation(reservation.clone());
        Ok(Commit::Done)
    }
}

impl MoveCustody for MemoryStore {
    async fn move_custody(&self, change: &CustodyMove) -> StoreResult<Commit> {
        self.change(|world| world.move_custody(change)).await
    }
}

impl ChangeTopology for MemoryStore {
    async fn change_topology(&self, change: &TopologyChange) -> StoreResult<Commit> {
        sound_node(&change.node)?;
        for reservation in &change.reviewed {
            sound_reservation(reservation)?;
        }
        self.change(|world| {
            let Some(node) = world.nodes.get(&change.node.id) else {
                return Ok(Commit::Lost);
            };
            if node.recent.landed(&change.write).is_some() {
                return Ok(Commit::Done);
            }
            let unchanged = change.reviewed.iter().all(|next| {
                let present = world.reservation(&next.node, &next.id);
                present.map(|r| r.version) == next.version.previous()
            });
            if node.version != change.node_seen || !unchanged {
                return Ok(Commit::Lost);
            }
            world.put_node(change.node.clone());
            for reservation in &change.reviewed {
                world.put_reservation(reservation.clone());
            }
            Ok(Commit::Done)
        })
        .await
    }
}
