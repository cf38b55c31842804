//! What callers get: the headers of every answer, every success body field by field as the contract
//! has them, pages, dry runs against reclaims, and which refusal comes first.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bodies;
mod keys;
mod lifecycle;
mod lists;
mod order;

use std::collections::BTreeSet;

use domain::Caller;
use http_api::routes::{Operation, ROUTES};
use serde_json::{Value, json};
use testkit::engine::Engine;
use testkit::events::HttpEvent;
use testkit::fixtures::{AUDIENCE_ORG, MANAGER_ORG, NODE, now, operator};
use testkit::http::{Answer, Fleet, Platform, good_status, secret_of};
use testkit::{MemoryStore, Store, TestClock};

/// When the fleet was built, and when the calls are made.
const THEN: &str = "2026-07-01T12:00:00.000Z";

const LATER: &str = "2026-07-01T12:00:01.000Z";

async fn stage() -> (Platform<MemoryStore>, Fleet) {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    platform.clock.set(now().plus_ms(1_000));
    (platform, fleet)
}

async fn ask<S: Store + Clone + 'static>(
    platform: &Platform<S>,
    by: &Caller,
    request: HttpEvent,
) -> Answer {
    platform.call(request.by(&secret_of(by))).await
}

async fn good<S: Store + Clone + 'static>(
    platform: &Platform<S>,
    fleet: &Fleet,
    operation: Operation,
) -> Answer {
    let answer = ask(platform, &operator(), fleet.call(operation)).await;
    let status = good_status(operation);
    assert_eq!(answer.status, status, "{operation:?}: {answer:?}");
    answer
}

fn post(path: &str, body: &Value) -> HttpEvent {
    HttpEvent::new("POST", path).json(body)
}

fn get(path: &str) -> HttpEvent {
    HttpEvent::new("GET", path)
}

/// The fleet's reservation as the contract shows one.
fn reservation(fleet: &Fleet) -> Value {
    json!({
        "id": fleet.reservation,
        "nodeId": NODE,
        "reservedUnitIds": ["u00", "u01", "u02", "u03"],
        "releasedUnitIds": ["u00"],
        "allowedOrgIds": [AUDIENCE_ORG],
        "managingOrgIds": [MANAGER_ORG],
        "startsAt": THEN,
        "endsAt": "2026-07-01T13:00:00.000Z",
        "status": "active",
        "topologyGen": 1,
        "contractRef": "contract-7",
        "reason": "hush: tenant of the year",
        "createdAt": THEN,
        "updatedAt": THEN,
    })
}

fn with(mut body: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

/// Whether this has the form of a UUID of version 7.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    lengths == [8, 4, 4, 4, 12] && digits && parts[2].starts_with('7')
}

#[tokio::test]
async fn every_success_has_the_headers_of_the_contract() {
    let (platform, fleet) = stage().await;
    let world = platform.store.world();
    let mut ids = BTreeSet::new();
    for route in ROUTES {
        let request = fleet.call(route.operation).header("x-request-id", "mine");
        let answer = ask(&platform, &operator(), request).await;
        platform.store.tamper(|there| *there = world.clone());
        assert_eq!(
            answer.status,
            good_status(route.operation),
            "{} {}: {answer:?}",
            route.method,
            route.path
        );
        let mut names: Vec<&str> = answer.headers.keys().map(String::as_str).collect();
        // Exactly the answers that are one reservation have a version.
        names.retain(|name| *name != "etag");
        // Exactly the answers with a body say what it is.
        let body = answer.status != 204;
        assert_eq!(body, !answer.text.is_empty(), "{}", route.path);
        let expected: &[&str] = match body {
            true => &["cache-control", "content-type", "x-request-id"],
            false => &["cache-control", "x-request-id"],
        };
        assert_eq!(names, expected);
        let of_reservation = answer.json().get("reservedUnitIds").is_some();
        assert_eq!(
            answer.headers.contains_key("etag"),
            of_reservation,
            "{}",
            route.path
        );
        if body {
            assert_eq!(answer.header("content-type"), "application/json");
        }
        assert_eq!(answer.header("cache-control"), "no-store");
        let id = answer.header("x-request-id").to_owned();
        assert!(is_uuid(&id), "{id}: our own, not the caller's");
        assert!(ids.insert(id), "a fresh one for each call");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_real_store_the_answers_are_the_same() {
    let engine = Engine::start().await;
    let real = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&real).await;
    real.clock.set(now().plus_ms(1_000));
    let (model, same) = stage().await;
    assert_eq!(fleet, same, "the same ids on both");
    // In an order in which each still goes through after those before it.
    let mut routes: Vec<Operation> = ROUTES.iter().map(|route| route.operation).collect();
    routes.sort_by_key(|operation| *operation == Operation::EndReservation);
    for operation in routes {
        let expected = good(&model, &same, operation).await;
        assert_eq!(
            good(&real, &fleet, operation).await,
            expected,
            "{operation:?}"
        );
    }
}
