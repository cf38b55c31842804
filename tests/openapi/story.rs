//! The story that the examples tell: a node, a reservation on it, units sold twice and taken back.

use serde_json::{Value, json};
use testkit::events::HttpEvent;

use crate::examples::{Recorder, Who};

/// The node.
pub(crate) const NODE: &str = "node-7";

/// What came to be on the way.
pub(crate) struct Cast {
    /// The reservation of `u1` to `u3`.
    pub(crate) reservation: String,
    /// The tenant's VM on `u1`.
    pub(crate) tenant: String,
    /// The buyer's VM on `u3`, condemned and not confirmed gone.
    pub(crate) dying: String,
    /// A reservation on `node-8` that was reviewed.
    pub(crate) reviewed: String,
    /// One on `node-9` whose unit the node has lost.
    pub(crate) lost: String,
    /// One on `node-10` that needs review.
    pub(crate) waiting: String,
}

/// A request without a body.
pub(crate) fn get(path: &str) -> HttpEvent {
    HttpEvent::new("GET", path)
}

/// A request with one.
pub(crate) fn send(method: &str, path: &str, body: &Value) -> HttpEvent {
    HttpEvent::new(method, path).json(body)
}

/// Plays it.
pub(crate) async fn play(recorder: &mut Recorder) -> Cast {
    let reservation = reserve(recorder).await;
    let (tenant, dying) = sell_and_take_back(recorder, &reservation).await;
    let [reviewed, lost, waiting] = review(recorder).await;
    look(recorder, &reservation, &tenant).await;
    keys(recorder).await;
    Cast {
        reservation,
        tenant,
        dying,
        reviewed,
        lost,
        waiting,
    }
}

async fn reserve(recorder: &mut Recorder) -> String {
    let units: Vec<Value> = (1..=5)
        .map(|unit| json!({ "id": format!("u{unit}"), "gpus": 1 }))
        .collect();
    let node = json!({ "ownerOrgId": Who::Owner.org(), "gpuModelId": "h100-sxm", "units": units });
    let path = format!("/v1/nodes/{NODE}");
    let put = send("PUT", &path, &node);
    recorder.good("node", Who::Operator, put).await;
    let body = json!({
        "reservedUnitIds": ["u1", "u2", "u3"],
        "allowedOrgIds": [Who::Tenant.org()],
        "managingOrgIds": [Who::Manager.org()],
        "endsAt": "2026-10-01T00:00:00Z",
        "contractRef": "contract-2026-17",
        "reason": "third quarter",
    });
    let create = send("POST", &format!("{path}/reservations"), &body);
    let made = recorder.good("reservation", Who::Owner, create).await;
    made.field("id")
}

/// A VM of the tenant; one of the buyer that is taken back and gone, one that is still stopping.
async fn sell_and_take_back(recorder: &mut Recorder, id: &str) -> (String, String) {
    let of_reservation = format!("/v1/nodes/{NODE}/reservations/{id}");
    let buy = |who: Who| format!("/v1/orgs/{}/vms/create", who.org());
    let on_reservation = json!({ "name": "folding", "tier": "verified", "nodeId": NODE,
        "reservationId": id, "unitIds": ["u1"] });
    let create = send("POST", &buy(Who::Tenant), &on_reservation);
    let tenant = recorder.good("onReservation", Who::Tenant, create).await;
    let units = json!({ "unitIds": ["u2", "u3"], "reason": "idle until Monday" });
    let release = send("POST", &format!("{of_reservation}/release"), &units);
    recorder.good("release", Who::Manager, release).await;
    let mut bought = Vec::new();
    for (name, unit) in [("spot", "u2"), ("another", "u3")] {
        let vm = json!({ "name": "overnight", "tier": "spot", "nodeId": NODE, "unitIds": [unit] });
        let create = send("POST", &buy(Who::Buyer), &vm);
        let made = match name {
            "spot" => recorder.good(name, Who::Buyer, create).await,
            _ => recorder.make(Who::Buyer, create).await,
        };
        bought.push(made.field("id"));
    }
    let [gone, dying] = bought.try_into().unwrap();
    let reclaim = format!("{of_reservation}/reclaim");
    let plan = json!({ "unitIds": ["u2", "u3"], "dryRun": true });
    let plan = send("POST", &reclaim, &plan);
    recorder.good("dryRun", Who::Manager, plan).await;
    let units = json!({ "unitIds": ["u2", "u3"], "reason": "needed for training" });
    let real = send("POST", &reclaim, &units);
    recorder.good("reclaim", Who::Manager, real).await;
    let stop = format!("/v1/nodes/{NODE}/terminations");
    recorder.good("terminations", Who::Owner, get(&stop)).await;
    let confirm = send("POST", &format!("{stop}/{gone}/confirm"), &json!({}));
    recorder.good("confirmed", Who::Owner, confirm).await;
    (tenant.field("id"), dying)
}

