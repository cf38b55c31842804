//! A small fleet, built through the API itself: two nodes, a reservation in use, VMs in every part
//! of their lives, a key for each part in the play.

use app::auth::{ApiKey, Permission, SecretKey};
use app::ports::Commit;
use app::react::{Change, react};
use domain::{Caller, Reservation};
use http_api::routes::Operation;
use serde_json::{Value, json};

use super::{Answer, Platform};
use crate::doubles::RecordingOrders;
use crate::events::HttpEvent;
use crate::fixtures::{
    AUDIENCE_ORG, GPU_MODEL, MANAGER_ORG, NODE, OWNER_ORG, api_key, audience, id, manager, now,
    operator, owner, secret, stranger,
};
use crate::store::Store;

/// A node of another owner, with two units.
pub const OTHER_NODE: &str = "node-2";
/// A node of the same owner, whose topology has changed under its reservation.
pub const REVIEWED_NODE: &str = "node-3";
/// The org that owns [`OTHER_NODE`].
pub const OTHER_OWNER_ORG: &str = "org-other-owner";

/// Hours that the reservation lasts, from the instant of the fixtures on.
const TERM_MS: i64 = 3_600_000;

/// What there is, by the ids that the platform gave.
///
/// The node has eight units of one GPU. The reservation holds `u00` to `u03`, of which `u00` is
/// released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// The reservation, which ends an hour after the instant of the fixtures.
    pub reservation: String,
    /// The stranger's spot VM on `u00`, running.
    pub spot_vm: String,
    /// The stranger's spot VM on `u01`, condemned by a reclaim.
    pub dying_vm: String,
    /// The audience's verified VM on `u02`, running.
    pub tenant_vm: String,
    /// The stranger's community VM in the pool, on `u05`, running.
    pub pool_vm: String,
    /// The stranger's community VM on the other node.
    pub other_vm: String,
    /// The reservation of the one unit of [`REVIEWED_NODE`], which needs review: the unit grew.
    pub reviewed: String,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The node in the path.
    pub node: String,
    /// The reservation in the path.
    pub reservation: String,
    /// The VM in the path.
    pub vm: String,
    /// The org in the path.
    pub org: String,
    /// The API key in the path.
    pub key: String,
}

/// The secret of the key that this caller's org has in a fleet.
///
/// # Panics
/// If the org has no part in the play.
#[must_use]
pub fn secret_of(caller: &Caller) -> SecretKey {
    let cast = [operator(), owner(), manager(), audience(), stranger()];
    let place = cast.iter().position(|known| known.org == caller.org);
    let place = place.unwrap_or_else(|| unreachable!("{} has no key", caller.org));
    secret(u8::try_from(place + 1).unwrap_or(0))
}

/// That key: it may do everything.
#[must_use]
pub fn key_of(caller: &Caller) -> ApiKey {
    api_key(caller, &Permission::ALL)
}

/// The status of a good call of this route.
#[must_use]
pub fn good_status(operation: Operation) -> u16 {
    match operation {
        Operation::RevokeKey => 204,
        _ => 200,
    }
}

