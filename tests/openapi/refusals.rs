//! Every refusal that an operation can give, made to happen.

use app::error::StoreError;
use app::ports::Clock;
use domain::Timestamp;
use domain::limits::{BOOKINGS_PER_NODE_MAX, TOPOLOGY_GEN_JUMP_MAX};
use http_api::openapi::codes;
use http_api::routes::{BodyRule, Operation, ROUTES, Route};
use serde_json::{Value, json};
use testkit::Fault;
use testkit::events::HttpEvent;

use crate::examples::{Recorder, Who};
use crate::story::{Cast, NODE, get, send};

/// Records all of them.
pub(crate) async fn record(recorder: &mut Recorder, cast: &Cast) {
    for route in ROUTES {
        for (_, code) in codes(route) {
            refuse(recorder, cast, route, code).await;
        }
    }
}

async fn refuse(recorder: &mut Recorder, cast: &Cast, route: &Route, code: &'static str) {
    let (before, now) = (
        recorder.platform.store.world(),
        recorder.platform.clock.now(),
    );
    let request = match general(recorder, cast, route, code) {
        Some(request) => request,
        None => own(recorder, cast, route.operation, code).await,
    };
    recorder.refused(code, request).await;
    recorder.platform.store.inject(&[]);
    recorder.platform.store.tamper(|world| *world = before);
    recorder.platform.clock.set(now);
}

/// A call of this route with everything right, by somebody who may make it.
fn right(cast: &Cast, operation: Operation) -> (Who, HttpEvent) {
    let id = &cast.reservation;
    let node = format!("/v1/nodes/{NODE}");
    let reservation = format!("{node}/reservations/{id}");
    let org = format!("/v1/orgs/{}", Who::Tenant.org());
    let units = json!({ "unitIds": ["u2"] });
    let why = json!({});
    let (who, method, path, body) = match operation {
        Operation::ReleaseUnits => (
            Who::Manager,
            "POST",
            format!("{reservation}/release"),
            units,
        ),
        Operation::ReclaimUnits => (
            Who::Manager,
            "POST",
            format!("{reservation}/reclaim"),
            units,
        ),
        Operation::EndReservation => (Who::Operator, "POST", format!("{reservation}/end"), why),
        Operation::ReaffirmReservation => {
            let path = format!("/v1/nodes/node-10/reservations/{}/reaffirm", cast.waiting);
            (Who::Operator, "POST", path, why)
        }
        Operation::CreateReservation => {
            let body = json!({ "reservedUnitIds": ["u4"], "allowedOrgIds": ["protein-lab"] });
            (Who::Owner, "POST", format!("{node}/reservations"), body)
        }
        Operation::PutNode => (Who::Operator, "PUT", node, node_body()),
        Operation::PutTopology => {
            let body = json!({ "topologyGen": 2, "units": node_body()["units"] });
            (Who::Owner, "PUT", format!("{node}/topology"), body)
        }
        Operation::ConfirmTermination => {
            let path = format!("{node}/terminations/{}/confirm", cast.dying);
            (Who::Owner, "POST", path, why)
        }
        Operation::CreateVm => {
            let body = json!({ "name": "web", "tier": "community", "nodeId": NODE, "gpuCount": 1 });
            (Who::Tenant, "POST", format!("{org}/vms/create"), body)
        }
        Operation::TerminateVm => {
            let path = format!("/v1/vms/{}/terminate", cast.tenant);
            (Who::Tenant, "POST", path, why)
        }
        Operation::CreateKey => {
            let body = json!({ "name": "ci", "role": "viewer" });
            (
                Who::Operator,
                "POST",
                format!("{org}/api-keys/create"),
                body,
            )
        }
        _ => return reading(cast, operation),
    };
    (who, send(method, &path, &body))
}

/// The same for what has no body.
fn reading(cast: &Cast, operation: Operation) -> (Who, HttpEvent) {
    let node = format!("/v1/nodes/{NODE}");
    let reservation = format!("{node}/reservations/{}", cast.reservation);
    let org = format!("/v1/orgs/{}", Who::Tenant.org());
    let path = match operation {
        Operation::ListReservations => format!("{node}/reservations"),
        Operation::GetReservation => reservation,
        Operation::ListAuditRecords => format!("{reservation}/audit"),
        Operation::ListOrgReservations => format!("{org}/reservations"),
        Operation::ListNodes => "/v1/nodes".to_owned(),
        Operation::GetNode => node,
        Operation::ListTerminations => format!("{node}/terminations"),
        Operation::ListVms => format!("{org}/vms"),
        Operation::GetVm => format!("/v1/vms/{}", cast.tenant),
        Operation::ListAvailability => "/v1/gpu-availability".to_owned(),
        Operation::ListKeys => format!("{org}/api-keys"),
        Operation::RevokeKey => {
            let path = format!("{org}/api-keys/key-{}", Who::Tenant.org());
            return (Who::Operator, HttpEvent::new("DELETE", &path));
        }
        Operation::GetCaller => "/v1/whoami".to_owned(),
        Operation::GetHealth => "/healthz".to_owned(),
        Operation::GetApiDocument => "/v1/openapi.json".to_owned(),
        other => unreachable!("{other:?} has a body"),
    };
    (Who::Operator, get(&path))
}

fn node_body() -> Value {
    let units: Vec<Value> = (1..=5)
        .map(|unit| json!({ "id": format!("u{unit}") }))
        .collect();
    json!({ "ownerOrgId": "gpu-farm", "gpuModelId": "h100-sxm", "units": units })
}

