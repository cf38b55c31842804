//! The rest of a reservation's life.

use app::Error;
use app::org_reservations::{self, Asked};
use app::ports::{
    Clock, Ids, ListOrgReservations, ListReservations, LoadReservations, Once, Part, ReadAudit,
};
use app::reservations::ReserveRequest;
use app::terms::TermStore;
use domain::limits::UNITS_PER_RESERVATION_MAX;
use domain::{ReservationId, Status};
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::capacity::change_request;
use crate::handlers::{Shared, keep, misrouted, page, reservation_answer};
use crate::request::{Call, bad, orgs, time, units, words};
use crate::routes::Operation;
use crate::view::{RecordView, ReservationView};

/// The reservation to make.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "CreateReservationRequest"))]
pub(crate) struct CreateBody {
    /// Units of the node.
    reserved_unit_ids: Vec<String>,
    /// The audience: orgs that may place workloads on the units.
    allowed_org_ids: Vec<String>,
    /// Orgs that may release and reclaim the units.
    managing_org_ids: Option<Vec<String>>,
    /// From when on it counts; now, if it is left out.
    starts_at: Option<String>,
    /// From when on it does not count any more; open-ended, if it is left out.
    ends_at: Option<String>,
    /// What you call the contract behind it.
    contract_ref: Option<String>,
    /// Why; kept in the audit trail.
    reason: Option<String>,
}

pub(super) async fn handle<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: TermStore + Once + ListReservations + ListOrgReservations + ReadAudit,
    C: Clock,
    I: Ids,
{
    match call.route.operation {
        Operation::CreateReservation => create(service, call).await,
        Operation::ListReservations => list(service, call).await,
        Operation::ListOrgReservations => list_of_org(service, call).await,
        Operation::GetReservation => get(service, call).await,
        Operation::ReaffirmReservation => reaffirm(service, call).await,
        Operation::ListAuditRecords => audit(service, call).await,
        _ => Err(misrouted(&call)),
    }
}

async fn create<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: TermStore + Once,
    C: Clock,
    I: Ids,
{
    let body: CreateBody = call.json()?;
    let audience = orgs("allowedOrgIds", &body.allowed_org_ids)?;
    if audience.is_empty() {
        return Err(bad("allowedOrgIds names no org; name at least one"));
    }
    let max = UNITS_PER_RESERVATION_MAX;
    let request = ReserveRequest {
        units: units("reservedUnitIds", &body.reserved_unit_ids, max)?,
        audience,
        managers: orgs("managingOrgIds", &body.managing_org_ids.unwrap_or_default())?,
        starts: time("startsAt", body.starts_at.as_deref())?,
        ends: time("endsAt", body.ends_at.as_deref())?,
        contract_ref: words("contractRef", body.contract_ref)?,
        reason: words("reason", body.reason)?,
        node: call.id("nodeId")?,
    };
    let (store, clock, ids) = (&service.store, &service.clock, &service.ids);
    let (context, answer) = (&call.context, reservation_answer(clock.now()));
    let keep = keep(&call, &answer);
    let made =
        app::reservations::create(store, clock, ids, context, request, keep.as_ref()).await?;
    Reply::of(&answer(&made)?)
}

async fn reaffirm<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: TermStore + Once,
    C: Clock,
    I: Ids,
{
    let request = change_request(&call)?;
    let (store, clock, ids) = (&service.store, &service.clock, &service.ids);
    let (context, answer) = (&call.context, reservation_answer(clock.now()));
    let keep = keep(&call, &answer);
    let done =
        app::reservations::reaffirm(store, clock, ids, context, &request, keep.as_ref()).await?;
    Reply::of(&answer(&done)?)
}

async fn get<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: LoadReservations,
    C: Clock,
    I: Ids,
{
    let (node, id) = (call.id("nodeId")?, call.id("id")?);
    let found = app::reservations::get(&service.store, &call.context, &node, &id).await?;
    let view = ReservationView::of(&found, service.clock.now());
    Ok(Reply::new(view)?.versioned(found.version))
}

async fn list<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: ListReservations,
    C: Clock,
    I: Ids,
{
    let limit = call.limit()?;
    let status = status(&call)?;
    let after: Option<ReservationId> = call.cursor(&service.cursors)?;
    let node = call.id("nodeId")?;
    let (store, clock) = (&service.store, &service.clock);
    let found = app::reservations::list(
        store,
        clock,
        &call.context,
        &node,
        status,
        after.as_ref(),
        limit,
    )
    .await?;
    let now = clock.now();
    Reply::new(page(&service.cursors, &call, &found, |r| {
        ReservationView::of(r, now)
    }))
}

/// The status that the list is filtered by.
fn status(call: &Call) -> Result<Option<Status>, Error> {
    let parse = |text: &String| {
        Status::parse(text).ok_or_else(|| {
            let known = Status::ALL.map(Status::as_str).join(", ");
            bad(format!("status is one of {known}"))
        })
    };
    call.query.get("status").map(parse).transpose()
}

async fn list_of_org<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: ListOrgReservations,
    C: Clock,
    I: Ids,
{
    let limit = call.limit()?;
    let role = |text: &String| {
        Part::parse(text).ok_or_else(|| {
            let known = Part::ALL.map(Part::as_str).join(", ");
            bad(format!("role is one of {known}"))
        })
    };
    let asked = Asked {
        org: call.id("orgId")?,
        role: call.query.get("role").map(role).transpose()?,
        status: status(&call)?,
    };
    let after: Option<ReservationId> = call.cursor(&service.cursors)?;
    let (store, clock) = (&service.store, &service.clock);
    let found =
        org_reservations::list(store, clock, &call.context, &asked, after.as_ref(), limit).await?;
    let now = clock.now();
    Reply::new(page(&service.cursors, &call, &found, |r| {
        ReservationView::of(r, now)
    }))
}

async fn audit<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: LoadReservations + ReadAudit,
    C: Clock,
    I: Ids,
{
    let limit = call.limit()?;
    let after: Option<String> = call.cursor(&service.cursors)?;
    let (node, id) = (call.id("nodeId")?, call.id("id")?);
    let store = &service.store;
    let found =
        app::reservations::audit(store, &call.context, &node, &id, after.as_deref(), limit).await?;
    Reply::new(page(&service.cursors, &call, &found, RecordView::of))
}
