//! A dry run against the reclaim that follows it, and which refusal comes first.

use app::auth::ApiKey;
use app::auth::{Permission, SecretKey};
use app::ports::{Commit, PutKey};
use serde_json::{Value, json};
use testkit::MemoryStore;
use testkit::events::HttpEvent;
use testkit::fixtures::{NODE, api_key, id, manager, now, secret, stranger};
use testkit::http::{Fleet, Platform, secret_of};

use crate::{LATER, ask, post, reservation, stage, with};

#[tokio::test]
async fn a_dry_run_says_what_the_reclaim_then_does() {
    let (platform, fleet) = stage().await;
    let path = format!(
        "/v1/nodes/{NODE}/reservations/{}/reclaim",
        fleet.reservation
    );
    let units = json!({ "unitIds": ["u02", "u00", "u01", "u03"] });
    let before = platform.store.world();
    let query = format!("{path}?dryRun=true");
    let by_query = ask(&platform, &manager(), post(&query, &units)).await;
    let in_body = with(units.clone(), &json!({ "dryRun": true }));
    let by_body = ask(&platform, &manager(), post(&path, &in_body)).await;
    assert_eq!(by_query.without_id(), by_body.without_id());
    assert!(
        platform.store.world() == before,
        "a dry run changes nothing"
    );
    let plan = by_body.json();
    let mut doomed = [&fleet.spot_vm, &fleet.dying_vm];
    doomed.sort();
    let more = json!({ "wouldTerminate": doomed, "wouldSkip": [fleet.tenant_vm] });
    assert_eq!(plan, with(reservation(&fleet), &more));
    let real = post(&path, &units).header("if-match", by_body.header("etag"));
    let done = ask(&platform, &manager(), real).await;
    let more = json!({ "terminated": plan["wouldTerminate"], "skipped": plan["wouldSkip"],
        "releasedUnitIds": [], "updatedAt": LATER });
    assert_eq!(done.json(), with(reservation(&fleet), &more));
    let stale = post(&path, &units).header("if-match", by_body.header("etag"));
    let refused = ask(&platform, &manager(), stale).await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (412, "version_mismatch")
    );
    let current = with(
        reservation(&fleet),
        &json!({ "releasedUnitIds": [], "updatedAt": LATER }),
    );
    assert_eq!(refused.json()["current"], current);
    assert_eq!(refused.header("etag"), done.header("etag"));
}

