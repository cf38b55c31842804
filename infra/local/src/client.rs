//! A caller of the platform's API, over HTTP like any other.

use std::time::Duration;

use http::Method;
use serde_json::Value;

/// Longest time for one call.
const CALL_MAX: Duration = Duration::from_secs(35);

/// A caller with a key of its own.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: String,
    authorization: Secret,
}

/// A header that does not show in `Debug`.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The `ETag` header, if there is one.
    pub etag: Option<String>,
    /// The body; null if it is not JSON.
    pub body: Value,
}

/// Why a call got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: {cause}")]
pub struct CallError {
    method: Method,
    path: String,
    cause: String,
}

impl Client {
    /// A caller of the API at `base_url` with this key.
    ///
    /// # Errors
    /// As the HTTP client has it, where the machine has no TLS to offer.
    pub fn new(base_url: &str, key: &str) -> Result<Self, reqwest::Error> {
        Ok(Self {
            // The platform is on this very machine, whatever proxy its user has for the rest.
            http: reqwest::Client::builder()
                .timeout(CALL_MAX)
                .no_proxy()
                .build()?,
            base_url: base_url.to_owned(),
            authorization: Secret(format!("Bearer {key}")),
        })
    }

    /// The same with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            authorization: Secret(format!("Bearer {key}")),
            ..self.clone()
        }
    }

    /// Makes a call; `if_match` goes into the header of that name.
    ///
    /// # Errors
    /// [`CallError`] if there is no answer; an answer of any status is one.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        if_match: Option<&str>,
    ) -> Result<Answer, CallError> {
        let mut request = self
            .http
            .request(method.clone(), format!("{}{path}", self.base_url))
            .header("authorization", &self.authorization.0);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        if let Some(version) = if_match {
            request = request.header("if-match", version);
        }
        let failed = |error: reqwest::Error| CallError {
            method: method.clone(),
            path: path.to_owned(),
            cause: causes(&error.without_url()),
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let etag = response.headers().get("etag");
        let etag = etag
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let text = response.text().await.map_err(failed)?;
        Ok(Answer {
            status,
            etag,
            body: serde_json::from_str(&text).unwrap_or_default(),
        })
    }

    /// Reads.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn get(&self, path: &str) -> Result<Answer, CallError> {
        self.send(Method::GET, path, None, None).await
    }

    /// Posts.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn post(&self, path: &str, body: Option<&Value>) -> Result<Answer, CallError> {
        self.send(Method::POST, path, body, None).await
    }
}

/// An error with what caused it, for those whose own text says little.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}
