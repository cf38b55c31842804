//! Every success body, field by field.

use domain::Caller;
use http_api::routes::{Operation, ROUTES};
use serde_json::{Value, json};
use testkit::events::HttpEvent;
use testkit::fixtures::{
    AUDIENCE_ORG, GPU_MODEL, MANAGER_ORG, NODE, OWNER_ORG, STRANGER_ORG, audience, manager, owner,
    stranger,
};
use testkit::http::{OTHER_NODE, OTHER_OWNER_ORG, REVIEWED_NODE, good_status};

use crate::{LATER, THEN, ask, good, is_uuid, post, reservation, stage, with};

fn vm(id: &str, org: &str, name: &str, tier: &str, unit: &str) -> Value {
    json!({
        "id": id,
        "organizationId": org,
        "name": name,
        "status": "running",
        "tier": tier,
        "gpuModelId": GPU_MODEL,
        "gpuCount": 1,
        "nodeId": NODE,
        "unitIds": [unit],
        "createdAt": THEN,
    })
}

#[tokio::test]
async fn the_capacity_verbs_answer_with_the_reservation() {
    for operation in [
        Operation::ReleaseUnits,
        Operation::ReclaimUnits,
        Operation::EndReservation,
        Operation::GetReservation,
    ] {
        let (platform, fleet) = stage().await;
        let answer = good(&platform, &fleet, operation).await;
        let (more, version) = match operation {
            Operation::ReleaseUnits => (
                json!({ "releasedUnitIds": ["u00", "u03"], "updatedAt": LATER }),
                "\"7\"",
            ),
            Operation::ReclaimUnits => (
                json!({ "releasedUnitIds": [], "updatedAt": LATER,
                    "terminated": [fleet.spot_vm], "skipped": [] }),
                "\"7\"",
            ),
            Operation::EndReservation => (
                json!({ "releasedUnitIds": [], "updatedAt": LATER, "endsAt": LATER,
                    "status": "cancelled" }),
                "\"7\"",
            ),
            _ => (json!({}), "\"6\""),
        };
        let expected = with(reservation(&fleet), &more);
        assert_eq!(answer.json(), expected, "{operation:?}");
        assert_eq!(answer.header("etag"), version, "{operation:?}");
    }
}

#[tokio::test]
async fn ending_twice_answers_the_same_twice() {
    let (platform, fleet) = stage().await;
    let first = good(&platform, &fleet, Operation::EndReservation).await;
    platform.clock.advance_ms(60_000);
    let second = good(&platform, &fleet, Operation::EndReservation).await;
    assert_eq!(first.without_id(), second.without_id());
}

#[tokio::test]
async fn a_new_reservation_is_answered_whole_and_leaves_out_what_it_has_not() {
    let (platform, fleet) = stage().await;
    let answer = good(&platform, &fleet, Operation::CreateReservation).await;
    let id = answer.field("id");
    assert!(is_uuid(&id), "{id}");
    let expected = json!({
        "id": id,
        "nodeId": NODE,
        "reservedUnitIds": ["u06"],
        "releasedUnitIds": [],
        "allowedOrgIds": [AUDIENCE_ORG],
        "managingOrgIds": [MANAGER_ORG],
        "startsAt": LATER,
        "status": "active",
        "topologyGen": 1,
        "createdAt": LATER,
        "updatedAt": LATER,
    });
    assert_eq!(answer.json(), expected);
    assert_eq!(answer.header("etag"), "\"1\"");
}

#[tokio::test]
async fn times_may_come_with_an_offset_and_go_out_in_utc() {
    let (platform, _) = stage().await;
    let body = json!({
        "reservedUnitIds": ["u07", "u06"], "allowedOrgIds": ["b", "a"], "managingOrgIds": [],
        "startsAt": "2026-07-01T13:30:00+02:00", "endsAt": "2026-07-02T00:00:00-05:00",
    });
    let path = format!("/v1/nodes/{NODE}/reservations");
    let answer = ask(&platform, &owner(), post(&path, &body)).await;
    let shown = answer.json();
    assert_eq!(shown["startsAt"], "2026-07-01T11:30:00.000Z", "{answer:?}");
    assert_eq!(shown["endsAt"], "2026-07-02T05:00:00.000Z");
    assert_eq!(shown["reservedUnitIds"], json!(["u06", "u07"]), "sorted");
    assert_eq!(shown["allowedOrgIds"], json!(["a", "b"]), "sorted");
    assert_eq!(shown["managingOrgIds"], json!([]), "present even if empty");
}

