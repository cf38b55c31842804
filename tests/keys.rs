//! Keys and roles: who makes, lists and revokes which keys; what a role allows; that a revoked key
//! is out of use in time, and that a mistyped one costs nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use app::auth::{ApiKey, KeyCache, Permission, SecretKey, authenticate};
use app::grant::{Grant, Keeper, Role};
use app::keys::{self, KeyRequest};
use app::ports::{Commit, Ids, LoadKey, NoRandom, PutKey, Random, RevokeKey, Write};
use app::{Context, Error};
use domain::Caller;
use serde_json::{Value, json};
use testkit::engine::Engine;
use testkit::events::HttpEvent;
use testkit::fixtures::{api_key, id, manager, now, operator, role_key, secret};
use testkit::http::{Answer, Platform};
use testkit::{MemoryStore, SeededIds, Store, TestClock};

const OWN: &str = "/v1/orgs/org-manager/api-keys";

/// Who calls: all but the last two of one org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Owner,
    Admin,
    Member,
    Viewer,
    Permissions,
    OwnerElsewhere,
    Operator,
}

impl Who {
    const ALL: [Who; 7] = [
        Who::Owner,
        Who::Admin,
        Who::Member,
        Who::Viewer,
        Who::Permissions,
        Who::OwnerElsewhere,
        Who::Operator,
    ];

    fn secret(self) -> SecretKey {
        let place = Who::ALL.iter().position(|who| *who == self).unwrap();
        secret(u8::try_from(100 + place).unwrap())
    }

    fn key(self) -> ApiKey {
        let of = |caller: Caller| Caller {
            key: id(&format!("key-{self:?}")),
            ..caller
        };
        let elsewhere = Caller {
            org: id("org-elsewhere"),
            ..manager()
        };
        match self {
            Who::Owner => role_key(&of(manager()), Role::Owner),
            Who::Admin => role_key(&of(manager()), Role::Admin),
            Who::Member => role_key(&of(manager()), Role::Member),
            Who::Viewer => role_key(&of(manager()), Role::Viewer),
            Who::Permissions => api_key(&of(manager()), &Permission::ALL),
            Who::OwnerElsewhere => role_key(&of(elsewhere), Role::Owner),
            Who::Operator => role_key(&of(operator()), Role::Viewer),
        }
    }
}

/// A key of each kind over this store.
async fn cast<S: Store + Clone + 'static>(store: S) -> Platform<S> {
    let platform = Platform::new(store, TestClock::default(), 1);
    for who in Who::ALL {
        let digest = who.secret().digest();
        let put = platform.store.put_key(&digest, &who.key()).await;
        assert_eq!(put, Ok(Commit::Done));
    }
    platform
}

async fn in_memory() -> Platform<MemoryStore> {
    cast(MemoryStore::default()).await
}

async fn ask<S: Store + Clone + 'static>(
    platform: &Platform<S>,
    who: Who,
    request: HttpEvent,
) -> Answer {
    platform.call(request.by(&who.secret())).await
}

async fn make<S: Store + Clone + 'static>(
    platform: &Platform<S>,
    who: Who,
    body: &Value,
) -> Answer {
    let request = HttpEvent::new("POST", &format!("{OWN}/create")).json(body);
    ask(platform, who, request).await
}

async fn revoke<S: Store + Clone + 'static>(platform: &Platform<S>, who: Who, key: &str) -> Answer {
    let request = HttpEvent::new("DELETE", &format!("{OWN}/{key}"));
    ask(platform, who, request).await
}

async fn status_of(platform: &Platform<MemoryStore>, secret: &SecretKey) -> u16 {
    let request = HttpEvent::new("GET", "/v1/whoami").by(secret);
    platform.call(request).await.status
}

/// The kinds of keys there are, with who may make and revoke them.
fn kinds() -> Vec<(Value, Vec<Who>)> {
    let admins = vec![Who::Owner, Who::Admin, Who::Operator];
    let all = json!(Permission::ALL.map(Permission::as_str));
    vec![
        (json!({ "role": "owner" }), vec![Who::Owner, Who::Operator]),
        (json!({ "role": "admin" }), admins.clone()),
        (json!({ "role": "member" }), admins.clone()),
        (json!({ "role": "viewer" }), admins.clone()),
        (json!({ "permissions": all }), admins.clone()),
        (
            json!({ "role": "viewer", "platformOperator": false }),
            admins,
        ),
        (
            json!({ "role": "viewer", "platformOperator": true }),
            vec![Who::Operator],
        ),
    ]
}

fn assert_allowed(answer: &Answer, allowed: bool, good: u16, what: &str) {
    let expected = match allowed {
        true => (good, ""),
        false => (403, "forbidden"),
    };
    let got = (answer.status, answer.code());
    assert_eq!(
        got,
        (expected.0, expected.1.to_owned()),
        "{what}: {answer:?}"
    );
}

