//! One file for each function: reads the call, asks the use case, shows the result.

pub(crate) mod capacity;
pub(crate) mod keys;
pub(crate) mod nodes;
mod open;
pub(crate) mod reservations;
pub(crate) mod vms;

use std::sync::Arc;

use app::Error;
use app::availability::MarketStore;
use app::error::Internal;
use app::idempotency::{Answer, Keep};
use app::ports::{
    ChangeTopology, Clock, Ids, ListKeys, ListNodes, ListOrgReservations, ListReservations,
    ListVms, LoadKey, LoadVms, Once, Page, PutKey, PutNode, Random, ReadAudit, ReclaimUnits,
    ReleaseUnits, RevokeKey, SettleVm,
};
use app::terms::TermStore;
use app::vms::PlaceStore;
use domain::{Reservation, Timestamp};

use crate::endpoint::{HttpFunction, Reply, Service};
use crate::request::Call;
use crate::routes::FunctionName;
use crate::view::{PageView, ReservationView};

pub(crate) use open::open;

type Shared<S, C, I> = Arc<Service<S, C, I>>;

/// A call that came to a function without a handler for it: the table and the handlers disagree.
fn misrouted(call: &Call) -> Error {
    Error::Bug(Internal(format!(
        "{:?} has no handler in its function",
        call.route.operation
    )))
}

/// How the outcome of a call is kept, if the call may come again.
fn keep<'a, T>(
    call: &Call,
    answer: &'a (dyn Fn(&T) -> Result<Answer, Error> + Send + Sync),
) -> Option<Keep<'a, T>> {
    let call = call.repeatable.clone()?;
    Some(Keep { call, answer })
}

/// What a caller is told of a reservation, as it counts at `now`, or at its last change if that is
/// later: a call reads the clock before it writes.
fn reservation_answer(
    now: Timestamp,
) -> impl Fn(&Reservation) -> Result<Answer, Error> + Send + Sync {
    move |reservation| {
        let view = ReservationView::of(reservation, now.max(reservation.updated_at));
        Ok(Reply::new(view)?.versioned(reservation.version).answer())
    }
}

/// A page as callers see it.
fn page<T, K: std::fmt::Display, V>(
    service_cursors: &crate::cursor::CursorKey,
    call: &Call,
    page: &Page<T, K>,
    view: impl Fn(&T) -> V,
) -> PageView<V> {
    let list = call.list_name();
    PageView {
        items: page.items.iter().map(view).collect(),
        next_cursor: page
            .next
            .as_ref()
            .map(|key| service_cursors.encode(&list, &key.to_string())),
    }
}

/// The `release` function.
pub fn release<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + ReleaseUnits + TermStore + Once + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Release, service, capacity::release)
}

/// The `reclaim` function.
pub fn reclaim<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + ReclaimUnits + TermStore + Once + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Reclaim, service, capacity::reclaim)
}

/// The `end` function.
pub fn end<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + Once + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::End, service, capacity::end)
}

/// The `reservations` function.
pub fn reservations<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + Once + ListReservations + ListOrgReservations + ReadAudit + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Reservations, service, reservations::handle)
}

/// The `vms` function.
pub fn vms<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + PlaceStore + MarketStore + LoadVms + ListVms + SettleVm + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Vms, service, vms::handle)
}

/// The `nodes` function.
pub fn nodes<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey
        + Once
        + TermStore
        + PutNode
        + ChangeTopology
        + ListNodes
        + LoadVms
        + SettleVm
        + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Nodes, service, nodes::handle)
}

/// The `keys` function.
pub fn keys<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + Once + PutKey + ListKeys + RevokeKey + 'static,
    C: Clock,
    I: Ids + Random,
{
    HttpFunction::new(FunctionName::Keys, service, keys::handle)
}
