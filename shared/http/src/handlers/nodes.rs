//! Nodes and their agents.

use std::collections::BTreeMap;

use app::Error;
use app::nodes::NodeRequest;
use app::ports::{Clock, Ids, LoadNode, LoadReservations, LoadVms, PutNode, SettleVm};
use domain::limits::{GPUS_PER_UNIT_MAX, UNITS_PER_NODE_MAX};
use domain::{UnitId, VmId};
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::{Shared, misrouted};
use crate::request::{Call, Object, id, units};
use crate::routes::Operation;
use crate::view::{NodeView, PageView, TerminationView, VmView};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PutBody {
    owner_org_id: String,
    gpu_model_id: String,
    units: Vec<Object<UnitBody>>,
    topology_gen: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitBody {
    id: String,
    gpus: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

pub(super) async fn handle<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: LoadNode + PutNode + LoadReservations + LoadVms + SettleVm,
    C: Clock,
    I: Ids,
{
    let (store, clock) = (&service.store, &service.clock);
    let context = &call.context;
    match call.route.operation {
        Operation::PutNode => {
            if !context.caller().operator {
                return Err(Error::not_found());
            }
            let request = node_request(&call)?;
            let made = app::nodes::put(store, clock, context, request).await?;
            Reply::new(NodeView::of(&made))
        }
        Operation::GetNode => {
            let node = call.id("nodeId")?;
            Reply::new(NodeView::of(&app::nodes::get(store, context, &node).await?))
        }
        Operation::ListTerminations => {
            let node = call.id("nodeId")?;
            let found = app::nodes::terminations(store, clock, context, &node).await?;
            let items = found.iter().map(TerminationView::of).collect();
            Reply::new(PageView::<TerminationView> {
                items,
                next_cursor: None,
            })
        }
        Operation::ConfirmTermination => {
            let _: NoFields = call.json()?;
            let node = call.id("nodeId")?;
            let vm: VmId = call.id("vmId")?;
            let gone = app::settle::confirm(store, clock, context, &node, &vm).await?;
            Reply::new(VmView::of(&gone))
        }
        _ => Err(misrouted(&call)),
    }
}

fn node_request(call: &Call) -> Result<NodeRequest, Error> {
    let bad = |text: String| Error::BadRequest(text);
    let body: PutBody = call.json()?;
    let names: Vec<String> = body.units.iter().map(|unit| unit.0.id.clone()).collect();
    units("units", &names, UNITS_PER_NODE_MAX)?;
    let mut sizes: BTreeMap<UnitId, u16> = BTreeMap::new();
    for Object(unit) in &body.units {
        let gpus = unit.gpus.unwrap_or(1);
        if !(1..=GPUS_PER_UNIT_MAX).contains(&gpus) {
            return Err(bad(format!(
                "gpus of a unit is a number from 1 to {GPUS_PER_UNIT_MAX}"
            )));
        }
        sizes.insert(id("units", &unit.id)?, gpus);
    }
    let topology_gen = body.topology_gen.unwrap_or(1);
    if topology_gen == 0 {
        return Err(bad("topologyGen is counted from 1".to_owned()));
    }
    Ok(NodeRequest {
        owner: id("ownerOrgId", &body.owner_org_id)?,
        gpu_model: id("gpuModelId", &body.gpu_model_id)?,
        units: sizes,
        topology_gen,
        id: call.id("nodeId")?,
    })
}
