//! The HTTP functions over any store, in the test's own process: events go in, answers come out,
//! and each event goes to the function that the route table names, as a gateway would send it.

mod fleet;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_api::openapi::codes;
use http_api::routes::{Found, Route, find};
use http_api::{CursorKey, FunctionName, HttpFunction, Service, handlers};
use serde_json::{Value, json};

use crate::clock::{SeededIds, TestClock};
use crate::events::{self, HttpEvent};
use crate::store::Store;

pub use fleet::{
    Fleet, OTHER_NODE, OTHER_OWNER_ORG, REVIEWED_NODE, Target, good_call, good_status, key_of,
    secret_of,
};

/// All HTTP functions over one store and one clock. Keys are not kept between calls.
#[derive(Debug)]
pub struct Platform<S> {
    /// The store.
    pub store: S,
    /// The clock.
    pub clock: TestClock,
    functions: BTreeMap<FunctionName, HttpFunction>,
}

impl<S: Store + Clone + 'static> Platform<S> {
    /// The functions over `store`, with fresh ids out of `seed`.
    #[must_use]
    pub fn new(store: S, clock: TestClock, seed: u64) -> Self {
        crate::logs::collect();
        let cursors = CursorKey::new(b"the secret of the tests' cursors")
            .unwrap_or_else(|error| unreachable!("{error}"));
        let ids = SeededIds::new(seed);
        let service = Service::new(store.clone(), clock.clone(), ids, cursors, 0);
        let service = Arc::new(service);
        let functions = [
            handlers::release(Arc::clone(&service)),
            handlers::reclaim(Arc::clone(&service)),
            handlers::end(Arc::clone(&service)),
            handlers::reservations(Arc::clone(&service)),
            handlers::vms(Arc::clone(&service)),
            handlers::nodes(Arc::clone(&service)),
            handlers::keys(service),
        ];
        let functions = functions.into_iter().map(|f| (f.name, f)).collect();
        Self {
            store,
            clock,
            functions,
        }
    }

    /// Sends a request.
    ///
    /// # Panics
    /// As [`Platform::send`].
    pub async fn call(&self, request: HttpEvent) -> Answer {
        self.send(request.build()).await
    }

    /// Sends an event to the function that its method and path belong to. An invocation that fails
    /// as a whole is a 500, as a gateway makes of it.
    ///
    /// # Panics
    /// If the answer is none that the API document has for the route.
    pub async fn send(&self, event: Value) -> Answer {
        let method = event["requestContext"]["http"]["method"].as_str();
        let path = event["rawPath"].as_str();
        let found = find(method.unwrap_or_default(), path.unwrap_or_default());
        let (name, route) = match found {
            Found::Route(route, _) => (route.function, Some(route)),
            Found::WrongMethod(_) | Found::NoPath => (FunctionName::DEFAULT, None),
        };
        let Some(function) = self.functions.get(&name) else {
            unreachable!("there is a function {}", name.as_str())
        };
        match function.invoke(event).await {
            Ok(reply) => {
                let answer = Answer::of(&reply);
                if let Some(route) = route {
                    assert_documented(route, &answer);
                }
                answer
            }
            Err(error) => Answer {
                status: 500,
                headers: BTreeMap::new(),
                text: error.to_string(),
            },
        }
    }
}

/// Fails if the API document does not have this answer: it is made from the same list.
fn assert_documented(route: &Route, answer: &Answer) {
    let code = answer.code();
    let documented = match &*code {
        "" => answer.status == good_status(route.operation),
        code => codes(route).contains(&(answer.status, code)),
    };
    assert!(
        documented,
        "{:?} is not documented to answer {} {code}: say so in http-api's codes",
        route.operation, answer.status
    );
}

/// What a caller gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub text: String,
}

impl Answer {
    fn of(reply: &Value) -> Self {
        let headers = reply["headers"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            status: events::status(reply),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), text(value)))
                .collect(),
            text: text(&reply["body"]),
        }
    }

    /// The JSON body; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Whether the call did what it was for.
    #[must_use]
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The text of a member of the body; empty if there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        self.json()[name].as_str().unwrap_or_default().to_owned()
    }

    /// The error's stable code; empty if it is no error.
    #[must_use]
    pub fn code(&self) -> String {
        self.field("code")
    }

    /// A header; empty if it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// All of it with the request's id taken out: what two answers must share to look the same.
    #[must_use]
    pub fn without_id(&self) -> Self {
        let id = self.header("x-request-id").to_owned();
        let hide = |text: &str| match &*id {
            "" => text.to_owned(),
            id => text.replace(id, "<id>"),
        };
        Self {
            status: self.status,
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), hide(value)))
                .collect(),
            text: hide(&self.text),
        }
    }
}

/// The event with exactly this text as its body.
#[must_use]
pub fn with_text(mut event: Value, body: &str) -> Value {
    event["body"] = json!(body);
    event["isBase64Encoded"] = json!(false);
    event
}

/// The event with exactly these bytes as its body, encoded as a gateway does with what is no text.
#[must_use]
pub fn with_bytes(mut event: Value, body: &[u8]) -> Value {
    event["body"] = json!(BASE64_STANDARD.encode(body));
    event["isBase64Encoded"] = json!(true);
    event
}

#[cfg(test)]
mod tests;
