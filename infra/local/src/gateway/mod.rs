//! The gateway: HTTP in, an event to the function of its route, the reply out. It behaves as an
//! HTTP API of API Gateway does, its own errors included.

pub mod event;
pub mod reply;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use app::ports::{Clock as _, Ids as _};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode};
use http_api::FunctionName;
use runtime::{Function, SystemClock, SystemIds};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::failure::{Failure, run};
use event::{Arrival, Target};

/// Most bytes of a request body.
const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Longest time for a request body to come.
const BODY_MAX: Duration = Duration::from_secs(10);
/// Longest time that a function may take.
const FUNCTION_MAX: Duration = Duration::from_secs(30);
/// Longest time that open connections may hold up a stop.
const STOP_MAX: Duration = Duration::from_secs(3);

/// Where the numbers of this process are, for callers on this machine alone. Everyone else is told
/// what is told of any path that does not exist.
const METRICS: &str = "/metrics";

/// The functions behind the gateway, by their names.
pub type Functions = BTreeMap<FunctionName, Function>;

/// Serves the functions on `listener` until `stop` says true; requests under way are finished.
///
/// # Errors
/// [`Failure::Run`] if the listener fails.
pub async fn serve(
    listener: TcpListener,
    functions: Functions,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let app = Router::new()
        .fallback(answer)
        .with_state(Arc::new(functions))
        .into_make_service_with_connect_info::<SocketAddr>();
    let told = until(stop.clone());
    let serving = axum::serve(listener, app).with_graceful_shutdown(told);
    let given_up = async {
        until(stop).await;
        tokio::time::sleep(STOP_MAX).await;
    };
    tokio::select! {
        ended = async { serving.await } => ended.map_err(|error| run("the gateway", error)),
        () = given_up => {
            tracing::warn!("the gateway stopped with connections open");
            Ok(())
        }
    }
}

/// Waits until `stop` says true, or nobody is left to say it.
pub(crate) async fn until(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn answer(
    State(functions): State<Arc<Functions>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method(), request.uri().path());
    if method == Method::GET && path == METRICS && peer.ip().to_canonical().is_loopback() {
        return numbers();
    }
    let target = event::target(method.as_str(), path);
    match invoke(&functions, &target, peer, request).await {
        Ok(response) => response,
        Err((status, message)) => {
            // Functions tell of every other call. The path is left out: it is a caller's words.
            let route = target.route_key;
            let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            tracing::info!(
                route,
                status = status.as_u16(),
                duration_us,
                "answered by the gateway itself"
            );
            reply::own(status, message)
        }
    }
}

/// The numbers of this process, for Prometheus.
fn numbers() -> Response {
    let mut response = Response::new(Body::from(metrics::prometheus()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert("content-type", kind);
    response
}

/// Asks the function; where there is no answer of its own, what the gateway says.
async fn invoke(
    functions: &Functions,
    target: &Target,
    peer: SocketAddr,
    request: Request,
) -> Result<Response, (StatusCode, &'static str)> {
    const FAILED: (StatusCode, &str) = (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
    let (parts, body) = request.into_parts();
    let read = axum::body::to_bytes(body, BODY_BYTES_MAX);
    let body = match tokio::time::timeout(BODY_MAX, read).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"));
        }
        Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "Request Timeout")),
    };
    let arrival = Arrival {
        peer,
        at: SystemClock.now(),
        request_id: SystemIds.uuid(),
    };
    let event = event::event(&parts, &body, target, &arrival);
    let Some(function) = functions.get(&target.function) else {
        return Err((StatusCode::NOT_FOUND, "Not Found"));
    };
    match tokio::time::timeout(FUNCTION_MAX, finished(function, event)).await {
        Err(_) => Err((StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable")),
        Ok(None) => Err(FAILED),
        Ok(Some(reply)) => reply::response(&reply).ok_or(FAILED),
    }
}

/// Runs the function to its end even if the caller hangs up: a function that has begun is not taken
/// back in the cloud either. `None` if it failed as a whole.
async fn finished(function: &Function, event: Value) -> Option<Value> {
    let running = function.clone();
    match tokio::spawn(async move { running.invoke(event).await }).await {
        Ok(Ok(reply)) => Some(reply),
        Ok(Err(error)) => {
            tracing::error!(function = function.name(), %error, "function failed");
            None
        }
        Err(error) => {
            tracing::error!(function = function.name(), %error, "function ended early");
            None
        }
    }
}
