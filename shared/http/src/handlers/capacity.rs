//! Release, reclaim and end.

use app::Error;
use app::capacity::UnitsRequest;
use app::end::ChangeRequest;
use app::ports::{Clock, Ids, Once, ReclaimUnits, ReleaseUnits};
use app::reclaim::Reclaimed;
use app::terms::TermStore;
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::{Shared, keep, reservation_answer};
use crate::request::{Call, bad, unit_ids, words};
use crate::view::ReservationView;

/// Which units to release.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "ReleaseUnitsRequest"))]
pub(crate) struct ReleaseBody {
    /// Units of the reservation.
    unit_ids: Vec<String>,
    /// Why; kept in the audit trail.
    reason: Option<String>,
}

/// Which units to reclaim.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "ReclaimUnitsRequest"))]
pub(crate) struct ReclaimBody {
    /// Units of the reservation.
    unit_ids: Vec<String>,
    /// Why; kept in the audit trail.
    reason: Option<String>,
    /// Say what would be done, and do nothing.
    dry_run: Option<bool>,
}

/// Why a reservation is changed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "ReasonRequest"))]
pub(crate) struct ReasonBody {
    /// Why; kept in the audit trail.
    reason: Option<String>,
}

fn units_request(
    call: &Call,
    ids: &[String],
    reason: Option<String>,
) -> Result<UnitsRequest, Error> {
    let units = unit_ids(ids)?;
    let reason = words("reason", reason)?;
    Ok(UnitsRequest {
        node: call.id("nodeId")?,
        id: call.id("id")?,
        units,
        expected: call.if_match,
        reason,
    })
}

/// A call upon a reservation as a whole.
pub(super) fn change_request(call: &Call) -> Result<ChangeRequest, Error> {
    let body: ReasonBody = call.json()?;
    Ok(ChangeRequest {
        reason: words("reason", body.reason)?,
        node: call.id("nodeId")?,
        id: call.id("id")?,
        expected: call.if_match,
    })
}

pub(super) async fn release<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: ReleaseUnits + TermStore + Once,
    C: Clock,
    I: Ids,
{
    let body: ReleaseBody = call.json()?;
    let request = units_request(&call, &body.unit_ids, body.reason)?;
    let (store, clock, ids) = (&service.store, &service.clock, &service.ids);
    let answer = reservation_answer(clock.now());
    let done = match keep(&call, &answer) {
        None => app::release::release(store, clock, ids, &call.context, request).await?,
        Some(keep) => {
            app::release::release_once(store, clock, ids, &call.context, request, &keep).await?
        }
    };
    Reply::of(&answer(&done)?)
}

pub(super) async fn reclaim<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: ReclaimUnits + TermStore + Once,
    C: Clock,
    I: Ids,
{
    let body: ReclaimBody = call.json()?;
    let dry_run = match (body.dry_run, call.flag("dryRun")?) {
        (Some(body), Some(query)) if body != query => {
            let text = "dryRun differs between the query and the body; send it in one place";
            return Err(bad(text));
        }
        (body, query) => body.or(query).unwrap_or(false),
    };
    let request = units_request(&call, &body.unit_ids, body.reason)?;
    let (store, clock, ids) = (&service.store, &service.clock, &service.ids);
    let (context, now) = (&call.context, clock.now());
    let answer = |done: &Reclaimed| {
        let view = ReservationView::of(&done.reservation, now.max(done.reservation.updated_at));
        let view = if dry_run {
            view.would_reclaim(&done.victims)
        } else {
            view.reclaimed(&done.victims)
        };
        Ok(Reply::new(view)?
            .versioned(done.reservation.version)
            .answer())
    };
    let done = match keep(&call, &answer) {
        // What changes nothing may be asked as often as one likes.
        _ if dry_run => app::reclaim::dry_run(store, clock, ids, context, request).await?,
        None => app::reclaim::reclaim(store, clock, ids, context, request).await?,
        Some(keep) => {
            app::reclaim::reclaim_once(store, clock, ids, context, request, &keep).await?
        }
    };
    Reply::of(&answer(&done)?)
}

pub(super) async fn end<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: TermStore + Once,
    C: Clock,
    I: Ids,
{
    let request = change_request(&call)?;
    let (store, clock) = (&service.store, &service.clock);
    let answer = reservation_answer(clock.now());
    let keep = keep(&call, &answer);
    let done = app::end::end(store, clock, &call.context, &request, keep.as_ref()).await?;
    Reply::of(&answer(&done)?)
}