/// Every kind of key is made and revoked by exactly those who may; a refusal changes nothing.
async fn kept_by_those_who_may<S: Store + Clone + 'static>(platform: &Platform<S>) {
    for (mut body, allowed) in kinds() {
        body["name"] = json!("k");
        for who in Who::ALL {
            let what = format!("{body} by {who:?}");
            let made = make(platform, who, &body).await;
            assert_allowed(&made, allowed.contains(&who), 200, &what);
            let by_operator = make(platform, Who::Operator, &body).await;
            let key = by_operator.field("id");
            let revoked = revoke(platform, who, &key).await;
            assert_allowed(&revoked, allowed.contains(&who), 204, &what);
            let secret = SecretKey::parse(&by_operator.field("key")).unwrap();
            let stored = platform.store.load_key(&secret.digest()).await.unwrap();
            let gone = stored.unwrap().revoked_at.is_some();
            assert_eq!(gone, allowed.contains(&who), "{what}");
        }
    }
}

#[tokio::test]
async fn keys_are_made_and_revoked_by_those_who_may() {
    kept_by_those_who_may(&in_memory().await).await;
}

#[tokio::test]
async fn over_the_real_store_they_are_the_same() {
    let engine = Engine::start().await;
    kept_by_those_who_may(&cast(engine.store()).await).await;
}

