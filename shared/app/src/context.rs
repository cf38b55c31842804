//! What every use case knows of the call it serves.

use domain::stamp::{Actor, Stamp, WriteId};
use domain::{Caller, Timestamp};

use crate::auth::Principal;
use crate::error::{Error, Internal};

/// A call: who, and by which request.
#[derive(Debug, Clone)]
pub struct Context {
    /// Who stands behind it.
    pub principal: Principal,
    /// The request's id, a UUID of ours: the `x-request-id` of its answer.
    pub request_id: String,
}

impl Context {
    /// The holder of the key.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.principal.caller
    }

    /// The stamp of a command given at `now`.
    ///
    /// # Errors
    /// [`Error::Bug`] if the request id is no UUID.
    pub fn stamp(&self, now: Timestamp, reason: Option<String>) -> Result<Stamp, Error> {
        Ok(Stamp {
            actor: Actor::Caller(self.principal.caller.clone()),
            write: write_id(&self.request_id)?,
            request_id: self.request_id.clone(),
            reason,
            now,
        })
    }
}

/// The stamp of an action of the platform itself.
///
/// # Errors
/// [`Error::Bug`] if the request id is no UUID.
pub fn system_stamp(request_id: String, now: Timestamp) -> Result<Stamp, Error> {
    let write = write_id(&request_id)?;
    Ok(Stamp {
        actor: Actor::System,
        write,
        request_id,
        reason: None,
        now,
    })
}

/// The short write id of a request: the last 12 digits of its UUID, which are random.
fn write_id(request_id: &str) -> Result<WriteId, Error> {
    let digits = request_id.len().checked_sub(WriteId::DIGITS);
    digits
        .and_then(|from| request_id.get(from..))
        .and_then(WriteId::parse)
        .ok_or_else(|| Error::Bug(Internal("a request id is not a UUID".to_owned())))
}