#[tokio::test]
async fn vms_are_answered_as_the_contract_has_them() {
    let (platform, fleet) = stage().await;
    let tenant = with(
        vm(
            &fleet.tenant_vm,
            AUDIENCE_ORG,
            "training",
            "verified",
            "u02",
        ),
        &json!({ "reservationId": fleet.reservation }),
    );
    let read = good(&platform, &fleet, Operation::GetVm).await;
    assert_eq!(read.json(), tenant);
    let listed = good(&platform, &fleet, Operation::ListVms).await;
    assert_eq!(listed.json(), json!({ "items": [tenant] }));
    let made = good(&platform, &fleet, Operation::CreateVm).await;
    let id = made.field("id");
    assert!(is_uuid(&id), "{id}");
    let expected = with(
        vm(&id, AUDIENCE_ORG, "w", "community", "u07"),
        &json!({ "createdAt": LATER }),
    );
    assert_eq!(made.json(), expected);
    let gone = good(&platform, &fleet, Operation::ConfirmTermination).await;
    let why = format!(
        "its unit was taken back by reservation {}",
        fleet.reservation
    );
    let expected = with(
        vm(&fleet.dying_vm, STRANGER_ORG, "batch", "spot", "u01"),
        &json!({ "status": "terminated", "statusReason": why }),
    );
    assert_eq!(
        gone.json(),
        expected,
        "a spot buyer is not told on whose reservation it was"
    );
    let again = good(&platform, &fleet, Operation::ConfirmTermination).await;
    assert_eq!(again.without_id(), gone.without_id(), "a repeat is 200");
    let path = format!("/v1/vms/{}/terminate", fleet.spot_vm);
    let stopped = ask(&platform, &stranger(), post(&path, &json!({}))).await;
    let expected = with(
        vm(&fleet.spot_vm, STRANGER_ORG, "batch", "spot", "u00"),
        &json!({ "status": "terminating", "statusReason": "stopped by its own org" }),
    );
    assert_eq!(stopped.json(), expected);
}

#[tokio::test]
async fn nodes_and_terminations_are_answered_as_the_contract_has_them() {
    let (platform, fleet) = stage().await;
    let free = |id: &str| json!({ "id": id, "gpus": 1, "state": "free" });
    let held = |id: &str, state: &str, vm: Option<&str>| {
        let unit =
            json!({ "id": id, "gpus": 1, "state": state, "reservationId": fleet.reservation });
        vm.map_or(unit.clone(), |vm| with(unit, &json!({ "vmId": vm })))
    };
    let expected = json!({
        "id": NODE,
        "ownerOrgId": OWNER_ORG,
        "gpuModelId": GPU_MODEL,
        "topologyGen": 1,
        "units": [
            held("u00", "released", Some(&fleet.spot_vm)),
            held("u01", "reserved", Some(&fleet.dying_vm)),
            held("u02", "reserved", Some(&fleet.tenant_vm)),
            held("u03", "reserved", None),
            free("u04"),
            with(free("u05"), &json!({ "vmId": fleet.pool_vm })),
            free("u06"),
            free("u07"),
        ],
        "createdAt": THEN,
        "updatedAt": THEN,
    });
    assert_eq!(
        good(&platform, &fleet, Operation::GetNode).await.json(),
        expected
    );
    let put = good(&platform, &fleet, Operation::PutNode).await;
    let expected = json!({
        "id": "node-new",
        "ownerOrgId": OWNER_ORG,
        "gpuModelId": GPU_MODEL,
        "topologyGen": 1,
        "units": [free("u00"), free("u01")],
        "createdAt": LATER,
        "updatedAt": LATER,
    });
    assert_eq!(put.json(), expected);
    let again = good(&platform, &fleet, Operation::PutNode).await;
    assert_eq!(
        again.without_id(),
        put.without_id(),
        "a repeat changes nothing"
    );
    let expected = json!({ "items": [{
        "vmId": fleet.dying_vm,
        "unitIds": ["u01"],
        "reservationId": fleet.reservation,
        "reservationVersion": 6,
        "requestedAt": THEN,
        "attempts": 0,
        "stuck": false,
    }] });
    let listed = good(&platform, &fleet, Operation::ListTerminations).await;
    assert_eq!(listed.json(), expected);
}

