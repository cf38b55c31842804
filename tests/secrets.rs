//! The secret of a key is in the one answer that makes it, and nowhere else: not in a log, whatever
//! is logged, and not in the `Debug` of what holds it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::sync::{Arc, Mutex};

use app::auth::{ApiKey, Permission, SecretKey};
use app::grant::Role;
use app::keys::MadeKey;
use app::ports::{Commit, PutKey};
use http_api::endpoint::Reply;
use http_api::view::MadeKeyView;
use serde_json::json;
use testkit::TestClock;
use testkit::engine::Engine;
use testkit::events::HttpEvent;
use testkit::fixtures::{self, manager};
use testkit::http::Platform;

#[test]
fn what_holds_a_secret_does_not_show_it() {
    let secret = fixtures::secret(9);
    let made = MadeKey {
        key: ApiKey {
            prefix: secret.prefix().to_owned(),
            ..fixtures::api_key(&manager(), &Permission::ALL)
        },
        secret: secret.clone(),
    };
    let view = MadeKeyView::of(&made);
    let reply = Reply::new(&view).unwrap();
    assert!(
        reply
            .body
            .as_ref()
            .unwrap()
            .to_string()
            .contains(secret.reveal())
    );
    let shown = [
        format!("{secret:?}"),
        format!("{made:?}"),
        format!("{view:?}"),
        format!("{reply:?}"),
        format!("{:?}", Some(&secret)),
    ];
    for text in shown {
        assert_hides(&text, &secret);
    }
}

/// Fails if a text holds more of a secret than its prefix.
fn assert_hides(text: &str, secret: &SecretKey) {
    let rest = secret.reveal().strip_prefix(secret.prefix()).unwrap();
    for part in rest.as_bytes().windows(8) {
        let part = str::from_utf8(part).unwrap();
        assert!(!text.contains(part), "{part} of a secret in {text}");
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// With everything logged that the platform and the SDK under it have to say, no secret is.
#[tokio::test]
async fn no_secret_is_logged_whatever_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // For the whole process: this is its only test that logs.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let caller = fixtures::secret(1);
    let key = fixtures::role_key(&manager(), Role::Owner);
    let put = platform.store.put_key(&caller.digest(), &key).await;
    assert_eq!(put, Ok(Commit::Done));
    let keys = "/v1/orgs/org-manager/api-keys";
    let asked = json!({ "name": "k", "role": "member" });
    let create = HttpEvent::new("POST", &format!("{keys}/create")).json(&asked);
    let made = platform.call(create.by(&caller)).await;
    let secret = SecretKey::parse(&made.field("key")).unwrap();
    let one = format!("{keys}/{}", made.field("id"));
    for (method, path, by, status) in [
        ("GET", "/v1/whoami", &secret, 200),
        ("GET", keys, &caller, 200),
        ("DELETE", &*one, &caller, 204),
        ("GET", "/v1/whoami", &secret, 401),
    ] {
        let answer = platform.call(HttpEvent::new(method, path).by(by)).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for operation in ["CreateKey", "GetCaller", "ListKeys", "RevokeKey"] {
        assert!(log.contains(operation), "{operation} is logged");
    }
    let digest = secret.digest();
    assert!(
        log.contains(digest.as_str()),
        "and the requests to the store"
    );
    assert_hides(&log, &secret);
    assert_hides(&log, &caller);
    assert!(!log.contains("Bearer"), "no header is logged");
}