/// One of the steps that lead from a release with everything wrong to a right one.
struct Step {
    query: &'static str,
    real: bool,
    body: Value,
    key: Option<SecretKey>,
    headers: &'static [(&'static str, &'static str)],
    refusal: (u16, &'static str),
}

impl Step {
    fn request(&self, fleet: &Fleet) -> HttpEvent {
        let id = if self.real {
            &*fleet.reservation
        } else {
            "none"
        };
        let path = format!("/v1/nodes/{NODE}/reservations/{id}/release{}", self.query);
        let request = post(&path, &self.body);
        let request = self.key.iter().fold(request, HttpEvent::by);
        let headers = self.headers.iter();
        headers.fold(request, |request, (name, value)| {
            request.header(name, value)
        })
    }
}

const OLD: (&str, &str) = ("if-match", "\"1\"");
const TEXT: (&str, &str) = ("content-type", "text/plain");

/// A key that may not release.
async fn powerless(platform: &Platform<MemoryStore>) -> SecretKey {
    let secret = secret(77);
    let key = ApiKey {
        id: id("key-powerless"),
        ..api_key(&manager(), &[Permission::VmsRead])
    };
    let put = platform.store.put_key(&secret.digest(), &key).await;
    assert_eq!(put, Ok(Commit::Done));
    secret
}

/// A release past the term with everything wrong at once, mended one thing after the other: each
/// time the next refusal of the documented order answers.
#[tokio::test]
async fn refusals_come_in_their_order_of_precedence() {
    let (platform, fleet) = stage().await;
    let (powerless, key) = (powerless(&platform).await, secret_of(&manager()));
    let large = json!({ "unitIds": [" ".repeat(70_000)] });
    let (nonsense, foreign) = (
        json!({ "unitIds": 5 }),
        json!({ "unitIds": ["u99", "u01"] }),
    );
    let step = |query, real, body: &Value, key: Option<&SecretKey>, headers, refusal| Step {
        query,
        real,
        body: body.clone(),
        key: key.cloned(),
        headers,
        refusal,
    };
    let all: &[_] = &[TEXT, OLD];
    let key = Some(&key);
    let mut steps = vec![
        step("?x=1", false, &large, None, all, (401, "unauthorized")),
        step(
            "?x=1",
            false,
            &large,
            Some(&powerless),
            all,
            (404, "not_found"),
        ),
        step("?x=1", false, &large, key, all, (400, "bad_request")),
        step("", false, &large, key, all, (413, "body_too_large")),
        step(
            "",
            false,
            &nonsense,
            key,
            all,
            (415, "unsupported_media_type"),
        ),
        step("", false, &nonsense, key, &[OLD], (400, "bad_request")),
        step("", false, &foreign, key, &[OLD], (404, "not_found")),
        step("", true, &foreign, key, &[OLD], (412, "version_mismatch")),
        step(
            "",
            true,
            &foreign,
            key,
            &[],
            (409, "reservation_not_active"),
        ),
    ];
    platform.clock.set(now().plus_ms(3_600_000));
    let before = platform.store.world();
    assert_refused(&platform, &fleet, &steps).await;
    platform.clock.set(now());
    let draining = json!({ "unitIds": ["u01"] });
    steps = vec![
        step("", true, &foreign, key, &[], (422, "unit_not_reserved")),
        step("", true, &draining, key, &[], (409, "unit_draining")),
    ];
    assert_refused(&platform, &fleet, &steps).await;
    assert!(platform.store.world() == before, "nothing changed");
    let right = step(
        "",
        true,
        &json!({ "unitIds": ["u03"] }),
        key,
        &[],
        (200, ""),
    );
    assert_refused(&platform, &fleet, &[right]).await;
}

async fn assert_refused(platform: &Platform<MemoryStore>, fleet: &Fleet, steps: &[Step]) {
    for (place, step) in steps.iter().enumerate() {
        let answer = platform.call(step.request(fleet)).await;
        let (status, code) = step.refusal;
        assert_eq!(
            (answer.status, &*answer.code()),
            (status, code),
            "{place}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn the_path_and_its_methods_come_before_the_key() {
    let (platform, fleet) = stage().await;
    let path = format!(
        "/v1/nodes/{NODE}/reservations/{}/release",
        fleet.reservation
    );
    let answer = platform
        .call(HttpEvent::new("GET", &format!("{path}?x=1")))
        .await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (405, "method_not_allowed")
    );
    let answer = platform
        .call(HttpEvent::new("GET", &format!("{path}s?x=1")))
        .await;
    assert_eq!((answer.status, &*answer.code()), (404, "not_found"));
}

#[tokio::test]
async fn another_orgs_path_comes_before_what_is_asked_there() {
    let (platform, _) = stage().await;
    let list = HttpEvent::new("GET", "/v1/orgs/org-manager/vms?x=1");
    let create = post("/v1/orgs/org-manager/vms/create", &json!({ "name": 5 }));
    let keys = HttpEvent::new("GET", "/v1/orgs/org-manager/api-keys?x=1");
    let key = post(
        "/v1/orgs/org-manager/api-keys/create",
        &json!({ "role": 5 }),
    );
    for event in [list, create, keys, key] {
        let answer = platform.call(event.by(&secret_of(&stranger()))).await;
        let refusal = (answer.status, &*answer.code());
        assert_eq!(refusal, (403, "forbidden"), "{answer:?}");
    }
}