#[tokio::test]
async fn nodes_are_listed_without_their_units_and_to_each_its_own() {
    let (platform, fleet) = stage().await;
    let summary = |id: &str, owner: &str, units: usize| {
        json!({
            "id": id,
            "ownerOrgId": owner,
            "gpuModelId": GPU_MODEL,
            "topologyGen": 1,
            "unitCount": units,
            "createdAt": THEN,
            "updatedAt": THEN,
        })
    };
    let own = summary(NODE, OWNER_ORG, 8);
    let other = summary(OTHER_NODE, OTHER_OWNER_ORG, 2);
    let reviewed = with(
        summary(REVIEWED_NODE, OWNER_ORG, 1),
        &json!({ "topologyGen": 2 }),
    );
    let all = good(&platform, &fleet, Operation::ListNodes).await;
    assert_eq!(all.json(), json!({ "items": [own, other, reviewed] }));
    let request = || HttpEvent::new("GET", "/v1/nodes");
    let owners = ask(&platform, &owner(), request()).await;
    assert_eq!(owners.json(), json!({ "items": [own, reviewed] }));
    let strangers = ask(&platform, &stranger(), request()).await;
    assert_eq!(
        (strangers.status, strangers.json()),
        (200, json!({ "items": [] }))
    );
}

#[tokio::test]
async fn an_org_lists_its_reservations_whatever_their_nodes() {
    let (platform, fleet) = stage().await;
    let own = good(&platform, &fleet, Operation::ListOrgReservations).await;
    let shown = own.json();
    let items = shown["items"].as_array().unwrap();
    assert!(
        items.contains(&reservation(&fleet)),
        "as it is read by itself"
    );
    let listed = async |by: &Caller, query: &str| {
        let path = format!("/v1/orgs/{}/reservations{query}", by.org);
        let answer = ask(&platform, by, HttpEvent::new("GET", &path)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        let items = body["items"].as_array().unwrap();
        let ids = items.iter().map(|item| item["id"].as_str().unwrap());
        ids.filter(|id| *id == fleet.reservation).count()
    };
    for (by, role) in [
        (audience(), "audience"),
        (manager(), "manager"),
        (owner(), "owner"),
    ] {
        for other in ["audience", "manager", "owner"] {
            let query = format!("?role={other}");
            let expected = usize::from(other == role);
            assert_eq!(listed(&by, &query).await, expected, "{role} as {other}");
        }
        assert_eq!(listed(&by, "").await, 1);
        assert_eq!(listed(&by, "?status=active").await, 1);
        assert_eq!(listed(&by, "?status=cancelled").await, 0);
    }
    assert_eq!(listed(&stranger(), "").await, 0);
}

#[tokio::test]
async fn what_is_free_is_answered_by_model_and_tier() {
    let (platform, fleet) = stage().await;
    let free = |count: u32, nodes: u32, largest: u32| {
        let of_units = json!({ "gpus": count, "units": count });
        let of_nodes = json!({ "nodes": nodes, "largestVmGpus": largest });
        with(of_units, &of_nodes)
    };
    // Free in the pools: u04, u06, u07, and u01 of the other node. Nobody has released more than
    // the unit that is sold already.
    let pool = free(4, 2, 3);
    let expected = json!({ "items": [{
        "gpuModelId": GPU_MODEL,
        "free": { "community": pool, "spot": pool, "verified": pool },
        "nodes": 2,
    }] });
    let counted = good(&platform, &fleet, Operation::ListAvailability).await;
    assert_eq!(counted.json(), expected);
    good(&platform, &fleet, Operation::ReleaseUnits).await;
    let path = format!("/v1/gpu-availability?tier=spot&gpuModelId={GPU_MODEL}");
    let spot = ask(&platform, &stranger(), HttpEvent::new("GET", &path)).await;
    let expected = json!({ "items": [{
        "gpuModelId": GPU_MODEL, "free": { "spot": free(5, 2, 3) }, "nodes": 2,
    }] });
    assert_eq!(spot.json(), expected, "and the unit just released");
    let none = HttpEvent::new("GET", "/v1/gpu-availability?gpuModelId=unheard-of");
    let none = ask(&platform, &stranger(), none).await;
    assert_eq!((none.status, none.json()), (200, json!({ "items": [] })));
}

#[tokio::test]
async fn a_purchase_that_does_not_fit_says_what_would() {
    let (platform, _) = stage().await;
    let path = format!("/v1/orgs/{STRANGER_ORG}/vms/create");
    let body = json!({ "name": "w", "tier": "spot", "gpuModelId": GPU_MODEL, "gpuCount": 4 });
    let answer = ask(&platform, &stranger(), post(&path, &body)).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (409, "insufficient_capacity")
    );
    let expected = "no capacity: no free units of 4 GPUs on one node for sale at tier=spot; \
        largest free: 3 GPUs; nearest that fits: 3";
    assert_eq!(answer.field("error"), expected);
}

