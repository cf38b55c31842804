//! The rest of a reservation's life: made, read, listed, its audit trail.

use std::collections::BTreeSet;

use domain::audit::Record;
use domain::limits::PAGE_ITEMS_MAX;
use domain::reservation::{Boundary, Reaffirm, Reservation, Reserve, Status, reserve};
use domain::{NodeId, OrgId, ReservationId, Timestamp, UnitSet};

use crate::capacity::{begin, explain};
use crate::context::Context;
use crate::end::{ChangeRequest, moved};
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::ports::{
    Clock, CustodyMove, Ids, ListReservations, LoadReservations, Once, Page, ReadAudit, StoreResult,
};
use crate::race::{RACES_MAX, lost, node_of};
use crate::terms::{TermStore, pass_all, torn};

/// What a caller asks of a new reservation.
#[derive(Debug, Clone)]
pub struct ReserveRequest {
    /// The node.
    pub node: NodeId,
    /// Its units.
    pub units: UnitSet,
    /// Orgs that may place workloads on them.
    pub audience: BTreeSet<OrgId>,
    /// Orgs that may release and reclaim them.
    pub managers: BTreeSet<OrgId>,
    /// When the term starts; `None` is now.
    pub starts: Option<Timestamp>,
    /// When it ends; `None` is open-ended.
    pub ends: Option<Timestamp>,
    /// A reference to a contract.
    pub contract_ref: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Makes a reservation: in force at once where its term has begun, else booked.
///
/// # Errors
/// The refusals of [`reserve`]; the store's failures; [`Error::Contended`] if other writers win
/// every race.
pub async fn create(
    store: &(impl TermStore + Once),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: ReserveRequest,
    keep: Option<&Keep<'_, Reservation>>,
) -> Result<Reservation, Error> {
    let id = ReservationId::parse(&ids.uuid())
        .map_err(|_| Error::Bug(Internal("a fresh id is not an id".to_owned())))?;
    for _ in 0..RACES_MAX {
        let node = store
            .load_node(&request.node)
            .await?
            .ok_or_else(Error::not_found)?;
        // Nobody else learns from the writes whether there is such a node.
        if node.may_manage(context.caller()) && pass_all(store, clock, ids, &node).await? {
            continue;
        }
        let command = Reserve {
            id: id.clone(),
            units: request.units.clone(),
            audience: request.audience.clone(),
            managers: request.managers.clone(),
            starts: request.starts,
            ends: request.ends,
            contract_ref: request.contract_ref.clone(),
            stamp: context.stamp(clock.now(), request.reason.clone())?,
        };
        let (reservation, after) = reserve(&node, &command)?;
        let change = CustodyMove {
            node_seen: node.version,
            node: after,
            reservation_seen: None,
            reservation,
            write: command.stamp.write,
        };
        if moved(store, &change, keep).await? {
            return Ok(change.reservation);
        }
    }
    Err(lost(format_args!("reserving on {}", request.node)))
}

/// Puts a reservation back in force after a review and returns it as it is then.
///
/// # Errors
/// The refusals of [`domain::reservation::reaffirm`]; the store's failures; [`Error::Contended`] if
/// other writers win every race.
pub async fn reaffirm(
    store: &(impl TermStore + Once),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: &ChangeRequest,
    keep: Option<&Keep<'_, Reservation>>,
) -> Result<Reservation, Error> {
    let ChangeRequest { node, id, .. } = request;
    let mut expected = request.expected;
    // To anyone else there is no such reservation, and what an answer costs must not say otherwise.
    if !context.caller().operator {
        return Err(Error::not_found());
    }
    for _ in 0..RACES_MAX {
        let image = store
            .load_reservation(node, id)
            .await?
            .ok_or_else(Error::not_found)?;
        let stamp = context.stamp(clock.now(), request.reason.clone())?;
        if image.recent.landed(&stamp.write).is_some() {
            return Ok(image);
        }
        // A term that has begun is written as begun first: its units come into its hands.
        if image.boundary(stamp.now) == Some(Boundary::Start)
            && expected.is_none_or(|expected| expected == image.version)
        {
            begin(store, clock, ids, (node, id), &mut expected).await?;
            continue;
        }
        let pool = node_of(store, node, id).await?;
        if torn(&image, &pool) {
            continue;
        }
        let command = Reaffirm { expected, stamp };
        let after = match domain::reservation::reaffirm(&image, &pool, &command) {
            Ok(after) => after,
            Err(refusal) => return Err(explain(Some(refusal), image)),
        };
        let change = CustodyMove::of((&image, &pool), after, command.stamp.write);
        if moved(store, &change, keep).await? {
            return Ok(change.reservation);
        }
    }
    Err(lost(format_args!("re-affirming {id}")))
}

/// Reads one reservation.
///
/// # Errors
/// Not found if there is none, or the caller may not see it.
pub async fn get(
    store: &impl LoadReservations,
    context: &Context,
    node: &NodeId,
    id: &ReservationId,
) -> Result<Reservation, Error> {
    let found = store.load_reservation(node, id).await?;
    let visible = found.filter(|r| r.relation(context.caller()).may_see());
    visible.ok_or_else(Error::not_found)
}

/// Reads that one page of a list may take to fill itself with what its caller is to see.
const LIST_READS_MAX: usize = 20;

/// A page of what passes `shown`, out of pages that `read` reads after an id. Past
/// [`LIST_READS_MAX`] of them it ends early and gives a cursor.
pub(crate) async fn filled<F, P>(
    read: F,
    shown: impl Fn(&Reservation) -> bool + Send,
    after: Option<&ReservationId>,
    limit: usize,
) -> Result<Page<Reservation, ReservationId>, Error>
where
    F: Fn(Option<ReservationId>) -> P,
    P: Future<Output = StoreResult<Page<Reservation, ReservationId>>>,
{
    let mut items: Vec<Reservation> = Vec::new();
    let mut next = after.cloned();
    for _ in 0..LIST_READS_MAX {
        let page = read(next).await?;
        items.extend(page.items.into_iter().filter(&shown));
        if items.len() > limit {
            items.truncate(limit);
            let next = items.last().map(|r| r.id.clone());
            return Ok(Page { items, next });
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(Page { items, next })
}

/// Lists those reservations of a node that the caller may see, in order of their ids.
///
/// What the caller may not see leaves no trace in the page or in its cursor, so that a node without
/// reservations, one with hidden ones and none at all look the same. Only past
/// 2,000 hidden reservations in a row does a page end early and give a cursor.
///
/// # Errors
/// The store's failures.
pub async fn list(
    store: &impl ListReservations,
    clock: &impl Clock,
    context: &Context,
    node: &NodeId,
    status: Option<Status>,
    after: Option<&ReservationId>,
    limit: usize,
) -> Result<Page<Reservation, ReservationId>, Error> {
    let now = clock.now();
    let read = |after: Option<ReservationId>| async move {
        let page = store.list_reservations(node, after.as_ref(), PAGE_ITEMS_MAX);
        page.await
    };
    let shown = |r: &Reservation| {
        r.relation(context.caller()).may_see()
            && status.is_none_or(|asked| asked == r.shown_at(now))
    };
    filled(read, shown, after, limit).await
}

/// Reads a page of the audit trail, oldest record first.
///
/// # Errors
/// Not found unless the caller is an operator, the node's owner or a managing org.
pub async fn audit(
    store: &(impl LoadReservations + ReadAudit),
    context: &Context,
    node: &NodeId,
    id: &ReservationId,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<Record, String>, Error> {
    let found = store.load_reservation(node, id).await?;
    if !found.is_some_and(|r| r.relation(context.caller()).may_manage()) {
        return Err(Error::not_found());
    }
    Ok(store.list_records(id, after, limit).await?)
}
