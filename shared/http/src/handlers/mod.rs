//! One file for each function: reads the call, asks the use case, shows the result.

mod capacity;
mod nodes;
mod reservations;
mod vms;

use std::sync::Arc;

use app::Error;
use app::error::Internal;
use app::ports::{
    ChangeTopology, Clock, FindMarket, Ids, ListReservations, ListVms, LoadKey, LoadVms, Page,
    PlaceVm, PutNode, ReadAudit, ReclaimUnits, ReleaseUnits, SettleVm,
};
use app::terms::TermStore;

use crate::endpoint::{HttpFunction, Service};
use crate::request::Call;
use crate::routes::FunctionName;
use crate::view::PageView;

type Shared<S, C, I> = Arc<Service<S, C, I>>;

/// A call that came to a function without a handler for it: the table and the handlers disagree.
fn misrouted(call: &Call) -> Error {
    Error::Bug(Internal(format!(
        "{:?} has no handler in its function",
        call.route.operation
    )))
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
    S: LoadKey + ReleaseUnits + TermStore + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Release, service, capacity::release)
}

/// The `reclaim` function.
pub fn reclaim<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + ReclaimUnits + TermStore + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Reclaim, service, capacity::reclaim)
}

/// The `end` function.
pub fn end<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::End, service, capacity::end)
}

/// The `reservations` function.
pub fn reservations<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + ListReservations + ReadAudit + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Reservations, service, reservations::handle)
}

/// The `vms` function.
pub fn vms<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + LoadVms + ListVms + FindMarket + PlaceVm + SettleVm + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Vms, service, vms::handle)
}

/// The `nodes` function.
pub fn nodes<S, C, I>(service: Shared<S, C, I>) -> HttpFunction
where
    S: LoadKey + TermStore + PutNode + ChangeTopology + LoadVms + SettleVm + 'static,
    C: Clock,
    I: Ids,
{
    HttpFunction::new(FunctionName::Nodes, service, nodes::handle)
}