#[tokio::test]
async fn the_audit_trail_is_answered_as_a_chain() {
    let (platform, fleet) = stage().await;
    let answer = good(&platform, &fleet, Operation::ListAuditRecords)
        .await
        .json();
    let items = answer["items"].as_array().unwrap();
    let types: Vec<&str> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let expected = [
        "reservation.created",
        "reservation.released",
        "vm.placed",
        "reservation.reclaimed",
        "vm.condemned",
        "vm.placed",
        "vm.placed",
    ];
    assert_eq!(types, expected);
    let mut previous = json!("");
    for item in items {
        assert_eq!(item["prevHash"], previous);
        previous = item["hash"].clone();
        assert_eq!(previous.as_str().unwrap().len(), 64);
    }
    let reclaimed = &items[3];
    let expected = json!({
        "id": reclaimed["id"],
        "type": "reservation.reclaimed",
        "reservationId": fleet.reservation,
        "nodeId": NODE,
        "version": 4,
        "at": THEN,
        "actor": { "orgId": MANAGER_ORG, "keyId": "key-org-manager", "kind": "manager" },
        "requestId": reclaimed["requestId"],
        "unitIds": ["u01"],
        "vmIds": [fleet.dying_vm],
        "before": { "status": "active", "releasedUnitIds": ["u00", "u01"] },
        "after": { "status": "active", "releasedUnitIds": ["u00"] },
        "prevHash": items[2]["hash"],
        "hash": reclaimed["hash"],
    });
    assert_eq!(*reclaimed, expected);
    assert_eq!(items[0]["reason"], "hush: tenant of the year");
    assert!(items[0].get("before").is_none(), "left out, not null");
    assert!(is_uuid(reclaimed["requestId"].as_str().unwrap()));
}

#[tokio::test]
async fn no_success_body_has_a_null() {
    fn nulls(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(nulls),
            Value::Object(members) => members.values().any(nulls),
            _ => false,
        }
    }
    let (platform, fleet) = stage().await;
    let world = platform.store.world();
    for route in ROUTES.iter().filter(|r| good_status(r.operation) != 204) {
        let answer = good(&platform, &fleet, route.operation).await;
        assert!(
            !nulls(&answer.json()),
            "{} {}: {answer:?}",
            route.method,
            route.path
        );
        platform.store.tamper(|there| *there = world.clone());
    }
}
