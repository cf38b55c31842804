//! Reservations: read, released, reclaimed, and slots that change hands.

use std::collections::BTreeSet;

use app::ports::{
    ChangeTopology, Commit, CustodyMove, Landed, ListReservations, LoadReservations, MoveCustody,
    Page, ReclaimUnits, ReleaseUnits, StoreResult, TopologyChange, Write,
};
use domain::reservation::{Reclaim, Release};
use domain::stamp::ActionKind;
use domain::{NodeId, Reservation, ReservationId, Status, Tier, Version, WriteId};

use super::DynamoStore;
use super::node::always;
use super::read::page;
use super::rules;
use super::write::{Part, Transacted, Written};
use crate::expr::{Expression, Finished, absent, all, any, contains, eq, ne};
use crate::item::reservation::{KIND, MARKET_KEY, OWNER, RELEASED, decode, encode};
use crate::item::slots::{OCCUPANT, SLOTS, TIER, tier_letter};
use crate::item::{Item, link, node};
use crate::keys::{Key, MARKET_PK, PK, node_pk, reservations_after};
use crate::retry::stand_aside;

impl LoadReservations for DynamoStore {
    async fn load_reservation(
        &self,
        node: &NodeId,
        id: &ReservationId,
    ) -> StoreResult<Option<Reservation>> {
        let item = self.get(&Key::reservation(node, id)).await?;
        item.as_ref().map(decode).transpose()
    }

    async fn load_reservations(
        &self,
        node: &NodeId,
        ids: &BTreeSet<ReservationId>,
    ) -> StoreResult<Vec<Reservation>> {
        let keys = ids.iter().map(|id| Key::reservation(node, id)).collect();
        let found = self.get_all(keys, true).await?;
        found.values().map(decode).collect()
    }
}

impl ListReservations for DynamoStore {
    async fn list_reservations(
        &self,
        node: &NodeId,
        after: Option<&ReservationId>,
        limit: usize,
    ) -> StoreResult<Page<Reservation, ReservationId>> {
        let found = self.within(node_pk(node), reservations_after(after), limit);
        let found: StoreResult<Vec<Reservation>> = found.await?.iter().map(decode).collect();
        Ok(page(found?, limit, |reservation| reservation.id.clone()))
    }
}

impl ReleaseUnits for DynamoStore {
    async fn release(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Release,
    ) -> StoreResult<Write<Landed, Reservation>> {
        let key = Key::reservation(node, id);
        self.apply(&key, &command.stamp.write, &release(id, command)?)
            .await
    }
}

impl ReclaimUnits for DynamoStore {
    async fn reclaim(
        &self,
        node: &NodeId,
        id: &ReservationId,
        command: &Reclaim,
    ) -> StoreResult<Write<Landed, Reservation>> {
        let key = Key::reservation(node, id);
        self.apply(&key, &command.stamp.write, &reclaim(id, command)?)
            .await
    }
}

impl DynamoStore {
    /// One conditional write of a reservation, which knows itself if it landed before.
    async fn apply(
        &self,
        key: &Key,
        write: &WriteId,
        expression: &Finished,
    ) -> StoreResult<Write<Landed, Reservation>> {
        match self.update(key, expression).await? {
            Written::Done(item) => {
                let image = decode(&item)?;
                let version = image.version;
                Ok(Write::Done(Landed { image, version }))
            }
            Written::Refused(None) => Ok(Write::Absent),
            Written::Refused(Some(item)) => {
                let image = decode(&item)?;
                Ok(match image.recent.landed(write) {
                    Some(version) => Write::Done(Landed { image, version }),
                    None => Write::Refused(image),
                })
            }
        }
    }
}

/// [`domain::reservation::release`] as one expression.
pub(super) fn release(id: &ReservationId, command: &Release) -> StoreResult<Finished> {
    let mut e = Expression::default();
    common(&mut e, &command.stamp, command.expected);
    for clause in rules::in_term(&mut e, command.stamp.now) {
        e.require(clause);
    }
    let active = rules::has_status(&mut e, Status::Active);
    e.require(active);
    let released = e.path(&[RELEASED]);
    let spot = e.text(tier_letter(Tier::Spot));
    for (unit, alias) in rules::own_units(&mut e, command.units.iter()) {
        let occupant = rules::occupant_path(&mut e, unit);
        let tier = e.path(&[SLOTS, unit.as_str(), OCCUPANT, TIER]);
        let calm = [
            absent(&occupant),
            contains(&released, &alias),
            ne(&tier, &spot),
        ];
        e.require(any(calm.into()));
    }
    let units = command.units.as_set();
    rules::stamped(&mut e, &command.stamp);
    rules::acted(
        &mut e,
        &command.stamp.action(ActionKind::Release, units, None),
    );
    rules::looked_after(&mut e, id, command.stamp.now);
    let (market, market_key) = (e.path(&[MARKET_PK]), e.path(&[MARKET_KEY]));
    e.set(&market, &market_key);
    let units = rules::unit_set(&mut e, units);
    e.add(&released, &units);
    e.finish()
}

