//! What can go wrong in a use case, and who may read of it.

use domain::Refusal;
use domain::reservation::Reservation;

use crate::ports::NoRandom;

/// The store did not do its part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is over its rate, and stayed so through all retries.
    #[error("store: throttled")]
    Throttled,
    /// Other writers stayed in the way through all retries.
    #[error("store: conflict")]
    Conflict,
    /// It did not answer in time, or answered with a fault: a write may have landed or not.
    #[error("store: unavailable: {0}")]
    Unavailable(String),
    /// An item is not what was written: a bug or tampering.
    #[error("store: corrupt item: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Whether the same call may go through later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            StoreError::Throttled | StoreError::Conflict | StoreError::Unavailable(_) => true,
            StoreError::Corrupt(_) => false,
        }
    }
}

/// Text for the log alone. It has no `Display`, so it cannot slip into a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Internal(pub String);

/// Why a use case did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// No key, or none that is valid.
    Unauthorized,
    /// The key is valid, but the path names another org, or it lacks a permission there.
    Forbidden(&'static str),
    /// The request is malformed; the text says what is wrong and what would be right.
    BadRequest(String),
    /// The request is well-formed and refused.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The present state, where the caller may see it and the answer carries it.
        current: Option<Box<Reservation>>,
    },
    /// A call with the same idempotency key has been answered before: that answer is the one.
    Answered,
    /// The store is over its rate.
    Throttled(Internal),
    /// Other writers stayed in the way.
    Contended(Internal),
    /// The store, or a result that was lost, cannot be had now.
    Unavailable(Internal),
    /// A bug.
    Bug(Internal),
}

impl Error {
    /// The one answer to whoever may not know of a thing, or asks for one that is not there.
    #[must_use]
    pub fn not_found() -> Self {
        Refusal::NotFound.into()
    }

    /// What a log may say of it: the cause, and nothing of a state that it carries, which has
    /// callers' words in it.
    #[must_use]
    pub fn for_log(&self) -> String {
        match self {
            Error::Throttled(internal)
            | Error::Contended(internal)
            | Error::Unavailable(internal)
            | Error::Bug(internal) => internal.0.clone(),
            Error::Refused { refusal, .. } => refusal.to_string(),
            Error::Unauthorized => "no valid key".to_owned(),
            Error::Answered => "answered before".to_owned(),
            Error::Forbidden(_) => "not allowed".to_owned(),
            Error::BadRequest(_) => "not a request that can be understood".to_owned(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused {
            refusal,
            current: None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let internal = Internal(error.to_string());
        match error {
            StoreError::Throttled => Error::Throttled(internal),
            StoreError::Conflict => Error::Contended(internal),
            StoreError::Unavailable(_) => Error::Unavailable(internal),
            StoreError::Corrupt(_) => Error::Bug(internal),
        }
    }
}

impl From<NoRandom> for Error {
    fn from(error: NoRandom) -> Self {
        Error::Bug(Internal(error.to_string()))
    }
}
