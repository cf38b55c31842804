//! One HTTP function: takes an API Gateway event, does in order what every call needs, and answers.
//!
//! The order is part of the contract: route, key, permission, body, and only then the resource. A
//! route that is open to anyone is answered without a key, and without a handler.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::auth::{KeyCache, Principal, authenticate};
use app::grant::LACKS_ROLE;
use app::idempotency::{Answer as Kept, Known, Repeatable, known};
use app::ports::{Clock, Ids, LoadKey, Once};
use app::{Context, Error};
use domain::{Caller, Refusal, Version};
use futures_util::future::BoxFuture;
use lambda_http::http::response::Builder;
use lambda_http::http::{HeaderMap, Response};
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, LambdaEvent, Request, RequestExt, Service as _, service_fn};
use serde::Serialize;
use serde_json::Value;

use crate::cursor::CursorKey;
use crate::handlers::open;
use crate::log::Line;
use crate::problem::{Answer, Problem};
use crate::request::{
    Call, check_body, check_conditions, check_query, fingerprint, header, idempotency_key,
};
use crate::routes::{Access, Found, FunctionName, Otherwise, Route, find};
use crate::view::ReservationView;

/// What every handler has at hand.
#[derive(Debug)]
pub struct Service<S, C, I> {
    /// The store.
    pub store: S,
    /// Keys, kept for a few seconds.
    pub keys: KeyCache<S, C>,
    /// The clock.
    pub clock: C,
    /// Fresh ids.
    pub ids: I,
    /// What cursors are sealed with.
    pub cursors: CursorKey,
}

impl<S: Clone, C: Clone, I> Service<S, C, I> {
    /// Puts the parts together; keys are kept for `key_ttl_ms` milliseconds.
    pub fn new(store: S, clock: C, ids: I, cursors: CursorKey, key_ttl_ms: i64) -> Self {
        let keys = KeyCache::new(store.clone(), clock.clone(), key_ttl_ms);
        Self {
            store,
            keys,
            clock,
            ids,
            cursors,
        }
    }
}

/// The good answer of a handler: 200, or 204 where there is nothing to say. Its `Debug` does not
/// show the body, which may hold a fresh secret.
#[derive(Clone, PartialEq)]
pub struct Reply {
    /// The body; `None` is 204.
    pub body: Option<Value>,
    /// The version to send as `ETag`, where the body is a versioned resource.
    pub version: Option<u64>,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("has_body", &self.body.is_some())
            .field("version", &self.version)
            .finish()
    }
}

impl Reply {
    /// A body without a version.
    ///
    /// # Errors
    /// [`Error::Bug`] if it is not representable as JSON.
    pub fn new(body: impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_value(body)
            .map_err(|error| Error::Bug(app::error::Internal(error.to_string())))?;
        Ok(Self {
            body: Some(body),
            version: None,
        })
    }

    /// Nothing: it is done.
    #[must_use]
    pub fn none() -> Self {
        Self {
            body: None,
            version: None,
        }
    }

    /// An answer that was kept.
    ///
    /// # Errors
    /// [`Error::Bug`] if it is no JSON.
    pub fn of(answer: &Kept) -> Result<Self, Error> {
        let body: Value = serde_json::from_str(&answer.body)
            .map_err(|error| Error::Bug(app::error::Internal(error.to_string())))?;
        Ok(Self {
            body: Some(body).filter(|body| !body.is_null()),
            version: answer.version.map(domain::Version::get),
        })
    }

    /// The reply as an answer to be kept; null stands for no body.
    #[must_use]
    pub fn answer(&self) -> Kept {
        Kept {
            body: self.body.as_ref().unwrap_or(&Value::Null).to_string(),
            version: self.version.and_then(domain::Version::stored),
        }
    }

    /// The same with a version.
    #[must_use]
    pub fn versioned(mut self, version: domain::Version) -> Self {
        self.version = Some(version.get());
        self
    }
}

/// The event is not one of an API Gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an API Gateway event: {0}")]
pub struct BadEvent(String);

type Handler = dyn Fn(Request) -> BoxFuture<'static, Response<Body>> + Send + Sync;

