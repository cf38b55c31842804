//! Errors as callers see them: one flat envelope with a sentence, a stable code and the request id.

use app::Error;
use domain::Refusal;
use serde::Serialize;

use crate::view::ReservationView;

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Problem"))]
pub struct Problem {
    /// What was wrong and what would be right, for a person.
    pub error: String,
    /// What was wrong, for a program: lower snake case, never changed once published.
    pub code: &'static str,
    /// The request's id.
    pub request_id: String,
    /// The present state, where `If-Match` did not match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<ReservationView>,
}

/// Status, code and headers of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: &'static str,
    /// The sentence.
    pub error: String,
    /// Headers beside the usual ones.
    pub headers: Vec<(&'static str, String)>,
}

impl Answer {
    /// An answer without headers of its own.
    #[must_use]
    pub fn new(status: u16, code: &'static str, error: impl Into<String>) -> Self {
        Self {
            status,
            code,
            error: error.into(),
            headers: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// 405 for a path that knows other methods.
    #[must_use]
    pub fn wrong_method(allowed: &[&str]) -> Self {
        let allowed = allowed.join(", ");
        let text = format!("this path does not take this method; it takes {allowed}");
        Self::new(405, "method_not_allowed", text).with("allow", allowed)
    }

    /// 413 for a body past the limit.
    #[must_use]
    pub fn too_large() -> Self {
        let max = domain::limits::BODY_BYTES_MAX;
        Self::new(
            413,
            "body_too_large",
            format!("a request body has at most {max} bytes"),
        )
    }

    /// 415 for a body that is not declared as JSON.
    #[must_use]
    pub fn not_json() -> Self {
        let text = "send the body as application/json, in UTF-8";
        Self::new(415, "unsupported_media_type", text)
    }

    /// The answer to an error of a use case.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Unauthorized => Self::new(
                401,
                "unauthorized",
                "send a valid API key as Authorization: Bearer or_…",
            )
            .with("www-authenticate", "Bearer"),
            Error::Forbidden(text) => Self::new(403, "forbidden", *text),
            Error::BadRequest(text) => Self::new(400, "bad_request", text.clone()),
            Error::Refused { refusal, .. } => {
                let (status, code) = refusal_code(refusal);
                let answer = Self::new(status, code, refusal.to_string());
                match refusal {
                    Refusal::InFlight => answer.with("retry-after", "1"),
                    _ => answer,
                }
            }
            // The answer was there a moment ago, and does not count any more: it may be done anew.
            Error::Answered => Self::of(&Error::from(domain::Refusal::InFlight)),
            // In both cases the same call may be sent again: there was too much at once.
            Error::Throttled(_) | Error::Contended(_) => Self::new(
                429,
                "throttled",
                "too many calls at once; try again in a second",
            )
            .with("retry-after", "1"),
            Error::Unavailable(_) => Self::new(
                503,
                "unavailable",
                "the outcome is not known yet; read the resource, then try again",
            )
            .with("retry-after", "1"),
            Error::Bug(_) => Self::new(
                500,
                "internal",
                "something is wrong on our side; it has been logged",
            ),
        }
    }
}

/// Status and code of a refusal.
#[must_use]
fn refusal_code(refusal: &Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::NotFound => (404, "not_found"),
        Refusal::VersionMismatch { .. } => (412, "version_mismatch"),
        Refusal::ReservationNotActive(_) => (409, "reservation_not_active"),
        Refusal::UnitNotReserved(_) => (422, "unit_not_reserved"),
        Refusal::UnknownUnit(_) => (422, "unknown_unit"),
        Refusal::UnitsAlreadyReserved(..) => (409, "units_already_reserved"),
        Refusal::UnitDraining(_) => (409, "unit_draining"),
        Refusal::InsufficientCapacity(_) => (409, "insufficient_capacity"),
        Refusal::VmNotCondemned(_) => (409, "vm_not_condemned"),
        Refusal::NodeAlreadyRegistered(_) => (409, "node_already_registered"),
        Refusal::InFlight => (409, "idempotency_key_in_flight"),
        Refusal::IdempotencyKeyReused => (422, "idempotency_key_reused"),
        Refusal::LimitReached(_) => (409, "limit_reached"),
        Refusal::NotInReview(_) => (409, "reservation_not_in_review"),
        Refusal::UnitsLost(_) => (409, "units_lost"),
        Refusal::StaleTopology(_) => (409, "stale_topology"),
        Refusal::EndsTooEarly => (422, "ends_too_early"),
    }
}