#[tokio::test]
async fn keys_are_listed_to_owners_admins_and_operators() {
    let platform = in_memory().await;
    for who in Who::ALL {
        let answer = ask(&platform, who, HttpEvent::new("GET", OWN)).await;
        let allowed = matches!(who, Who::Owner | Who::Admin | Who::Operator);
        assert_allowed(&answer, allowed, 200, &format!("{who:?}"));
        if allowed {
            let count = answer.json()["items"].as_array().map(Vec::len);
            assert_eq!(count, Some(5), "those of the org: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_key_that_is_not_there_is_404_and_one_revoked_already_is_204() {
    let platform = in_memory().await;
    for who in [Who::Owner, Who::Operator] {
        let answer = revoke(&platform, who, "key-none").await;
        assert_eq!((answer.status, &*answer.code()), (404, "not_found"));
        // It is there, but not in this org.
        let answer = revoke(&platform, who, "key-OwnerElsewhere").await;
        assert_eq!((answer.status, &*answer.code()), (404, "not_found"));
        for _ in 0..2 {
            let answer = revoke(&platform, who, "key-Member").await;
            assert_eq!((answer.status, &*answer.text), (204, ""));
        }
    }
}

#[tokio::test]
async fn a_key_may_revoke_itself_and_is_out_of_use_then() {
    let platform = in_memory().await;
    for who in [Who::Owner, Who::Admin] {
        let answer = revoke(&platform, who, &format!("key-{who:?}")).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        assert_eq!(status_of(&platform, &who.secret()).await, 401);
    }
    let asked = json!({ "name": "a way back", "role": "owner" });
    let made = make(&platform, Who::Operator, &asked).await;
    assert_eq!(made.status, 200, "an operator opens the org again");
}

#[tokio::test]
async fn a_made_key_does_what_it_was_given_and_until_it_ends() {
    let platform = in_memory().await;
    let reads = |secret: &SecretKey| {
        let request = HttpEvent::new("GET", "/v1/orgs/org-manager/vms");
        platform.call(request.by(secret))
    };
    for (grant, expected) in [
        (json!({ "role": "viewer" }), 200),
        (json!({ "permissions": ["vms:write"] }), 403),
    ] {
        let mut asked = grant;
        asked["name"] = json!("k");
        asked["expiresInSeconds"] = json!(60);
        let made = make(&platform, Who::Admin, &asked).await;
        let secret = SecretKey::parse(&made.field("key")).unwrap();
        platform.clock.set(now().plus_ms(59_999));
        assert_eq!(reads(&secret).await.status, expected, "{asked}");
        platform.clock.set(now().plus_ms(60_000));
        assert_eq!(reads(&secret).await.status, 401, "{asked}");
        platform.clock.set(now());
    }
    let longest = json!({ "name": "k", "role": "viewer", "expiresInSeconds": 315_360_000 });
    let made = make(&platform, Who::Admin, &longest).await;
    assert_eq!(made.field("expiresAt"), "2036-06-28T12:00:00.000Z");
}

/// The answer of a call that may come again is kept, which a secret must not be.
#[tokio::test]
async fn making_a_key_is_no_call_that_may_come_again() {
    let platform = in_memory().await;
    let before = platform.store.world();
    let asked = json!({ "name": "k", "role": "member" });
    let request = HttpEvent::new("POST", &format!("{OWN}/create")).json(&asked);
    let request = request.header("idempotency-key", "once");
    let answer = ask(&platform, Who::Owner, request).await;
    assert_eq!((answer.status, &*answer.code()), (400, "bad_request"));
    assert!(platform.store.world() == before);
}

/// A machine without random bytes.
struct NoBytes(SeededIds);

impl Ids for NoBytes {
    fn uuid(&self) -> String {
        self.0.uuid()
    }
}

impl Random for NoBytes {
    fn random(&self) -> Result<[u8; 32], NoRandom> {
        Err(NoRandom("none".to_owned()))
    }
}

#[tokio::test]
async fn without_random_bytes_no_key_is_made() {
    let platform = in_memory().await;
    let before = platform.store.world();
    let fresh = NoBytes(SeededIds::new(1));
    let by = Who::Operator.secret();
    let header = format!("Bearer {}", by.reveal());
    let context = Context {
        principal: authenticate(&platform.store, Some(&header), now())
            .await
            .unwrap(),
        request_id: fresh.uuid(),
    };
    let request = KeyRequest {
        org: manager().org,
        name: "k".to_owned(),
        grant: Grant::Role(Role::Viewer),
        operator: false,
        life_seconds: None,
    };
    let (store, clock) = (&platform.store, &platform.clock);
    let made = keys::create(store, clock, &fresh, &context, request).await;
    assert!(matches!(made, Err(Error::Bug(_))), "{made:?}");
    assert!(platform.store.world() == before);
}

#[tokio::test]
async fn roles_stand_for_the_permissions_of_the_contract() {
    let platform = in_memory().await;
    let all = json!([
        "node.agent",
        "reservation.capacity",
        "vms:read",
        "vms:write"
    ]);
    let cases = [
        (Who::Owner, json!("owner"), all.clone()),
        (Who::Admin, json!("admin"), all.clone()),
        (
            Who::Member,
            json!("member"),
            json!(["vms:read", "vms:write"]),
        ),
        (Who::Viewer, json!("viewer"), json!(["vms:read"])),
        (Who::Permissions, Value::Null, all),
    ];
    for (who, role, permissions) in cases {
        let answer = ask(&platform, who, HttpEvent::new("GET", "/v1/whoami")).await;
        let shown = answer.json();
        let got = (&shown["role"], &shown["permissions"]);
        assert_eq!(got, (&role, &permissions), "{who:?}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_kept_for_five_seconds_at_most_where_it_is_kept_at_all() {
    for (ttl_ms, kept_ms) in [(0, 0), (2_000, 2_000), (5_000, 5_000), (60_000, 5_000)] {
        let (store, clock) = (MemoryStore::default(), TestClock::default());
        let (digest, key) = (Who::Member.secret().digest(), Who::Member.key());
        assert_eq!(store.put_key(&digest, &key).await, Ok(Commit::Done));
        let cache = KeyCache::new(store.clone(), clock.clone(), ttl_ms);
        let alive = cache.load_key(&digest).await;
        assert_eq!(alive, Ok(Some(key.clone())));
        let revoked = store.revoke_key(&key.org, &key.id, Keeper::Operator, now());
        assert!(matches!(revoked.await, Ok(Write::Done(_))));
        if kept_ms > 0 {
            clock.set(now().plus_ms(kept_ms - 1));
            let still = cache.load_key(&digest).await;
            assert_eq!(still, Ok(Some(key)), "{ttl_ms}");
        }
        clock.set(now().plus_ms(kept_ms));
        let gone = cache.load_key(&digest).await.unwrap().unwrap();
        assert!(gone.revoked_at.is_some(), "{ttl_ms}");
    }
}

#[tokio::test]
async fn a_mistyped_key_is_refused_before_anything_is_read() {
    let platform = in_memory().await;
    let good = Who::Owner.secret();
    let mut typed = Vec::new();
    for place in 3..good.reveal().len() {
        for other in ["x", "7", "Q"] {
            let mut wrong = good.reveal().to_owned();
            wrong.replace_range(place..=place, other);
            typed.push(wrong);
        }
        // Two characters in each other's place, and one left out.
        let mut chars: Vec<char> = good.reveal().chars().collect();
        let before = place - 1;
        if before > 2 {
            chars.swap(before, place);
            typed.push(chars.iter().collect());
        }
        chars.remove(place);
        typed.push(chars.into_iter().collect());
    }
    typed.retain(|wrong| wrong != good.reveal());
    assert!(typed.len() > 150, "{}", typed.len());
    let _ = platform.store.take_calls();
    for wrong in typed {
        let header = format!("Bearer {wrong}");
        let request = HttpEvent::new("GET", "/v1/whoami").header("authorization", &header);
        let answer = platform.call(request).await;
        let got = (answer.status, platform.store.take_calls());
        assert_eq!(got, (401, 0), "{wrong}");
    }
    assert_eq!(status_of(&platform, &good).await, 200);
    assert_eq!(platform.store.take_calls(), 1, "one read for a good one");
}
