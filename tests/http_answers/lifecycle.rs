//! What callers are told of terms, topologies and reviews.

use domain::limits::TOPOLOGY_GEN_MAX;
use http_api::routes::Operation;
use serde_json::{Value, json};
use testkit::MemoryStore;
use testkit::events::HttpEvent;
use testkit::fixtures::{
    AUDIENCE_ORG, GPU_MODEL, MANAGER_ORG, NODE, OWNER_ORG, now, operator, owner,
};
use testkit::http::{Answer, Fleet, Platform, REVIEWED_NODE};

use crate::{LATER, THEN, ask, get, good, post, stage, with};

const TOMORROW: &str = "2026-07-02T12:00:00.000Z";
const DAY_MS: i64 = 86_400_000;

/// The reservation of the reviewed node as the contract shows one.
fn reviewed(fleet: &Fleet) -> Value {
    json!({
        "id": fleet.reviewed,
        "nodeId": REVIEWED_NODE,
        "reservedUnitIds": ["u00"],
        "releasedUnitIds": [],
        "allowedOrgIds": [AUDIENCE_ORG],
        "managingOrgIds": [MANAGER_ORG],
        "startsAt": THEN,
        "status": "needs-review",
        "topologyGen": 1,
        "createdAt": THEN,
        "updatedAt": THEN,
    })
}

async fn reaffirm(platform: &Platform<MemoryStore>, fleet: &Fleet, version: &str) -> Answer {
    let request = fleet.call(Operation::ReaffirmReservation);
    ask(platform, &operator(), request.header("If-Match", version)).await
}

/// Reports these units of the reviewed node.
async fn report(platform: &Platform<MemoryStore>, topology_gen: u64, units: Value) -> Answer {
    let path = format!("/v1/nodes/{REVIEWED_NODE}/topology");
    let body = json!({ "topologyGen": topology_gen, "units": units });
    ask(platform, &owner(), HttpEvent::new("PUT", &path).json(&body)).await
}

#[tokio::test]
async fn a_report_is_answered_with_the_node() {
    let (platform, _) = stage().await;
    let units = json!([{ "id": "u00", "gpus": 4 }, { "id": "u01" }]);
    let answer = report(&platform, 7, units).await;
    let expected = json!({
        "id": REVIEWED_NODE,
        "ownerOrgId": OWNER_ORG,
        "gpuModelId": GPU_MODEL,
        "topologyGen": 7,
        "units": [
            { "id": "u00", "gpus": 4, "state": "reserved",
              "reservationId": answer.json()["units"][0]["reservationId"] },
            { "id": "u01", "gpus": 1, "state": "free" },
        ],
        "createdAt": THEN,
        "updatedAt": LATER,
    });
    assert_eq!((answer.status, answer.json()), (200, expected));
    for topology_gen in [1_000_008, TOPOLOGY_GEN_MAX] {
        let ahead = report(&platform, topology_gen, json!([{ "id": "u00" }])).await;
        let told = (ahead.status, ahead.code());
        assert_eq!(told, (409, "limit_reached".to_owned()), "{topology_gen}");
        assert!(
            ahead.field("error").contains("at most 1000007"),
            "{ahead:?}"
        );
    }
    for topology_gen in [7, 6, 1] {
        let stale = report(&platform, topology_gen, json!([{ "id": "u00" }])).await;
        let told = (stale.status, stale.code());
        assert_eq!(told, (409, "stale_topology".to_owned()), "{topology_gen}");
        assert!(stale.field("error").contains("topologyGen 7"), "{stale:?}");
    }
}

#[tokio::test]
async fn a_review_ends_with_the_reservation_as_it_was() {
    let (platform, fleet) = stage().await;
    let path = format!("/v1/nodes/{REVIEWED_NODE}/reservations/{}", fleet.reviewed);
    let before = ask(&platform, &owner(), get(&path)).await;
    assert_eq!(before.json(), reviewed(&fleet));
    assert_eq!(before.header("etag"), "\"2\"");
    let stale = reaffirm(&platform, &fleet, "\"1\"").await;
    assert_eq!(
        (stale.status, stale.code()),
        (412, "version_mismatch".to_owned())
    );
    assert_eq!(stale.json()["current"], reviewed(&fleet));
    let done = reaffirm(&platform, &fleet, "\"2\"").await;
    let expected = with(
        reviewed(&fleet),
        &json!({ "status": "active", "topologyGen": 2, "updatedAt": LATER }),
    );
    assert_eq!((done.status, done.json()), (200, expected));
    assert_eq!(done.header("etag"), "\"3\"");
    let again = reaffirm(&platform, &fleet, "\"3\"").await;
    let told = (again.status, again.code());
    assert_eq!(told, (409, "reservation_not_in_review".to_owned()));
}

