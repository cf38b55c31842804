//! Keys of the machine: over the gateway, and over a restart.

use http::Method;
use serde_json::json;

use crate::support::{Platform, run};

#[tokio::test]
async fn a_key_is_made_used_and_revoked_over_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--memory", "--no-demo"]).await;
    let nobody = platform.client("manager").with_key("none");
    let health = nobody.get("/healthz").await.unwrap();
    assert_eq!(
        (health.status, health.body),
        (200, json!({ "status": "ok" }))
    );

    let manager = platform.client("manager");
    let keys = "/v1/orgs/neocloud/api-keys";
    let asked = json!({ "name": "build server", "role": "member" });
    let made = manager.post(&format!("{keys}/create"), Some(&asked)).await;
    let made = made.unwrap().body;
    let member = manager.with_key(made["key"].as_str().unwrap());
    let whoami = member.get("/v1/whoami").await.unwrap();
    assert_eq!(whoami.body["keyId"], made["id"], "{}", whoami.body);
    let one = format!("{keys}/{}", made["id"].as_str().unwrap());
    for (client, status) in [(&member, 403), (&manager, 204), (&manager, 204)] {
        let answer = client.send(Method::DELETE, &one, None, None).await.unwrap();
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    let listed = manager.get(keys).await.unwrap().body;
    assert!(listed["items"][0]["revokedAt"].is_string(), "{listed}");
    assert_eq!(platform.interrupt().await, Some(0));
}

#[tokio::test]
async fn whoever_takes_the_file_of_keys_away_puts_them_out_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--data", "d", "--no-demo"];
    let platform = Platform::start(folder.path(), &args).await;
    let old = platform.keys.clone();
    for (name, key) in &old {
        let printed = run(&["key", name, "--data", "d"], folder.path());
        assert_eq!(printed.stdout, format!("{key}\n").into_bytes(), "{name}");
    }
    assert_eq!(platform.interrupt().await, Some(0));
    std::fs::remove_file(folder.path().join("d/keys.json")).unwrap();

    let platform = Platform::start(folder.path(), &args).await;
    for (name, key) in old {
        let now = platform.client(&name);
        assert_eq!(now.get("/v1/whoami").await.unwrap().status, 200, "{name}");
        let then = now.with_key(&key).get("/v1/whoami").await.unwrap();
        assert_eq!(then.status, 401, "the old key of the {name}");
    }
    assert_eq!(platform.interrupt().await, Some(0));
}
