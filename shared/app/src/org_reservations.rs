//! The reservations that an org has a part in, over all nodes.

use domain::limits::PAGE_ITEMS_MAX;
use domain::{OrgId, Reservation, ReservationId, Status};

use crate::context::Context;
use crate::error::Error;
use crate::ports::{Clock, ListOrgReservations, Page, Part};
use crate::reservations::filled;

/// What a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The org.
    pub org: OrgId,
    /// The part that it has; `None` for any.
    pub role: Option<Part>,
    /// The status that they show; `None` for any.
    pub status: Option<Status>,
}

/// Lists them in order of their ids. Only past 2,000 in a row that the filter holds back does a
/// page end early and give a cursor.
///
/// # Errors
/// [`Error::Forbidden`] for another org's; the store's failures.
pub async fn list(
    store: &impl ListOrgReservations,
    clock: &impl Clock,
    context: &Context,
    asked: &Asked,
    after: Option<&ReservationId>,
    limit: usize,
) -> Result<Page<Reservation, ReservationId>, Error> {
    let Asked { org, role, status } = asked;
    context.principal.of_org(org)?;
    let parts = &role.map_or(Part::ALL.to_vec(), |role| vec![role]);
    let Some(status) = status else {
        let found = store.list_org_reservations(org, parts, after, limit);
        return Ok(found.await?);
    };
    let now = clock.now();
    let read = |after: Option<ReservationId>| async move {
        let page = store.list_org_reservations(org, parts, after.as_ref(), PAGE_ITEMS_MAX);
        page.await
    };
    filled(read, |r| r.shown_at(now) == *status, after, limit).await
}
