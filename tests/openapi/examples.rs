//! Real answers: calls to the HTTP functions over the store in memory, by a clock that stands still
//! and ids out of a seed, so that the same story has the same answers.

use std::collections::BTreeMap;

use app::auth::{Permission, SecretKey};
use app::ports::{Commit, PutKey};
use app::react::{Change, react};
use domain::Caller;
use http_api::routes::{Found, Operation, find};
use serde_json::{Value, json};
use testkit::events::HttpEvent;
use testkit::fixtures::{api_key, id, secret};
use testkit::http::{Answer, Platform};
use testkit::{MemoryStore, RecordingOrders, TestClock};

/// Stands for a secret: no key is like it.
const NO_KEY: &str = "or_EXAMPLE";

/// A call with its answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    /// What was called.
    pub(crate) operation: Operation,
    /// What the example is called.
    pub(crate) name: String,
    /// The body that was sent, if any.
    pub(crate) request: Option<Value>,
    /// The status.
    pub(crate) status: u16,
    /// The error's code; empty if there is none.
    pub(crate) code: String,
    /// The headers of the answer.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body of the answer.
    pub(crate) answer: Value,
}

/// All that were recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Examples(Vec<Example>);

impl Examples {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Example> {
        self.0.iter()
    }

    /// Those of an operation that did what it is for.
    pub(crate) fn good(&self, operation: Operation) -> impl Iterator<Item = &Example> {
        self.all()
            .filter(move |example| example.operation == operation && example.code.is_empty())
    }
}

/// Who calls: an org with a key that may do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Operator,
    Owner,
    Manager,
    Tenant,
    Buyer,
}

impl Who {
    const ALL: [Who; 5] = [
        Who::Operator,
        Who::Owner,
        Who::Manager,
        Who::Tenant,
        Who::Buyer,
    ];

    /// The org.
    pub(crate) fn org(self) -> &'static str {
        match self {
            Who::Operator => "relet",
            Who::Owner => "gpu-farm",
            Who::Manager => "neocloud",
            Who::Tenant => "protein-lab",
            Who::Buyer => "night-shift",
        }
    }

    fn caller(self) -> Caller {
        Caller {
            org: id(self.org()),
            key: id(&format!("key-{}", self.org())),
            operator: self == Who::Operator,
        }
    }

    /// The secret of its key.
    pub(crate) fn secret(self) -> SecretKey {
        let place = Who::ALL.iter().position(|who| *who == self).unwrap();
        secret(u8::try_from(place + 1).unwrap())
    }
}

/// The platform on which the examples are played, and what was recorded of it.
pub(crate) struct Recorder {
    /// The platform.
    pub(crate) platform: Platform<MemoryStore>,
    /// What was recorded.
    pub(crate) examples: Examples,
}

impl Recorder {
    /// A platform with a key for everybody.
    pub(crate) async fn new() -> Self {
        let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
        for who in Who::ALL {
            let key = api_key(&who.caller(), &Permission::ALL);
            let put = platform.store.put_key(&who.secret().digest(), &key).await;
            assert_eq!(put, Ok(Commit::Done));
        }
        Self {
            platform,
            examples: Examples::default(),
        }
    }

    /// Makes a call that goes well, lets happen what follows from it, and records it under a name.
    pub(crate) async fn good(&mut self, name: &str, by: Who, request: HttpEvent) -> Answer {
        let answer = self.make(by, request.clone()).await;
        assert!(answer.is_good(), "{name}: {answer:?}");
        self.record(name, request, &answer);
        answer
    }

    /// Makes a call that is only there for those after it.
    pub(crate) async fn make(&self, by: Who, request: HttpEvent) -> Answer {
        let before = self.platform.store.world();
        let answer = self.platform.call(request.by(&by.secret())).await;
        let after = self.platform.store.world();
        for (key, new) in &after.reservations {
            let old = before.reservations.get(key);
            if old != Some(new) {
                let change = Change::Reservation {
                    old: old.cloned().map(Box::new),
                    new: Box::new(new.clone()),
                };
                let (orders, now) = (RecordingOrders::default(), new.updated_at);
                react(&self.platform.store, &orders, now, &change)
                    .await
                    .unwrap();
            }
        }
        self.platform.clock.advance_ms(1_000);
        answer
    }

    /// Makes a call that is refused with this code and records it.
    pub(crate) async fn refused(&mut self, code: &str, request: HttpEvent) {
        let answer = self.platform.call(request.clone()).await;
        assert_eq!(answer.code(), code, "{answer:?}");
        self.record(code, request, &answer);
    }

    fn record(&mut self, name: &str, request: HttpEvent, answer: &Answer) {
        let event = request.build();
        let http = &event["requestContext"]["http"];
        let (method, path) = (http["method"].as_str(), http["path"].as_str());
        let Found::Route(route, _) = find(method.unwrap(), path.unwrap()) else {
            unreachable!("{http}: no route")
        };
        let body = event["body"].as_str();
        self.examples.0.push(Example {
            operation: route.operation,
            name: name.to_owned(),
            request: body.and_then(|body| serde_json::from_str(body).ok()),
            status: answer.status,
            code: answer.code(),
            headers: answer.headers.clone(),
            answer: without_secret(answer.json()),
        });
    }
}

/// The body, with something in the place of a secret that nobody can take for a key.
fn without_secret(mut body: Value) -> Value {
    if body["key"].is_string() {
        body["key"] = json!(NO_KEY);
        body["keyPrefix"] = json!(NO_KEY[..9]);
    }
    body
}