/// An HTTP function, ready for events.
#[derive(Clone)]
pub struct HttpFunction {
    /// Its name.
    pub name: FunctionName,
    handler: Arc<Handler>,
}

impl std::fmt::Debug for HttpFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpFunction({})", self.name.as_str())
    }
}

impl HttpFunction {
    /// A function that answers its routes with `handle`.
    pub fn new<S, C, I, H, F>(name: FunctionName, service: Arc<Service<S, C, I>>, handle: H) -> Self
    where
        S: LoadKey + Once + 'static,
        C: Clock,
        I: Ids,
        H: Fn(Arc<Service<S, C, I>>, Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Error>> + Send + 'static,
    {
        let handler = move |request: Request| -> BoxFuture<'static, Response<Body>> {
            let (service, handle) = (Arc::clone(&service), handle.clone());
            Box::pin(async move { answer(name, service, handle, request).await })
        };
        Self {
            name,
            handler: Arc::new(handler),
        }
    }

    /// Answers one event of API Gateway, payload format 2.0.
    ///
    /// # Errors
    /// [`BadEvent`] if it is something else.
    pub async fn invoke(&self, mut event: Value) -> Result<Value, BadEvent> {
        crate::event::tame(&mut event).map_err(BadEvent)?;
        let bad = |error: serde_json::Error| BadEvent(error.to_string());
        let request: LambdaRequest = serde_json::from_value(event).map_err(bad)?;
        let handler = Arc::clone(&self.handler);
        let mut adapter = Adapter::from(service_fn(move |request: Request| {
            let reply = handler(request);
            async move { Ok::<_, std::convert::Infallible>(reply.await) }
        }));
        let event = LambdaEvent::new(request, lambda_http::Context::default());
        let Ok(reply) = adapter.call(event).await;
        serde_json::to_value(reply).map_err(bad)
    }
}

/// What is logged of a call, once, at its end.
struct Outcome {
    response: Response<Body>,
    code: &'static str,
}

async fn answer<S, C, I, H, F>(
    name: FunctionName,
    service: Arc<Service<S, C, I>>,
    handle: H,
    request: Request,
) -> Response<Body>
where
    S: LoadKey + Once + 'static,
    C: Clock,
    I: Ids,
    H: Fn(Arc<Service<S, C, I>>, Call) -> F,
    F: Future<Output = Result<Reply, Error>>,
{
    let started = std::time::Instant::now();
    let request_id = service.ids.uuid();
    let now = service.clock.now();
    let mut seen = Seen::default();
    let outcome = match find(request.method().as_str(), request.uri().path()) {
        Found::NoPath => failed(&request_id, &Error::not_found(), now),
        Found::WrongMethod(allowed) => refused(&request_id, Answer::wrong_method(&allowed), None),
        Found::Route(route, _) if route.function != name => {
            seen.route = Some(route);
            failed(&request_id, &Error::not_found(), now)
        }
        Found::Route(route, _) if route.access == Access::Open => {
            seen.route = Some(route);
            match look_at(&request, route).and_then(|_| Ok(open(route.operation)?)) {
                Ok(text) => Outcome {
                    response: json(200, &request_id, &[], text.into_owned()),
                    code: "ok",
                },
                Err(rejected) => rejected.answer(&request_id, now),
            }
        }
        Found::Route(route, path) => {
            seen.route = Some(route);
            seen.path.clone_from(&path);
            match admit(&service, &request, route, path, &request_id, &mut seen).await {
                Err(rejected) => rejected.answer(&request_id, now),
                Ok(call) => match handled(&service, handle, call).await {
                    Ok(reply) => succeeded(&request_id, &reply),
                    Err(error) => failed(&request_id, &error, service.clock.now()),
                },
            }
        }
    };
    let line = Line {
        request_id: &request_id,
        function: name,
        route: seen.route,
        method: request.method().as_str(),
        path: &seen.path,
        caller: seen.caller.as_ref(),
        status: outcome.response.status().as_u16(),
        code: outcome.code,
        elapsed: started.elapsed(),
    };
    line.write();
    outcome.response
}

