//! The demo fleet: one node with eight units, four of them reserved.

use http::Method;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::failure::{Failure, run};
use crate::keys::Part;
use crate::platform::{NODE, Platform};

/// The model of the node's GPUs.
pub const GPU_MODEL: &str = "h100-sxm";
/// How many units the node has, of one GPU each.
const UNITS: usize = 8;

/// What the operator sends to register the node.
#[must_use]
pub fn node() -> Value {
    let units = (0..UNITS).map(|n| json!({ "id": format!("u{n}"), "gpus": 1 }));
    json!({
        "ownerOrgId": Part::Owner.org(),
        "gpuModelId": GPU_MODEL,
        "units": units.collect::<Vec<Value>>(),
    })
}

/// What the owner sends to reserve half of it.
#[must_use]
pub fn reservation() -> Value {
    json!({
        "reservedUnitIds": ["u0", "u1", "u2", "u3"],
        "allowedOrgIds": [Part::Audience.org()],
        "managingOrgIds": [Part::Manager.org()],
    })
}

/// Registers the node and makes the reservation, unless there is one from earlier; its id. A start
/// that was cut off in between is made up for.
///
/// # Errors
/// [`Failure::Run`] if the platform refuses a step.
pub async fn set_up(platform: &Platform) -> Result<String, Failure> {
    let failed = |error| run("cannot set up the demo fleet", error);
    let operator = platform.client(Part::Operator)?;
    let owner = platform.client(Part::Owner)?;
    let path = format!("/v1/nodes/{NODE}");
    let put = operator.send(Method::PUT, &path, Some(&node()), None).await;
    let put = put.map_err(failed)?;
    // A node that has reported another topology since is the same node.
    if put.body["code"] != "node_already_registered" {
        accepted(&put)?;
    }
    let reservations = format!("{path}/reservations");
    let listed = owner.get(&reservations).await.map_err(failed)?;
    accepted(&listed)?;
    let there = listed.body["items"]
        .as_array()
        .and_then(|items| items.first());
    if let Some(id) = there.and_then(|item| item["id"].as_str()) {
        return Ok(id.to_owned());
    }
    let made = owner.post(&reservations, Some(&reservation())).await;
    let made = made.map_err(failed)?;
    accepted(&made)?;
    Ok(made.body["id"].as_str().unwrap_or_default().to_owned())
}

fn accepted(answer: &Answer) -> Result<(), Failure> {
    match answer.status {
        200 => Ok(()),
        status => Err(run(
            "cannot set up the demo fleet",
            format!("answered {status}: {}", answer.body["error"]),
        )),
    }
}
