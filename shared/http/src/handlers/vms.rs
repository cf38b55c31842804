//! Virtual machines.

use app::Error;
use app::availability::{self, Asked, MarketStore};
use app::ports::{Clock, Ids, ListVms, LoadVms, SettleVm};
use app::vms::{Place, PlaceStore, VmRequest, Wanted};
use domain::limits::{GPUS_PER_UNIT_MAX, UNITS_PER_REQUEST_MAX, VM_NAME_CHARS_MAX};
use domain::{GpuModelId, OrgId, Tier, Vm, VmId};
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::{Shared, keep, misrouted, page};
use crate::number::Whole;
use crate::request::{Call, NoFields, bad, id, unit_ids};
use crate::routes::Operation;
use crate::view::{AvailabilityView, VmView};

/// The VM to place: so many GPUs or these units, on a node, on a reservation of it, or on any
/// node of a model.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "CreateVmRequest"))]
pub(crate) struct CreateBody {
    /// Its name.
    name: String,
    /// What it is bought as.
    tier: String,
    /// How many GPUs it is to have, instead of `unitIds`.
    gpu_count: Option<Whole>,
    /// The units that it is to have, all of one node: instead of `gpuCount`, with `nodeId`.
    unit_ids: Option<Vec<String>>,
    /// The node that it is to run on.
    node_id: Option<String>,
    /// The model of its GPUs; without `nodeId`, on any node that has it.
    gpu_model_id: Option<String>,
    /// The reservation that it is to be placed on, with `nodeId` and without `gpuModelId`.
    reservation_id: Option<String>,
}

pub(super) async fn handle<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: PlaceStore + MarketStore + LoadVms + ListVms + SettleVm,
    C: Clock,
    I: Ids,
{
    let (store, clock) = (&service.store, &service.clock);
    let context = &call.context;
    match call.route.operation {
        Operation::CreateVm => {
            let body: CreateBody = call.json()?;
            let org: OrgId = call.id("orgId")?;
            let request = vm_request(org, &body)?;
            let answer = |vm: &Vm| Ok(Reply::new(VmView::of(vm))?.answer());
            let keep = keep(&call, &answer);
            let ids = &service.ids;
            let made = app::vms::create(store, clock, ids, context, request, keep.as_ref()).await?;
            Reply::of(&answer(&made)?)
        }
        Operation::GetVm => {
            let vm: VmId = call.id("id")?;
            Reply::new(VmView::of(&app::vms::get(store, context, &vm).await?))
        }
        Operation::ListVms => {
            let org: OrgId = call.id("orgId")?;
            let limit = call.limit()?;
            let after: Option<VmId> = call.cursor(&service.cursors)?;
            let found = app::vms::list(store, context, &org, after.as_ref(), limit).await?;
            Reply::new(page(&service.cursors, &call, &found, VmView::of))
        }
        Operation::ListAvailability => {
            let limit = call.limit()?;
            let asked = asked(&call)?;
            let after: Option<GpuModelId> = call.cursor(&service.cursors)?;
            let found =
                availability::list(store, clock, context, &asked, after.as_ref(), limit).await?;
            Reply::new(page(&service.cursors, &call, &found, AvailabilityView::of))
        }
        Operation::TerminateVm => {
            let _: NoFields = call.json()?;
            let vm: VmId = call.id("id")?;
            Reply::new(VmView::of(
                &app::settle::stop(store, clock, context, &vm).await?,
            ))
        }
        _ => Err(misrouted(&call)),
    }
}

fn asked(call: &Call) -> Result<Asked, Error> {
    let named = |text: &String| id("gpuModelId", text);
    Ok(Asked {
        tier: call.query.get("tier").map(|text| tier(text)).transpose()?,
        model: call.query.get("gpuModelId").map(named).transpose()?,
    })
}

fn tier(text: &str) -> Result<Tier, Error> {
    Tier::parse(text).ok_or_else(|| {
        bad(format!(
            "tier is one of {}",
            Tier::ALL.map(Tier::as_str).join(", ")
        ))
    })
}

fn vm_request(org: OrgId, body: &CreateBody) -> Result<VmRequest, Error> {
    let chars = body.name.chars().count();
    if !(1..=VM_NAME_CHARS_MAX).contains(&chars) {
        return Err(bad(format!("name has 1 to {VM_NAME_CHARS_MAX} characters")));
    }
    let tier = tier(&body.tier)?;
    let wanted = wanted(body)?;
    let place = place(body, &wanted)?;
    Ok(VmRequest {
        org,
        name: body.name.clone(),
        tier,
        wanted,
        place,
    })
}

fn wanted(body: &CreateBody) -> Result<Wanted, Error> {
    let max = u32::from(GPUS_PER_UNIT_MAX) * u32::try_from(UNITS_PER_REQUEST_MAX).unwrap_or(1);
    match (&body.unit_ids, body.gpu_count) {
        (Some(ids), None) => Ok(Wanted::Units(unit_ids(ids)?)),
        (None, Some(count)) => {
            let text = || bad(format!("gpuCount is a number from 1 to {max}"));
            count.within(1, max).map(Wanted::Gpus).ok_or_else(text)
        }
        _ => Err(bad("send either gpuCount or unitIds")),
    }
}

fn place(body: &CreateBody, wanted: &Wanted) -> Result<Place, Error> {
    let model = body
        .gpu_model_id
        .as_deref()
        .map(|text| id("gpuModelId", text))
        .transpose()?;
    let node = body
        .node_id
        .as_deref()
        .map(|text| id("nodeId", text))
        .transpose()?;
    let reservation = body
        .reservation_id
        .as_deref()
        .map(|text| id("reservationId", text))
        .transpose()?;
    match (node, reservation, model) {
        (Some(node), Some(reservation), None) => Ok(Place::Reservation(node, reservation)),
        (Some(_), Some(_), Some(_)) => {
            Err(bad("leave out gpuModelId: the reservation has its own"))
        }
        (Some(node), None, model) => Ok(Place::Node(node, model)),
        (None, Some(_), _) => Err(bad("send nodeId with reservationId")),
        (None, None, Some(_)) if matches!(wanted, Wanted::Units(_)) => Err(bad(
            "send nodeId with unitIds: units are named within their node",
        )),
        (None, None, Some(model)) => Ok(Place::Model(model)),
        (None, None, None) => Err(bad("send nodeId or gpuModelId")),
    }
}
