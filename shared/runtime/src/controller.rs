//! The VM controller over HTTP: a signed POST that tells a machine to stop a VM.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use app::auth::hex;
use app::ports::{Clock, ControlVm, ControllerError, Stopped, TerminationOrder};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::task::spawn_blocking;

/// The header with the signature: HMAC-SHA256 over `<sentAt>.<body>`, lower-case hexadecimal.
pub const SIGNATURE_HEADER: &str = "x-relet-signature";

/// How long a controller may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The body of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminateCall {
    /// The VM to stop.
    pub vm_id: String,
    /// Its node.
    pub node_id: String,
    /// The reservation whose change condemned it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// The version that condemned it, of the reservation or of the node that held the VM: for the
    /// controller's log, and for a fence where VM ids come again. The platform's own never do.
    pub version: u64,
    /// When this was sent, RFC 3339.
    pub sent_at: String,
}

#[derive(Debug, Deserialize)]
struct Answer {
    state: String,
}

/// The signature of a body sent at an instant.
#[must_use]
pub fn sign(secret: &str, sent_at: &str, body: &str) -> String {
    hex(&mac(secret, sent_at, body).finalize().into_bytes())
}

/// Whether a signature is that of this body, compared in constant time.
#[must_use]
pub fn verify(secret: &str, sent_at: &str, body: &str, signature: &str) -> bool {
    let digits = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = signature.as_bytes().chunks(2).map(digits).collect();
    bytes.is_some_and(|bytes| mac(secret, sent_at, body).verify_slice(&bytes).is_ok())
}

fn mac(secret: &str, sent_at: &str, body: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(sent_at.as_bytes());
    mac.update(b".");
    mac.update(body.as_bytes());
    mac
}

/// A secret that does not show in `Debug`.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// The client, once it is made: that reads all certificates of the system.
type Prepared = Arc<OnceLock<Result<reqwest::Client, ControllerError>>>;

/// A VM controller at a URL.
#[derive(Debug, Clone)]
pub struct HttpController<C> {
    base_url: String,
    secret: Secret,
    client: Prepared,
    clock: C,
}

impl<C: Clock> HttpController<C> {
    /// The controller at `base_url`, told with calls that `secret` signs.
    pub fn new(base_url: &str, secret: &str, clock: C) -> Self {
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            secret: Secret(secret.to_owned()),
            client: Arc::default(),
            clock,
        }
    }

    /// Makes the client while the caller goes on; a call that comes before it is made waits for it.
    /// Without this, the first call makes it.
    pub fn prepare(&self) {
        let client = Arc::clone(&self.client);
        // Nobody waits for it here.
        drop(spawn_blocking(move || {
            client.get_or_init(client_of);
        }));
    }
}

fn client_of() -> Result<reqwest::Client, ControllerError> {
    // A signed order to stop a VM goes to its controller and through nobody else's hands.
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .build();
    client.map_err(|error| ControllerError(format!("no TLS: {error}")))
}

impl<C: Clock> ControlVm for HttpController<C> {
    async fn terminate(&self, order: &TerminationOrder) -> Result<Stopped, ControllerError> {
        let failed = |text: String| ControllerError(text);
        let call = TerminateCall {
            vm_id: order.vm.to_string(),
            node_id: order.node.to_string(),
            reservation_id: order.reservation.as_ref().map(ToString::to_string),
            version: order.version.get(),
            sent_at: self.clock.now().to_string(),
        };
        let body = serde_json::to_string(&call).map_err(|error| failed(error.to_string()))?;
        let client = self.client.get_or_init(client_of).as_ref();
        let reply = client
            .map_err(Clone::clone)?
            .post(format!("{}/v1/vms/{}/terminate", self.base_url, order.vm))
            .header("content-type", "application/json")
            .header(SIGNATURE_HEADER, sign(&self.secret.0, &call.sent_at, &body))
            .body(body)
            .send()
            .await
            .map_err(|error| failed(error.without_url().to_string()))?;
        let status = reply.status().as_u16();
        let text = reply
            .text()
            .await
            .map_err(|error| failed(error.without_url().to_string()))?;
        understand(status, &text)
    }
}

/// What an answer means. Only what is known to mean "gone" counts as gone.
fn understand(status: u16, body: &str) -> Result<Stopped, ControllerError> {
    let state = serde_json::from_str::<Answer>(body).map(|answer| answer.state);
    match (status, state.as_deref()) {
        // A machine that never had the VM, or has it no more, has nothing left to stop.
        (404 | 410, _) | (200, Ok("gone")) => Ok(Stopped::Gone),
        (202, _) | (200, Ok("stopping")) => Ok(Stopped::NotYet),
        (status, _) => Err(ControllerError(format!(
            "answered {status} with no known state"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_fits_its_own_call_alone() {
        let good = sign("secret", "t", "body");
        assert!(verify("secret", "t", "body", &good));
        let others = [
            ("other", "t", "body"),
            ("secret", "u", "body"),
            ("secret", "t", "b"),
        ];
        for (secret, at, body) in others {
            assert!(!verify(secret, at, body, &good));
        }
        assert!(!verify("secret", "t", "body", "") && !verify("secret", "t", "body", "zz"));
    }

    #[test]
    fn only_what_means_gone_is_gone() {
        for (status, body) in [(404, ""), (410, "x"), (200, r#"{"state":"gone"}"#)] {
            assert_eq!(
                understand(status, body),
                Ok(Stopped::Gone),
                "{status} {body}"
            );
        }
        assert_eq!(understand(202, ""), Ok(Stopped::NotYet));
        for (status, body) in [
            (200, ""),
            (200, r#"{"state":"paused"}"#),
            (500, ""),
            (409, ""),
        ] {
            assert!(understand(status, body).is_err(), "{status} {body}");
        }
    }
}