/// A call of this route with everything right, about this target, by nobody yet.
#[must_use]
pub fn good_call(operation: Operation, at: &Target) -> HttpEvent {
    let Target {
        node,
        reservation,
        vm,
        org,
        key,
    } = at;
    let of_node = format!("/v1/nodes/{node}");
    let of_reservation = format!("{of_node}/reservations/{reservation}");
    let get = |path: &str| HttpEvent::new("GET", path);
    let post = |path: &str, body: Value| HttpEvent::new("POST", path).json(&body);
    match operation {
        Operation::ReleaseUnits => post(
            &format!("{of_reservation}/release"),
            json!({ "unitIds": ["u03"], "reason": "hush: idle" }),
        ),
        Operation::ReclaimUnits => post(
            &format!("{of_reservation}/reclaim"),
            json!({ "unitIds": ["u00"], "reason": "hush: needed" }),
        ),
        Operation::EndReservation => post(
            &format!("{of_reservation}/end"),
            json!({ "reason": "hush: over" }),
        ),
        Operation::ReaffirmReservation => post(
            &format!("{of_reservation}/reaffirm"),
            json!({ "reason": "hush: looked at" }),
        ),
        Operation::CreateReservation => {
            post(&format!("{of_node}/reservations"), reservation_body("u06"))
        }
        Operation::ListReservations => get(&format!("{of_node}/reservations")),
        Operation::ListOrgReservations => get(&format!("/v1/orgs/{org}/reservations")),
        Operation::GetReservation => get(&of_reservation),
        Operation::ListAuditRecords => get(&format!("{of_reservation}/audit")),
        Operation::PutNode => {
            HttpEvent::new("PUT", &of_node).json(&node_body(OWNER_ORG, &["u00", "u01"]))
        }
        Operation::GetNode => get(&of_node),
        Operation::PutTopology => {
            let units = eight();
            let units: Vec<Value> = units.iter().map(|unit| json!({ "id": unit })).collect();
            let body = json!({ "topologyGen": 2, "units": units });
            HttpEvent::new("PUT", &format!("{of_node}/topology")).json(&body)
        }
        Operation::ListNodes => get("/v1/nodes"),
        Operation::ListTerminations => get(&format!("{of_node}/terminations")),
        Operation::ConfirmTermination => {
            post(&format!("{of_node}/terminations/{vm}/confirm"), json!({}))
        }
        Operation::CreateVm => post(
            &format!("/v1/orgs/{org}/vms/create"),
            json!({ "name": "w", "tier": "community", "nodeId": node, "unitIds": ["u07"] }),
        ),
        Operation::ListVms => get(&format!("/v1/orgs/{org}/vms")),
        Operation::ListAvailability => get("/v1/gpu-availability"),
        Operation::GetVm => get(&format!("/v1/vms/{vm}")),
        Operation::TerminateVm => post(&format!("/v1/vms/{vm}/terminate"), json!({})),
        Operation::CreateKey => post(
            &format!("/v1/orgs/{org}/api-keys/create"),
            json!({ "name": "build server", "role": "member" }),
        ),
        Operation::ListKeys => get(&format!("/v1/orgs/{org}/api-keys")),
        Operation::RevokeKey => HttpEvent::new("DELETE", &format!("/v1/orgs/{org}/api-keys/{key}")),
        Operation::GetCaller => get("/v1/whoami"),
        Operation::GetHealth => get("/healthz"),
        Operation::GetApiDocument => get("/v1/openapi.json"),
    }
}

/// The units of the node.
fn eight() -> Vec<String> {
    (0..8).map(|unit| format!("u{unit:02}")).collect()
}

fn node_body(owner: &str, units: &[&str]) -> Value {
    let units: Vec<Value> = units.iter().map(|unit| json!({ "id": unit })).collect();
    json!({ "ownerOrgId": owner, "gpuModelId": GPU_MODEL, "units": units })
}

fn reservation_body(unit: &str) -> Value {
    json!({
        "reservedUnitIds": [unit],
        "allowedOrgIds": [AUDIENCE_ORG],
        "managingOrgIds": [MANAGER_ORG],
    })
}

impl Fleet {
    /// Builds it on an empty store.
    ///
    /// # Panics
    /// If a step of the way is refused: then no test can run.
    pub async fn build<S: Store + Clone + 'static>(platform: &Platform<S>) -> Self {
        for part in [operator(), owner(), manager(), audience(), stranger()] {
            let digest = secret_of(&part).digest();
            let put = platform.store.put_key(&digest, &key_of(&part)).await;
            assert_eq!(put, Ok(Commit::Done), "a key for each part");
        }
        Builder { platform }.build().await
    }

    /// What a call of this route is about when all goes well. A node to be put is a new one.
    #[must_use]
    pub fn target(&self, operation: Operation) -> Target {
        let vm = match operation {
            Operation::ConfirmTermination => &self.dying_vm,
            Operation::TerminateVm => &self.spot_vm,
            _ => &self.tenant_vm,
        };
        let (node, reservation) = match operation {
            Operation::PutNode => ("node-new", &self.reservation),
            Operation::ReaffirmReservation => (REVIEWED_NODE, &self.reviewed),
            _ => (NODE, &self.reservation),
        };
        Target {
            node: node.to_owned(),
            reservation: reservation.clone(),
            vm: vm.clone(),
            org: AUDIENCE_ORG.to_owned(),
            key: audience().key.to_string(),
        }
    }

    /// The good call of this route about its own target.
    #[must_use]
    pub fn call(&self, operation: Operation) -> HttpEvent {
        good_call(operation, &self.target(operation))
    }
}

struct Builder<'a, S> {
    platform: &'a Platform<S>,
}