#[tokio::test]
async fn what_a_node_has_lost_is_named() {
    let (platform, fleet) = stage().await;
    assert_eq!(
        report(&platform, 3, json!([{ "id": "u09" }])).await.status,
        200
    );
    let refused = reaffirm(&platform, &fleet, "*").await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "units_lost".to_owned())
    );
    assert!(refused.field("error").ends_with(": u00"), "{refused:?}");
}

/// Reserves `u06` for this term.
async fn book(platform: &Platform<MemoryStore>, term: &Value) -> Answer {
    let body = json!({ "reservedUnitIds": ["u06"], "allowedOrgIds": [AUDIENCE_ORG] });
    let path = format!("/v1/nodes/{NODE}/reservations");
    ask(platform, &owner(), post(&path, &with(body, term))).await
}

#[tokio::test]
async fn a_booking_is_pending_until_its_term_begins() {
    let (platform, _) = stage().await;
    let made = book(&platform, &json!({ "startsAt": TOMORROW })).await;
    let expected = json!({
        "id": made.field("id"),
        "nodeId": NODE,
        "reservedUnitIds": ["u06"],
        "releasedUnitIds": [],
        "allowedOrgIds": [AUDIENCE_ORG],
        "managingOrgIds": [],
        "startsAt": TOMORROW,
        "status": "pending",
        "topologyGen": 1,
        "createdAt": LATER,
        "updatedAt": LATER,
    });
    assert_eq!((made.status, made.json()), (200, expected));
    let path = format!("/v1/nodes/{NODE}/reservations/{}", made.field("id"));
    let release = || post(&format!("{path}/release"), &json!({ "unitIds": ["u06"] }));
    let early = ask(&platform, &owner(), release()).await;
    let told = (early.status, early.code());
    assert_eq!(told, (409, "reservation_not_active".to_owned()));
    platform.clock.set(now().plus_ms(DAY_MS));
    let shown = ask(&platform, &owner(), get(&path)).await;
    assert_eq!(
        shown.field("status"),
        "active",
        "by the clock, and not written"
    );
    assert_eq!(shown.header("etag"), "\"1\"");
    // The version seen is good for the call, though the begin of the term comes in between.
    let done = ask(&platform, &owner(), release().header("If-Match", "\"1\"")).await;
    assert_eq!((done.status, done.header("etag")), (200, "\"3\""));
    assert_eq!(done.json()["releasedUnitIds"], json!(["u06"]));
}

#[tokio::test]
async fn units_that_are_taken_are_named_with_the_time_they_are_free_from() {
    let (platform, fleet) = stage().await;
    let first = book(&platform, &json!({ "endsAt": TOMORROW })).await;
    let clash = book(
        &platform,
        &json!({ "startsAt": "2026-07-02T11:59:59.999Z" }),
    )
    .await;
    let told = (clash.status, clash.code());
    assert_eq!(told, (409, "units_already_reserved".to_owned()));
    let expected = format!(
        "already reserved: u06 by {}; all of them are free from {TOMORROW}",
        first.field("id")
    );
    assert_eq!(clash.field("error"), expected);
    let next = book(&platform, &json!({ "startsAt": TOMORROW })).await;
    assert_eq!(next.status, 200, "back to back: {next:?}");
    let never = book(&platform, &json!({ "startsAt": "2026-07-03T00:00:00Z" })).await;
    assert!(
        never.field("error").contains("no time is known"),
        "{never:?}"
    );
    let listed = good(&platform, &fleet, Operation::ListReservations).await;
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_was_done_inside_a_term_is_never_shown_as_pending() {
    for verb in ["release", "reclaim"] {
        let mut told = Vec::new();
        // A call looks at the clock several times: the term begins between any two of them.
        for looks in 0..12 {
            let (platform, _) = stage().await;
            let starts = now().plus_ms((looks + 1) * 60_000);
            let made = book(&platform, &json!({ "startsAt": starts.to_string() })).await;
            let path = format!("/v1/nodes/{NODE}/reservations/{}", made.field("id"));
            let body = json!({ "unitIds": ["u06"] });
            platform.clock.set(now().plus_ms(60_000));
            platform.clock.step_ms(60_000);
            let call = post(&format!("{path}/{verb}"), &body);
            let answer = ask(&platform, &owner(), call).await;
            if answer.status == 200 {
                assert_eq!(answer.field("status"), "active", "{verb} {looks}");
            }
            told.push(answer.status);
        }
        assert!(
            told.contains(&200) && told.contains(&409),
            "{verb}: {told:?}"
        );
    }
}

#[tokio::test]
async fn a_reservation_made_for_now_is_active_however_long_the_call_takes() {
    let (platform, _) = stage().await;
    platform.clock.step_ms(60_000);
    let made = book(&platform, &json!({})).await;
    assert_eq!(
        (made.status, made.field("status")),
        (200, "active".to_owned())
    );
}