/// [`domain::reservation::reclaim`] as one expression.
pub(super) fn reclaim(id: &ReservationId, command: &Reclaim) -> StoreResult<Finished> {
    let mut e = Expression::default();
    common(&mut e, &command.stamp, command.expected);
    for clause in rules::in_term(&mut e, command.stamp.now) {
        e.require(clause);
    }
    let mut statuses = vec![rules::has_status(&mut e, Status::Active)];
    if let Some(caller) = command.stamp.caller() {
        let mut review = vec![rules::has_status(&mut e, Status::NeedsReview)];
        if !caller.operator {
            // The owner may, a manager may not.
            let (owner, org) = (e.path(&[OWNER]), e.text(caller.org.as_str()));
            review.push(eq(&owner, &org));
        }
        statuses.push(all(review));
    }
    e.require(any(statuses));
    rules::own_units(&mut e, command.units.iter());
    let units = command.units.as_set();
    rules::stamped(&mut e, &command.stamp);
    rules::acted(
        &mut e,
        &command.stamp.action(ActionKind::Reclaim, units, None),
    );
    rules::due(&mut e, id.as_str(), command.stamp.now);
    let released = e.path(&[RELEASED]);
    let units = rules::unit_set(&mut e, units);
    e.delete(&released, &units);
    e.finish()
}

/// What both verbs ask: a reservation, not written by this very write, that the caller may manage,
/// of the version that it expects.
fn common(e: &mut Expression, stamp: &domain::Stamp, expected: Option<Version>) {
    let kind = rules::kind(e, KIND);
    e.require(kind);
    let not_own = rules::not_own(e, &stamp.write);
    e.require(not_own);
    if let Some(clause) = rules::may_manage(e, stamp) {
        e.require(clause);
    }
    if let Some(version) = expected {
        let clause = rules::at_version(e, version);
        e.require(clause);
    }
}

impl ChangeTopology for DynamoStore {
    async fn change_topology(&self, change: &TopologyChange) -> StoreResult<Commit> {
        let pool = seen(node::KIND, Some(change.node_seen), &change.write)?;
        let mut parts = vec![Part::Put(node::encode(&change.node)?, pool)];
        for reservation in &change.reviewed {
            let condition = seen(KIND, reservation.version.previous(), &change.write)?;
            parts.push(Part::Put(encode(reservation)?, condition));
        }
        match self.transact(&change.write, parts).await? {
            Transacted::Done => Ok(Commit::Done),
            Transacted::Refused(items) => {
                let mut items = items.iter().map(Option::as_ref);
                let node = items.next().flatten();
                let mut landed = landed(node, None, &change.write)?;
                for reservation in items.flatten() {
                    let there = decode(reservation)?;
                    if there.recent.landed(&change.write).is_some() {
                        landed = Commit::Done;
                    }
                }
                if landed == Commit::Lost {
                    stand_aside().await;
                }
                Ok(landed)
            }
        }
    }
}

impl MoveCustody for DynamoStore {
    async fn move_custody(&self, change: &CustodyMove) -> StoreResult<Commit> {
        match self.transact(&change.write, move_parts(change)?).await? {
            Transacted::Done => Ok(Commit::Done),
            Transacted::Refused(items) => {
                let [node, reservation] =
                    [0, 1].map(|place| items.get(place).and_then(Option::as_ref));
                let landed = landed(node, reservation, &change.write)?;
                if landed == Commit::Lost {
                    stand_aside().await;
                }
                Ok(landed)
            }
        }
    }
}

/// The parts of a move: the node, then the reservation.
pub(super) fn move_parts(change: &CustodyMove) -> StoreResult<Vec<Part>> {
    let pool = seen(node::KIND, Some(change.node_seen), &change.write)?;
    let reserved = seen(KIND, change.reservation_seen, &change.write)?;
    let mut parts = vec![
        Part::Put(node::encode(&change.node)?, pool),
        Part::Put(encode(&change.reservation)?, reserved),
    ];
    if change.reservation_seen.is_none() {
        for item in link::of_parties(&change.reservation) {
            parts.push(Part::Put(item, always()?));
        }
    }
    Ok(parts)
}

/// The item is as it was read: of this version, or not there.
pub(super) fn seen(kind: &str, version: Option<Version>, write: &WriteId) -> StoreResult<Finished> {
    let mut e = Expression::default();
    match version {
        None => {
            let pk = e.path(&[PK]);
            e.require(absent(&pk));
        }
        Some(version) => {
            let clauses = [
                rules::kind(&mut e, kind),
                rules::at_version(&mut e, version),
                rules::not_own(&mut e, write),
            ];
            clauses.into_iter().for_each(|clause| e.require(clause));
        }
    }
    e.finish()
}

/// Whether this write has landed before, by the items as they stand.
pub(super) fn landed(
    node: Option<&Item>,
    reservation: Option<&Item>,
    write: &WriteId,
) -> StoreResult<Commit> {
    let on_node = node.map(node::decode).transpose()?;
    let on_reservation = reservation.map(decode).transpose()?;
    let landed = on_node.is_some_and(|n| n.recent.landed(write).is_some())
        || on_reservation.is_some_and(|r| r.recent.landed(write).is_some());
    Ok(if landed { Commit::Done } else { Commit::Lost })
}