impl<S: Store + Clone + 'static> Builder<'_, S> {
    async fn build(&self) -> Fleet {
        let eight = eight();
        let eight: Vec<&str> = eight.iter().map(String::as_str).collect();
        self.put(NODE, &node_body(OWNER_ORG, &eight)).await;
        self.put(OTHER_NODE, &node_body(OTHER_OWNER_ORG, &["u00", "u01"]))
            .await;
        let mut body = reservation_body("u00");
        body["reservedUnitIds"] = json!(["u00", "u01", "u02", "u03"]);
        body["endsAt"] = json!(now().plus_ms(TERM_MS).to_string());
        body["contractRef"] = json!("contract-7");
        body["reason"] = json!("hush: tenant of the year");
        let path = format!("/v1/nodes/{NODE}/reservations");
        let request = HttpEvent::new("POST", &path).json(&body);
        let reservation = self.done(&owner(), request).await.field("id");
        self.follow(None, &reservation).await;
        self.capacity(&reservation, "release", json!(["u00", "u01"]))
            .await;
        let buyer = stranger();
        let dying_vm = self.buy(&reservation, &buyer, spot("u01")).await;
        self.capacity(&reservation, "reclaim", json!(["u01"])).await;
        let tenant = json!({
            "name": "training", "tier": "verified", "nodeId": NODE, "unitIds": ["u02"],
            "reservationId": reservation,
        });
        Fleet {
            reviewed: self.reviewed().await,
            spot_vm: self.buy(&reservation, &buyer, spot("u00")).await,
            tenant_vm: self.buy(&reservation, &audience(), tenant).await,
            pool_vm: self.buy(&reservation, &buyer, pool(NODE, "u05")).await,
            other_vm: self
                .buy(&reservation, &buyer, pool(OTHER_NODE, "u00"))
                .await,
            dying_vm,
            reservation,
        }
    }

    /// Reserves the one unit of a node and lets it grow. Returns the reservation's id.
    async fn reviewed(&self) -> String {
        self.put(REVIEWED_NODE, &node_body(OWNER_ORG, &["u00"]))
            .await;
        let path = format!("/v1/nodes/{REVIEWED_NODE}");
        let request = HttpEvent::new("POST", &format!("{path}/reservations"));
        let made = self
            .done(&owner(), request.json(&reservation_body("u00")))
            .await;
        let grown = json!({ "topologyGen": 2, "units": [{ "id": "u00", "gpus": 2 }] });
        let request = HttpEvent::new("PUT", &format!("{path}/topology")).json(&grown);
        self.done(&owner(), request).await;
        made.field("id")
    }

    async fn done(&self, by: &Caller, request: HttpEvent) -> Answer {
        let answer = self.platform.call(request.by(&secret_of(by))).await;
        if answer.status != 200 {
            unreachable!("the fleet cannot be built: {answer:?}");
        }
        answer
    }

    async fn put(&self, node: &str, body: &Value) {
        let request = HttpEvent::new("PUT", &format!("/v1/nodes/{node}")).json(body);
        self.done(&operator(), request).await;
    }

    async fn capacity(&self, reservation: &str, verb: &str, units: Value) {
        let path = format!("/v1/nodes/{NODE}/reservations/{reservation}/{verb}");
        let request = HttpEvent::new("POST", &path).json(&json!({ "unitIds": units }));
        self.watched(reservation, &manager(), request).await;
    }

    /// Places a VM and returns its id.
    async fn buy(&self, reservation: &str, by: &Caller, body: Value) -> String {
        let path = format!("/v1/orgs/{}/vms/create", by.org);
        let request = HttpEvent::new("POST", &path).json(&body);
        self.watched(reservation, by, request).await.field("id")
    }

    /// Makes a call, and lets happen what follows from it for the reservation.
    async fn watched(&self, reservation: &str, by: &Caller, request: HttpEvent) -> Answer {
        let before = self.image(reservation).await;
        let answer = self.done(by, request).await;
        self.follow(before, reservation).await;
        answer
    }

    async fn image(&self, reservation: &str) -> Option<Reservation> {
        let store = &self.platform.store;
        let found = store.load_reservation(&id(NODE), &id(reservation)).await;
        found.unwrap_or_else(|error| unreachable!("no reservation: {error}"))
    }

    /// Lets happen what the stream would make of a change of the reservation.
    async fn follow(&self, old: Option<Reservation>, reservation: &str) {
        let Some(new) = self.image(reservation).await else {
            unreachable!("the reservation was made");
        };
        let change = Change::Reservation {
            old: old.map(Box::new),
            new: Box::new(new),
        };
        let orders = RecordingOrders::default();
        let done = react(&self.platform.store, &orders, now(), &change).await;
        done.unwrap_or_else(|error| unreachable!("nothing follows: {error}"));
    }
}

fn spot(unit: &str) -> Value {
    json!({ "name": "batch", "tier": "spot", "nodeId": NODE, "unitIds": [unit] })
}

fn pool(node: &str, unit: &str) -> Value {
    json!({ "name": "web", "tier": "community", "nodeId": node, "unitIds": [unit] })
}