/// What is found out about a call on its way, however far it gets.
#[derive(Default)]
struct Seen {
    route: Option<&'static Route>,
    path: Vec<(&'static str, String)>,
    caller: Option<Caller>,
}

/// Handles a call; one that may come again and has been answered before is answered the same way,
/// and nothing is done.
async fn handled<S, C, I, H, F>(
    service: &Arc<Service<S, C, I>>,
    handle: H,
    call: Call,
) -> Result<Reply, Error>
where
    S: LoadKey + Once + 'static,
    C: Clock,
    H: Fn(Arc<Service<S, C, I>>, Call) -> F,
    F: Future<Output = Result<Reply, Error>>,
{
    let Some(repeatable) = call.repeatable.clone() else {
        return handle(Arc::clone(service), call).await;
    };
    if let Some(reply) = repeated(service, &repeatable).await? {
        return Ok(reply);
    }
    let error = match handle(Arc::clone(service), call).await {
        Ok(reply) => return Ok(reply),
        Err(error) => error,
    };
    // Another call with the same key may have come first: whatever is wrong with this one, such as
    // units that are not free any more, is then that one's own doing.
    match (repeated(service, &repeatable).await, error) {
        (Ok(Some(reply)), _) => Ok(reply),
        (_, Error::Contended(_)) => Err(Refusal::InFlight.into()),
        (_, error) => Err(error),
    }
}

/// The answer that was given to a call with this key.
async fn repeated<S: Once, C: Clock, I>(
    service: &Service<S, C, I>,
    call: &Repeatable,
) -> Result<Option<Reply>, Error> {
    match known(&service.store, call, service.clock.now()).await? {
        Known::Nothing => Ok(None),
        Known::OtherCall => Err(Refusal::IdempotencyKeyReused.into()),
        Known::Answered(answer) => Reply::of(&answer).map(Some),
    }
}

/// Why a call does not reach its handler.
enum Rejected {
    Error(Error),
    Answer(Answer),
}

impl Rejected {
    fn answer(self, request_id: &str, now: domain::Timestamp) -> Outcome {
        match self {
            Rejected::Error(error) => failed(request_id, &error, now),
            Rejected::Answer(answer) => refused(request_id, answer, None),
        }
    }
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        Rejected::Error(error)
    }
}

impl From<Answer> for Rejected {
    fn from(answer: Answer) -> Self {
        Rejected::Answer(answer)
    }
}

/// Judges a request that has a route: key, permission, query, body, conditions.
async fn admit<S: LoadKey, C: Clock, I>(
    service: &Service<S, C, I>,
    request: &Request,
    route: &'static Route,
    path: Vec<(&'static str, String)>,
    request_id: &str,
    seen: &mut Seen,
) -> Result<Call, Rejected> {
    let authorization = single(request.headers(), "authorization");
    let now = service.clock.now();
    let principal = authenticate(&service.keys, authorization, now).await?;
    seen.caller = Some(principal.caller.clone());
    permit(route, &path, &principal)?;
    let (query, if_match) = look_at(request, route)?;
    let body: &[u8] = request.body();
    let key = idempotency_key(route, request.headers())?;
    let operator = principal.caller.operator;
    let repeatable = key.map(|key| Repeatable {
        org: principal.caller.org.clone(),
        key,
        fingerprint: fingerprint(operator, route, &path, &query, if_match, body),
    });
    let context = Context {
        principal,
        request_id: request_id.to_owned(),
    };
    Ok(Call {
        route,
        context,
        path,
        query,
        body: body.to_vec(),
        if_match,
        repeatable,
    })
}

/// Judges what a request has beside its key: query, body, conditions.
fn look_at(
    request: &Request,
    route: &Route,
) -> Result<(BTreeMap<String, String>, Option<Version>), Rejected> {
    let query = query(request)?;
    check_query(route, &query)?;
    check_body(route, request.headers(), request.body())?;
    let if_match = check_conditions(route, request.headers())?;
    Ok((query, if_match))
}

/// A header that may be there once; a repeated one counts as absent.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    (headers.get_all(name).iter().count() == 1)
        .then(|| header(headers, name))
        .flatten()
}