/// What makes any route refuse with this code; `None` for what is an operation's own.
fn general(recorder: &Recorder, cast: &Cast, route: &Route, code: &str) -> Option<HttpEvent> {
    let (who, right) = right(cast, route.operation);
    let event = right.clone().build();
    let path = event["rawPath"].as_str().unwrap();
    let anew = |path: &str| match event["body"].as_str() {
        None => HttpEvent::new(route.method, path),
        Some(body) => send(route.method, path, &serde_json::from_str(body).unwrap()),
    };
    let fail = |error| recorder.platform.store.inject(&[Fault::Before(error)]);
    let by = who.secret();
    Some(match code {
        "bad_request" if route.body == BodyRule::None => anew(&format!("{path}?colour=1")).by(&by),
        "bad_request" => send(route.method, path, &json!({ "colour": "red" })).by(&by),
        "unauthorized" => right,
        "forbidden" => right.by(&Who::Buyer.secret()),
        "not_found" if path.starts_with("/v1/orgs/") => {
            anew(&path.replace(Who::Tenant.org(), "no%20id")).by(&by)
        }
        // To whoever has no part in them, it lists none.
        "not_found" if route.operation == Operation::ListReservations => {
            anew(&path.replace(NODE, "no%20id")).by(&by)
        }
        "not_found" => right.by(&Who::Buyer.secret()),
        "body_too_large" => {
            let body = json!({ "reason": "hush ".repeat(14_000) });
            send(route.method, path, &body).by(&by)
        }
        "unsupported_media_type" => right.header("content-type", "text/plain").by(&by),
        "throttled" => {
            fail(StoreError::Throttled);
            right.by(&by)
        }
        "unavailable" => {
            fail(StoreError::Unavailable("away".to_owned()));
            right.by(&by)
        }
        "internal" => {
            fail(StoreError::Corrupt("bent".to_owned()));
            right.by(&by)
        }
        "version_mismatch" => right.header("if-match", "\"1\"").by(&by),
        _ => return None,
    })
}

/// What makes this operation refuse with a code of its own.
async fn own(recorder: &mut Recorder, cast: &Cast, operation: Operation, code: &str) -> HttpEvent {
    let (who, right) = right(cast, operation);
    let event = right.clone().build();
    let http = &event["requestContext"]["http"];
    let (method, path) = (
        http["method"].as_str().unwrap(),
        http["path"].as_str().unwrap(),
    );
    let body: Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
    let with = |field: &str, value: Value| {
        let mut body = body.clone();
        body[field] = value;
        send(method, path, &body)
    };
    let request = match code {
        "reservation_not_active" => {
            let over = Timestamp::parse("2026-10-01T00:00:00Z").unwrap();
            recorder.platform.clock.set(over);
            right
        }
        "unit_draining" => with("unitIds", json!(["u3"])),
        "unit_not_reserved" => with("unitIds", json!(["u2", "u5"])),
        "units_already_reserved" => with("reservedUnitIds", json!(["u1", "u4"])),
        "unknown_unit" => with("reservedUnitIds", json!(["u4", "u9"])),
        "ends_too_early" => with("endsAt", json!("2026-01-01T00:00:00Z")),
        "limit_reached" if operation == Operation::PutTopology => {
            with("topologyGen", json!(TOPOLOGY_GEN_JUMP_MAX + 2))
        }
        "limit_reached" => full(recorder).await,
        "stale_topology" => with("topologyGen", json!(1)),
        "reservation_not_in_review" | "units_lost" => {
            let (node, id) = match code {
                "units_lost" => ("node-9", &cast.lost),
                _ => ("node-8", &cast.reviewed),
            };
            let path = format!("/v1/nodes/{node}/reservations/{id}/reaffirm");
            send(method, &path, &body)
        }
        "node_already_registered" => with("gpuModelId", json!("b200")),
        "vm_not_condemned" => send(method, &path.replace(&cast.dying, &cast.tenant), &body),
        "insufficient_capacity" => with("gpuCount", json!(16)),
        "idempotency_key_reused" => {
            let keyed = right.clone().header("idempotency-key", "monday-1");
            let first = recorder.make(who, keyed).await;
            assert!(first.is_good(), "{first:?}");
            let other = match operation {
                Operation::CreateVm => with("name", json!("another")),
                _ => with("reason", json!("another")),
            };
            other.header("idempotency-key", "monday-1")
        }
        "idempotency_key_in_flight" => {
            // Its key and what is kept are read; then others are in the way.
            let faults = [
                Fault::Pass,
                Fault::Pass,
                Fault::Before(StoreError::Conflict),
            ];
            recorder.platform.store.inject(&faults);
            right.header("idempotency-key", "monday-2")
        }
        other => unreachable!("{operation:?}: make {other} happen"),
    };
    request.by(&who.secret())
}

/// Fills a node with as many reservations as it may have; the call that asks for one more.
async fn full(recorder: &Recorder) -> HttpEvent {
    let path = "/v1/nodes/node-full";
    let units: Vec<Value> = (0..=BOOKINGS_PER_NODE_MAX)
        .map(|unit| json!({ "id": format!("u{unit}") }))
        .collect();
    let body = json!({ "ownerOrgId": "gpu-farm", "gpuModelId": "h100-sxm", "units": units });
    recorder.make(Who::Operator, send("PUT", path, &body)).await;
    let path = format!("{path}/reservations");
    let reserve = |unit: usize| {
        let unit = format!("u{unit}");
        send(
            "POST",
            &path,
            &json!({ "reservedUnitIds": [unit], "allowedOrgIds": ["protein-lab"] }),
        )
    };
    for unit in 0..BOOKINGS_PER_NODE_MAX {
        let made = recorder.make(Who::Owner, reserve(unit)).await;
        assert!(made.is_good(), "{made:?}");
    }
    reserve(BOOKINGS_PER_NODE_MAX)
}
