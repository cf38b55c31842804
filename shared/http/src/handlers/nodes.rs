//! Nodes and their agents.

use std::collections::BTreeMap;

use app::Error;
use app::nodes::NodeRequest;
use app::ports::{ChangeTopology, Clock, Ids, ListNodes, LoadVms, PutNode, SettleVm};
use app::terms::TermStore;
use domain::limits::{GPUS_PER_UNIT_MAX, TOPOLOGY_GEN_MAX, UNITS_PER_NODE_MAX};
use domain::{NodeId, UnitId, VmId};
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::{Shared, misrouted, page};
use crate::number::Whole;
use crate::request::{Call, NoFields, Object, bad, id, units};
use crate::routes::Operation;
use crate::view::{NodeSummaryView, NodeView, PageView, TerminationView, VmView};

/// The node to register.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "PutNodeRequest"))]
pub(crate) struct PutBody {
    /// The org that owns it.
    owner_org_id: String,
    /// The model of all its GPUs.
    gpu_model_id: String,
    /// Its units, each once.
    units: Vec<Object<UnitBody>>,
    /// The generation of its topology; 1 if it is left out.
    topology_gen: Option<Whole>,
}

/// What a node is made of now.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "PutTopologyRequest"))]
pub(crate) struct TopologyBody {
    /// Higher than the generation known.
    topology_gen: Whole,
    /// All its units, each once.
    units: Vec<Object<UnitBody>>,
}

/// A unit of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "UnitRequest"))]
pub(crate) struct UnitBody {
    /// Its id, within its node.
    id: String,
    /// How many GPUs are in it; 1 if it is left out.
    gpus: Option<Whole>,
}

pub(super) async fn handle<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: TermStore + PutNode + ChangeTopology + ListNodes + LoadVms + SettleVm,
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
        Operation::PutTopology => {
            let node = call.id("nodeId")?;
            let body: TopologyBody = call.json()?;
            let units = sizes(&body.units)?;
            let topology_gen = generation(body.topology_gen)?;
            let ids = &service.ids;
            let after =
                app::topology::report(store, clock, ids, context, &node, topology_gen, &units)
                    .await?;
            Reply::new(NodeView::of(&after))
        }
        Operation::GetNode => {
            let node = call.id("nodeId")?;
            Reply::new(NodeView::of(&app::nodes::get(store, context, &node).await?))
        }
        Operation::ListNodes => {
            let limit = call.limit()?;
            let after: Option<NodeId> = call.cursor(&service.cursors)?;
            let found = app::nodes::list(store, context, after.as_ref(), limit).await?;
            Reply::new(page(&service.cursors, &call, &found, NodeSummaryView::of))
        }
        Operation::ListTerminations => {
            let node = call.id("nodeId")?;
            let found = app::nodes::terminations(store, context, &node).await?;
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
    let body: PutBody = call.json()?;
    Ok(NodeRequest {
        units: sizes(&body.units)?,
        topology_gen: generation(body.topology_gen.unwrap_or(Whole(1)))?,
        owner: id("ownerOrgId", &body.owner_org_id)?,
        gpu_model: id("gpuModelId", &body.gpu_model_id)?,
        id: call.id("nodeId")?,
    })
}

/// The units of a node with the GPUs of each.
fn sizes(given: &[Object<UnitBody>]) -> Result<BTreeMap<UnitId, u16>, Error> {
    let names: Vec<String> = given.iter().map(|unit| unit.0.id.clone()).collect();
    units("units", &names, UNITS_PER_NODE_MAX)?;
    let mut sizes = BTreeMap::new();
    for Object(unit) in given {
        let gpus = unit.gpus.unwrap_or(Whole(1)).within(1, GPUS_PER_UNIT_MAX);
        let gpus = gpus.ok_or_else(|| {
            bad(format!(
                "gpus of a unit is a number from 1 to {GPUS_PER_UNIT_MAX}"
            ))
        })?;
        sizes.insert(id("units", &unit.id)?, gpus);
    }
    Ok(sizes)
}

fn generation(number: Whole) -> Result<u64, Error> {
    let text = || {
        bad(format!(
            "topologyGen is a number from 1 to {TOPOLOGY_GEN_MAX}"
        ))
    };
    number.within(1, TOPOLOGY_GEN_MAX).ok_or_else(text)
}