/// The key's permission or role, and the org of the path where it names one.
fn permit(
    route: &Route,
    path: &[(&'static str, String)],
    principal: &Principal,
) -> Result<(), Error> {
    let (allowed, lacking) = match route.access {
        Access::Open | Access::AnyKey => (true, ""),
        Access::Permission(any_of) => (
            any_of.iter().any(|p| principal.may(*p)),
            "this key lacks the permission for this call",
        ),
        Access::Role(any_of) => {
            let held = principal.role.is_some_and(|role| any_of.contains(&role));
            (principal.caller.operator || held, LACKS_ROLE)
        }
    };
    if !allowed {
        return Err(match route.otherwise {
            Otherwise::NotFound => Error::not_found(),
            Otherwise::Forbidden => Error::Forbidden(lacking),
        });
    }
    match path.iter().find(|(name, _)| *name == "orgId") {
        Some((_, org)) => principal.of_org(&org.parse().map_err(|_| Error::not_found())?),
        None => Ok(()),
    }
}

fn query(request: &Request) -> Result<BTreeMap<String, String>, Error> {
    let mut out = BTreeMap::new();
    for (name, value) in request.query_string_parameters().iter() {
        if out.insert(name.to_owned(), value.to_owned()).is_some() {
            let name: String = name.chars().take(64).collect();
            return Err(Error::BadRequest(format!(
                "query parameter {name:?} is there twice; send it once"
            )));
        }
    }
    Ok(out)
}

fn succeeded(request_id: &str, reply: &Reply) -> Outcome {
    let mut headers = Vec::new();
    if let Some(version) = reply.version {
        headers.push(("etag", format!("\"{version}\"")));
    }
    Outcome {
        response: match &reply.body {
            Some(body) => response(200, request_id, &headers, body),
            None => bodiless(204, request_id),
        },
        code: "ok",
    }
}

fn failed(request_id: &str, error: &Error, now: domain::Timestamp) -> Outcome {
    match error {
        Error::Throttled(internal) | Error::Contended(internal) | Error::Unavailable(internal) => {
            tracing::warn!(request_id, cause = internal.0, "call not served");
        }
        Error::Bug(internal) => tracing::error!(request_id, cause = internal.0, "bug"),
        Error::Unauthorized
        | Error::Forbidden(_)
        | Error::BadRequest(_)
        | Error::Answered
        | Error::Refused { .. } => {}
    }
    let current = match error {
        Error::Refused {
            current: Some(image),
            ..
        } => Some(ReservationView::of(image, now)),
        _ => None,
    };
    let mut answer = Answer::of(error);
    if let Error::Refused {
        current: Some(image),
        ..
    } = error
    {
        answer
            .headers
            .push(("etag", format!("\"{}\"", image.version)));
    }
    refused(request_id, answer, current)
}

fn refused(request_id: &str, answer: Answer, current: Option<ReservationView>) -> Outcome {
    let Answer {
        status,
        code,
        error,
        headers,
    } = answer;
    let problem = Problem {
        error,
        code,
        request_id: request_id.to_owned(),
        current,
    };
    Outcome {
        response: response(status, request_id, &headers, &problem),
        code,
    }
}

/// The response with the headers that every response with a body has. Serialising the bodies of
/// this crate cannot fail; were it to, the answer is an empty 500.
fn response(
    status: u16,
    request_id: &str,
    headers: &[(&str, String)],
    body: &impl Serialize,
) -> Response<Body> {
    match serde_json::to_string(body) {
        Ok(text) => json(status, request_id, headers, text),
        Err(_) => bodiless(500, request_id),
    }
}

fn json(status: u16, request_id: &str, headers: &[(&str, String)], text: String) -> Response<Body> {
    let mut builder = begun(status, request_id).header("content-type", "application/json");
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    builder.body(Body::from(text)).unwrap_or_default()
}

fn bodiless(status: u16, request_id: &str) -> Response<Body> {
    begun(status, request_id)
        .body(Body::Empty)
        .unwrap_or_default()
}

fn begun(status: u16, request_id: &str) -> Builder {
    Response::builder()
        .status(status)
        .header("cache-control", "no-store")
        .header("x-request-id", request_id)
}