/// Nodes with one reservation each, whose units change: they grow, or one is lost.
async fn review(recorder: &mut Recorder) -> [String; 3] {
    let mut made = Vec::new();
    for node in ["node-8", "node-9", "node-10"] {
        let path = format!("/v1/nodes/{node}");
        let body = json!({ "ownerOrgId": Who::Owner.org(), "gpuModelId": "h100-sxm",
            "units": [{ "id": "u1" }, { "id": "u2" }] });
        recorder
            .make(Who::Operator, send("PUT", &path, &body))
            .await;
        let body = json!({ "reservedUnitIds": ["u1"], "allowedOrgIds": [Who::Tenant.org()] });
        let create = send("POST", &format!("{path}/reservations"), &body);
        made.push(recorder.make(Who::Owner, create).await.field("id"));
    }
    let [reviewed, lost, waiting] = made.try_into().unwrap();
    let grown = json!({ "topologyGen": 2, "units": [{ "id": "u1", "gpus": 2 }, { "id": "u2" }] });
    let report = send("PUT", "/v1/nodes/node-8/topology", &grown);
    recorder.good("topology", Who::Owner, report).await;
    let report = send("PUT", "/v1/nodes/node-10/topology", &grown);
    recorder.make(Who::Owner, report).await;
    let less = json!({ "topologyGen": 2, "units": [{ "id": "u2" }] });
    let report = send("PUT", "/v1/nodes/node-9/topology", &less);
    recorder.make(Who::Owner, report).await;
    let reaffirm = format!("/v1/nodes/node-8/reservations/{reviewed}/reaffirm");
    let why = json!({ "reason": "looked at: the same board" });
    let reaffirm = send("POST", &reaffirm, &why);
    recorder.good("reaffirmed", Who::Operator, reaffirm).await;
    [reviewed, lost, waiting]
}

/// All that can be looked at, and what ends it.
async fn look(recorder: &mut Recorder, id: &str, tenant: &str) {
    let of_node = format!("/v1/nodes/{NODE}");
    let of_reservation = format!("{of_node}/reservations/{id}");
    let of_org = format!("/v1/orgs/{}", Who::Tenant.org());
    for (name, by, path) in [
        ("reservation", Who::Manager, of_reservation.clone()),
        (
            "reservations",
            Who::Owner,
            format!("{of_node}/reservations"),
        ),
        (
            "records",
            Who::Manager,
            format!("{of_reservation}/audit?limit=4"),
        ),
        (
            "reservations",
            Who::Tenant,
            format!("{of_org}/reservations?role=audience&limit=1"),
        ),
        ("node", Who::Owner, of_node.clone()),
        ("nodes", Who::Owner, "/v1/nodes".to_owned()),
        ("vms", Who::Tenant, format!("{of_org}/vms")),
        ("vm", Who::Tenant, format!("/v1/vms/{tenant}")),
        (
            "availability",
            Who::Buyer,
            "/v1/gpu-availability".to_owned(),
        ),
        ("caller", Who::Manager, "/v1/whoami".to_owned()),
        ("health", Who::Buyer, "/healthz".to_owned()),
        ("document", Who::Buyer, "/v1/openapi.json".to_owned()),
    ] {
        recorder.good(name, by, get(&path)).await;
    }
    let before = recorder.platform.store.world();
    let end = json!({ "reason": "contract cancelled" });
    let end = send("POST", &format!("{of_reservation}/end"), &end);
    recorder.good("ended", Who::Operator, end).await;
    let stop = send("POST", &format!("/v1/vms/{tenant}/terminate"), &json!({}));
    recorder.good("terminating", Who::Tenant, stop).await;
    recorder.platform.store.tamper(|world| *world = before);
}

async fn keys(recorder: &mut Recorder) {
    let path = format!("/v1/orgs/{}/api-keys", Who::Tenant.org());
    let key = json!({ "name": "build server", "role": "member", "expiresInSeconds": 7_776_000 });
    let create = send("POST", &format!("{path}/create"), &key);
    let made = recorder.good("byRole", Who::Operator, create).await;
    recorder.good("keys", Who::Operator, get(&path)).await;
    let one = format!("{path}/{}", made.field("id"));
    let revoke = HttpEvent::new("DELETE", &one);
    recorder.good("revoked", Who::Operator, revoke).await;
}
