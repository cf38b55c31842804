//! The agent's own endpoint: the platform tells it to stop a VM at once, by a signed call.

use std::sync::Arc;

use app::ports::Clock as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::post;
use domain::{Timestamp, VmId};
use http::{HeaderMap, StatusCode};
use runtime::SystemClock;
use runtime::controller::{SIGNATURE_HEADER, TerminateCall, verify};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::host::{Host, Left};
use crate::failure::{Failure, run};
use crate::gateway::until;

/// How far the time of a call may be from this machine's, in milliseconds: an old call that
/// somebody kept is not followed.
const SENT_AT_TOLERANCE_MS: i64 = 5 * 60 * 1_000;

struct Controller {
    host: Arc<Host>,
    secret: String,
}

/// Serves the endpoint on `listener` until `stop` says true.
///
/// # Errors
/// [`Failure::Run`] if the listener fails.
pub async fn serve(
    listener: TcpListener,
    host: Arc<Host>,
    secret: String,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let app = Router::new()
        .route("/v1/vms/{vm}/terminate", post(terminate))
        .with_state(Arc::new(Controller { host, secret }));
    let serving = axum::serve(listener, app).with_graceful_shutdown(until(stop));
    serving.await.map_err(|error| run("the node agent", error))
}

async fn terminate(
    State(controller): State<Arc<Controller>>,
    Path(vm): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let (status, answer) = follow(&controller, &vm, &headers, &body, SystemClock.now());
    (status, answer.to_string())
}

fn follow(
    controller: &Controller,
    vm: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> (StatusCode, Value) {
    let refused = |status, text: &str| (status, json!({ "error": text }));
    let bad = |text| refused(StatusCode::BAD_REQUEST, text);
    let Ok(body) = str::from_utf8(body) else {
        return bad("the body is not text");
    };
    let call = match serde_json::from_str::<TerminateCall>(body) {
        Ok(call) => call,
        Err(error) => return bad(&format!("the body is no order: {error}")),
    };
    let signature = headers.get(SIGNATURE_HEADER);
    let signature = signature
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    if !verify(&controller.secret, &call.sent_at, body, signature) {
        return refused(
            StatusCode::UNAUTHORIZED,
            "the signature is not that of the body",
        );
    }
    let sent_at = Timestamp::parse(&call.sent_at).map(|at| at.unix_ms());
    let late = sent_at.map(|at| (now.unix_ms() - at).abs() > SENT_AT_TOLERANCE_MS);
    if late.unwrap_or(true) {
        return refused(StatusCode::UNAUTHORIZED, "sentAt is too far from now");
    }
    let Ok(id) = call.vm_id.parse::<VmId>() else {
        return bad("vmId is no id");
    };
    if id.as_str() != vm {
        return bad("the path names another VM than the body");
    }
    // The version of the order decides nothing here: a VM is told to stop once and for all, and its
    // id never comes again, so no order is ever outdated.
    match controller.host.stop(&id) {
        Left::Nothing => (StatusCode::OK, json!({ "state": "gone" })),
        Left::Stopping => (StatusCode::ACCEPTED, json!({ "state": "stopping" })),
    }
}
