//! `relet demo`: the whole story once, on a platform of its own, every step checked.

mod story;

use std::net::SocketAddr;
use std::time::Duration;

use domain::VmId;
use http::Method;
use serde_json::{Value, json};

use crate::agent::host::VmProgram;
use crate::agent::process::Group;
use crate::failure::Failure;
use crate::fleet::{self, GPU_MODEL};
use crate::keys::Part;
use crate::output::Output;
use crate::platform::{NODE, Options, Platform};
use story::{Call, Story};

/// How long a VM's process may take to end on its own.
const GRACE: Duration = Duration::from_secs(2);

/// Plays the story.
///
/// # Errors
/// [`Failure`] names the first step that did not do what it should.
pub async fn demo(output: &mut Output) -> Result<(), Failure> {
    let platform = Platform::start(&Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: None,
        program: VmProgram {
            command: None,
            grace: GRACE,
        },
    })
    .await?;
    let mut story = Story::new(&platform, output)?;
    let played = play(&mut story, &platform).await;
    story.end(&played);
    played.and(platform.stop().await)
}

async fn play(story: &mut Story<'_>, platform: &Platform) -> Result<(), Failure> {
    let reservation = reserve(story).await?;
    release(story, &reservation).await?;
    let (spot, process) = buy(story, platform).await?;
    reclaim(story, &reservation, &spot).await?;
    watch(story, &spot, &process).await?;
    let tenant = place(story, platform, &reservation).await?;
    end(story, &reservation, &tenant).await?;
    audit(story, &reservation).await
}

/// The node and the reservation; its path.
async fn reserve(story: &mut Story<'_>) -> Result<String, Failure> {
    let node = format!("/v1/nodes/{NODE}");
    story.step("The operator registers a node with 8 GPU units.");
    let call = Call::new(Part::Operator, Method::PUT, &node).body(fleet::node());
    let answer = story
        .call(call, &["id", "gpuModelId", "units.*.state"])
        .await?;
    story.check("eight units, all free", states(&answer.body) == ["free"; 8])?;

    story.step("Its owner reserves 4 of them for a tenant; another org manages the capacity.");
    let path = format!("{node}/reservations");
    let call = Call::new(Part::Owner, Method::POST, &path).body(fleet::reservation());
    let answer = story
        .call(call, &["id", "status", "reservedUnitIds"])
        .await?;
    story.check("it is active", answer.body["status"] == "active")?;
    let id = answer.body["id"].as_str().unwrap_or_default();
    Ok(format!("{path}/{id}"))
}

async fn release(story: &mut Story<'_>, reservation: &str) -> Result<(), Failure> {
    story.step("The tenant needs only two this week. The manager releases the others to spot.");
    let path = format!("{reservation}/release");
    let call = Call::new(Part::Manager, Method::POST, &path)
        .body(json!({ "unitIds": ["u2", "u3"], "reason": "idle until Monday" }));
    let answer = story.call(call, &["releasedUnitIds"]).await?;
    let released = &answer.body["releasedUnitIds"];
    story.check("both are on the market", *released == json!(["u2", "u3"]))
}

/// The spot VM and the process behind it.
async fn buy(story: &mut Story<'_>, platform: &Platform) -> Result<(VmId, Group), Failure> {
    story.step("A stranger buys them at spot.");
    let wanted = json!({ "name": "batch-job", "tier": "spot", "nodeId": NODE,
        "unitIds": ["u2", "u3"] });
    let path = format!("/v1/orgs/{}/vms/create", Part::Stranger.org());
    let call = Call::new(Part::Stranger, Method::POST, &path).body(wanted);
    let answer = story
        .call(call, &["id", "status", "tier", "unitIds"])
        .await?;
    let spot = story.id(&answer.body)?;
    let process = story.process(platform, &spot).await?;

    story.step("The same units at the community tier: a reclaim could not take those back.");
    let wanted = json!({ "name": "for-good", "tier": "community", "nodeId": NODE,
        "unitIds": ["u2", "u3"] });
    let call = Call::new(Part::Stranger, Method::POST, &path).body(wanted);
    let answer = story.call(call.refused(409), &["code", "error"]).await?;
    let code = &answer.body["code"];
    story.check("refused", *code == "insufficient_capacity")?;
    Ok((spot, process))
}

async fn reclaim(story: &mut Story<'_>, reservation: &str, spot: &VmId) -> Result<(), Failure> {
    let path = format!("{reservation}/reclaim");
    story.step("Demand is back. What would a reclaim terminate? A dry run changes nothing.");
    let call = Call::new(Part::Manager, Method::POST, &path)
        .body(json!({ "unitIds": ["u2", "u3"], "dryRun": true }));
    let plan = story.call(call, &["wouldTerminate", "wouldSkip"]).await?;
    let named = plan.body["wouldTerminate"] == json!([spot.as_str()]);
    story.check("it names the stranger's VM", named)?;

    story.step("The reclaim, on the condition that nothing changed since the plan.");
    let call = Call::new(Part::Manager, Method::POST, &path)
        .body(json!({ "unitIds": ["u2", "u3"], "reason": "launch day" }))
        .if_match(plan.etag.as_deref().unwrap_or_default());
    let answer = story
        .call(call, &["terminated", "skipped", "releasedUnitIds"])
        .await?;
    let terminated = answer.body["terminated"] == plan.body["wouldTerminate"];
    story.check("it terminates what the plan said", terminated)?;
    let none = answer.body["releasedUnitIds"] == json!([]);
    story.check("nothing is on the market any more", none)
}

