//! The binary, run as the Lambda service runs it.

use app::auth::SecretKey;
use serde_json::{Value, json};
use testkit::events::{body, status};
use testkit::fixtures::{operator, owner};
use testkit::stage::{
    Stage, assert_connects_at_start, assert_http_init, assert_outlives_bad_events, recorded,
};

const BINARY: &str = env!("CARGO_BIN_EXE_relet-keys");
const CREATE: &str = include_str!("create.json");
const LIST: &str = include_str!("list.json");
const REVOKE: &str = include_str!("revoke.json");
const WHOAMI: &str = include_str!("whoami.json");

#[tokio::test]
async fn it_makes_lists_and_revokes_and_refuses_and_outlives_what_is_no_event() {
    let stage = Stage::bare().await;
    // Kept for no time at all, a revoked key is refused at once.
    let mut function = stage.function(BINARY, &[("RELET_KEY_TTL_MS", "0")]).await;

    let roleless = function.invoke(&recorded(CREATE, &owner())).await.unwrap();
    assert_eq!(
        (status(&roleless), &body(&roleless)["code"]),
        (403, &json!("forbidden"))
    );
    let made = function.invoke(&recorded(CREATE, &operator())).await;
    let made = made.unwrap();
    assert_eq!(status(&made), 200, "{made}");
    let secret = body(&made)["key"].as_str().unwrap().to_owned();
    assert!(SecretKey::parse(&secret).is_some(), "it has a checksum");
    let again = function.invoke(&recorded(CREATE, &operator())).await;
    assert_ne!(body(&again.unwrap())["key"], secret, "each is random");

    assert_outlives_bad_events(&mut function).await;

    let listed = function.invoke(&recorded(LIST, &operator())).await.unwrap();
    let listed = body(&listed);
    let names: Vec<&Value> = listed["items"].as_array().unwrap().iter().collect();
    let names: Vec<&str> = names.iter().filter_map(|k| k["name"].as_str()).collect();
    assert_eq!(
        names,
        ["build server", "build server", "the key of org-owner"]
    );
    assert!(!listed.to_string().contains(&secret), "{listed}");

    let alive = function.invoke(&recorded(WHOAMI, &owner())).await.unwrap();
    assert_eq!(body(&alive)["keyId"], "key-org-owner", "{alive}");
    let gone = function.invoke(&recorded(REVOKE, &operator())).await;
    let gone = gone.unwrap();
    assert_eq!((status(&gone), body(&gone)), (204, Value::Null), "{gone}");
    let dead = function.invoke(&recorded(WHOAMI, &owner())).await.unwrap();
    assert_eq!(status(&dead), 401);
}

#[tokio::test]
async fn it_does_not_start_without_its_configuration() {
    assert_http_init(BINARY).await;
}

#[tokio::test]
async fn its_connection_is_open_before_its_first_call() {
    let (stage, event) = (Stage::set().await, recorded(LIST, &operator()));
    assert_connects_at_start(&stage, BINARY, &[], &event).await;
}
