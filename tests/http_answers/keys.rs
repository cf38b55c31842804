//! The bodies about keys, field by field.

use app::auth::{ApiKey, SecretKey};
use app::grant::Role;
use app::ports::{Commit, PutKey};
use http_api::routes::Operation;
use serde_json::{Value, json};
use testkit::MemoryStore;
use testkit::fixtures::{
    AUDIENCE_ORG, OPERATOR_ORG, audience, id, now, operator, owner, role_key, secret,
};
use testkit::http::Platform;

use crate::{LATER, THEN, ask, get, good, is_uuid, post, stage, with};

const OF_ORG: &str = "/v1/orgs/org-audience/api-keys";

/// The key that the audience has in a fleet.
fn own() -> Value {
    json!({
        "id": "key-org-audience",
        "organizationId": AUDIENCE_ORG,
        "name": "the key of org-audience",
        "keyPrefix": "or_Prefix",
        "permissions": ["node.agent", "reservation.capacity", "vms:read", "vms:write"],
        "platformOperator": false,
        "createdAt": THEN,
    })
}

async fn make(platform: &Platform<MemoryStore>, body: &Value) -> Value {
    let answer = ask(
        platform,
        &operator(),
        post(&format!("{OF_ORG}/create"), body),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_new_key_is_answered_with_its_secret_and_listed_without() {
    let (platform, fleet) = stage().await;
    let asked = json!({ "name": "build server", "role": "member", "expiresInSeconds": 60 });
    let by_role = make(&platform, &asked).await;
    let permissions = json!(["vms:write", "node.agent"]);
    let asked = json!({ "name": "\u{fc}", "permissions": permissions, "platformOperator": true });
    let by_permissions = make(&platform, &asked).await;
    let mut listed = Vec::new();
    let more = [
        json!({ "name": "build server", "role": "member",
            "permissions": ["vms:read", "vms:write"], "platformOperator": false,
            "expiresAt": "2026-07-01T12:01:01.000Z" }),
        json!({ "name": "\u{fc}", "permissions": ["node.agent", "vms:write"],
            "platformOperator": true }),
    ];
    for (made, more) in [by_role, by_permissions].into_iter().zip(more) {
        let key = made["key"].as_str().unwrap();
        assert!(SecretKey::parse(key).is_some(), "{key}");
        assert!(is_uuid(made["id"].as_str().unwrap()), "{made}");
        let shown = json!({ "id": made["id"], "organizationId": AUDIENCE_ORG,
            "keyPrefix": &key[..9], "createdAt": LATER });
        let shown = with(shown, &more);
        assert_eq!(made, with(shown.clone(), &json!({ "key": key })));
        listed.push(shown);
    }
    listed.push(own());
    let list = good(&platform, &fleet, Operation::ListKeys).await;
    assert_eq!(list.json(), json!({ "items": listed }));
}

#[tokio::test]
async fn a_revoked_key_is_listed_with_the_instant_of_its_first_revocation() {
    let (platform, fleet) = stage().await;
    for _ in 0..2 {
        let gone = good(&platform, &fleet, Operation::RevokeKey).await;
        assert_eq!((gone.status, &*gone.text), (204, ""));
        platform.clock.advance_ms(1_000);
    }
    let list = good(&platform, &fleet, Operation::ListKeys).await;
    let revoked = with(own(), &json!({ "revokedAt": LATER }));
    assert_eq!(list.json(), json!({ "items": [revoked] }));
}

#[tokio::test]
async fn who_calls_is_answered_by_the_key() {
    let (platform, _) = stage().await;
    let answer = ask(&platform, &owner(), get("/v1/whoami")).await;
    let expected = json!({
        "organizationId": "org-owner",
        "keyId": "key-org-owner",
        "permissions": ["node.agent", "reservation.capacity", "vms:read", "vms:write"],
        "platformOperator": false,
    });
    assert_eq!(answer.json(), expected);
    let key = ApiKey {
        id: id("key-viewer"),
        expires_at: Some(now().plus_ms(60_000)),
        ..role_key(&operator(), Role::Viewer)
    };
    let put = platform.store.put_key(&secret(70).digest(), &key).await;
    assert_eq!(put, Ok(Commit::Done));
    let answer = platform.call(get("/v1/whoami").by(&secret(70))).await;
    let expected = json!({
        "organizationId": OPERATOR_ORG,
        "keyId": "key-viewer",
        "role": "viewer",
        "permissions": ["vms:read"],
        "platformOperator": true,
        "expiresAt": "2026-07-01T12:01:00.000Z",
    });
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn the_platform_says_that_it_is_there() {
    let (platform, _) = stage().await;
    let answer = platform.call(get("/healthz")).await;
    assert_eq!((answer.status, &*answer.text), (200, r#"{"status":"ok"}"#));
}

#[tokio::test]
async fn keys_are_listed_whole_and_in_the_order_they_were_made_in() {
    let (platform, _) = stage().await;
    let mut made = Vec::new();
    for number in 0..6 {
        let asked = json!({ "name": format!("key {number}"), "role": "viewer" });
        made.push(
            make(&platform, &asked).await["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    made.push(audience().key.to_string());
    for limit in 1..=8 {
        let found = crate::lists::pages(&platform, &operator(), OF_ORG, limit, "id").await;
        assert_eq!(found, made, "by {limit}");
    }
}