/// Waits for the end of the spot VM.
async fn watch(story: &mut Story<'_>, spot: &VmId, process: &Group) -> Result<(), Failure> {
    story.step("The order travels: stream, queue, node agent. The process behind the VM dies.");
    story
        .until("the process is gone", async || Ok(!process.is_alive()))
        .await?;
    let path = format!("/v1/vms/{spot}");
    let owner = story.client(Part::Stranger);
    story
        .until("the VM is terminated", async || {
            Ok(owner.get(&path).await?.body["status"] == "terminated")
        })
        .await?;
    let call = Call::new(Part::Stranger, Method::GET, &path);
    story.call(call, &["status", "statusReason"]).await?;
    let call = Call::new(Part::Owner, Method::GET, &format!("/v1/nodes/{NODE}"));
    let answer = story.call(call, &["units.*.state"]).await?;
    let seated = answer.body["units"].as_array().into_iter().flatten();
    let free = seated.into_iter().all(|unit| unit.get("vmId").is_none());
    story.check("its units are empty again", free)
}

/// The tenant's own VM and the process behind it.
async fn place(
    story: &mut Story<'_>,
    platform: &Platform,
    reservation: &str,
) -> Result<(VmId, Group), Failure> {
    story.step("The tenant's own VM lands on them.");
    let id = reservation.rsplit('/').next().unwrap_or_default();
    let path = format!("/v1/orgs/{}/vms/create", Part::Audience.org());
    let call = Call::new(Part::Audience, Method::POST, &path).body(json!({ "name": "training",
        "tier": "community", "nodeId": NODE, "reservationId": id, "unitIds": ["u2", "u3"] }));
    let answer = story
        .call(call, &["id", "status", "tier", "unitIds"])
        .await?;
    let reserved = answer.body["reservationId"] == id;
    story.check("it carries the reservation", reserved)?;
    let vm = story.id(&answer.body)?;
    let process = story.process(platform, &vm).await?;
    Ok((vm, process))
}

async fn end(
    story: &mut Story<'_>,
    reservation: &str,
    (vm, process): &(VmId, Group),
) -> Result<(), Failure> {
    story.step("The operator ends the reservation. Its units go back to the pool; work goes on.");
    let path = format!("{reservation}/end");
    let call =
        Call::new(Part::Operator, Method::POST, &path).body(json!({ "reason": "contract over" }));
    let answer = story
        .call(call, &["status", "releasedUnitIds", "endsAt"])
        .await?;
    story.check("it is cancelled", answer.body["status"] == "cancelled")?;
    let call = Call::new(Part::Audience, Method::GET, &format!("/v1/vms/{vm}"));
    let answer = story.call(call, &["status", "unitIds"]).await?;
    let running = answer.body["status"] == "running" && process.is_alive();
    story.check("the tenant's VM still runs", running)?;

    story.step("A unit of the pool may be bought at any tier again.");
    let path = format!("/v1/orgs/{}/vms/create", Part::Stranger.org());
    let call = Call::new(Part::Stranger, Method::POST, &path).body(json!({ "name": "for-good",
        "tier": "community", "gpuModelId": GPU_MODEL, "gpuCount": 1 }));
    let answer = story.call(call, &["status", "tier", "unitIds"]).await?;
    story.check("sold", answer.body["status"] == "running")
}

async fn audit(story: &mut Story<'_>, reservation: &str) -> Result<(), Failure> {
    story.step("Who did what, in order, each record sealed over the one before.");
    let reader = story.client(Part::Owner);
    let etag = reader
        .get(reservation)
        .await
        .map_err(story::lost)?
        .etag
        .unwrap_or_default();
    let version: usize = etag.trim_matches('"').parse().unwrap_or(usize::MAX);
    let path = format!("{reservation}/audit");
    let call = || async { Ok(reader.get(&path).await?.body) };
    story
        .until("every version has its record", async || {
            let versions = versions(&call().await?);
            let all: Vec<u64> = (1..=version as u64).collect();
            Ok(versions == all)
        })
        .await?;
    let trail = call().await.map_err(story::lost)?;
    story.trail(&trail);
    story.check("the chain holds", chained(&trail))
}

fn states(node: &Value) -> Vec<&str> {
    let units = node["units"].as_array().into_iter().flatten();
    units.filter_map(|unit| unit["state"].as_str()).collect()
}

fn records(trail: &Value) -> &[Value] {
    trail["items"].as_array().map_or(&[], Vec::as_slice)
}

/// The versions that the trail has records of, each once.
fn versions(trail: &Value) -> Vec<u64> {
    let each = records(trail)
        .iter()
        .filter_map(|record| record["version"].as_u64());
    let mut versions: Vec<u64> = each.collect();
    versions.dedup();
    versions
}

fn chained(trail: &Value) -> bool {
    let pairs = records(trail).windows(2);
    let mut linked = pairs.map(|pair| pair[0]["hash"] == pair[1]["prevHash"]);
    linked.all(|holds| holds)
}
