//! Every way to say no to a well-formed command.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{ReservationId, UnitId, VmId};
use crate::reservation::Status;
use crate::time::Timestamp;
use crate::version::Version;

/// Why a command does not go through. Declared in order of precedence: where several apply, the
/// first is the answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing, or the caller may not know of it: one answer for both.
    #[error("no such resource, or it is not visible to this key")]
    NotFound,
    /// The caller's picture of the item is not its present state.
    #[error("the resource is at version {current}, not at the version that If-Match names")]
    VersionMismatch {
        /// The present version.
        current: Version,
    },
    /// The reservation grants nothing now.
    #[error("the reservation is {0} now; this call needs it active and inside its term")]
    ReservationNotActive(Status),
    /// Units that do not belong to the reservation.
    #[error("not reserved by this reservation: {}", list(.0))]
    UnitNotReserved(BTreeSet<UnitId>),
    /// Units that the node does not have.
    #[error("not units of this node: {}", list(.0))]
    UnknownUnit(BTreeSet<UnitId>),
    /// An end that is not after the start, or is already past.
    #[error("endsAt must lie after startsAt and ahead of now")]
    EndsTooEarly,
    /// Units that other reservations have within the term asked for.
    #[error("already reserved: {}{}", holders(.0), free_from(*.1))]
    UnitsAlreadyReserved(BTreeMap<UnitId, ReservationId>, Option<Timestamp>),
    /// The reservation is not under review, so there is nothing to re-affirm.
    #[error("the reservation is {0}; only one that is needs-review can be re-affirmed")]
    NotInReview(Status),
    /// Units of the reservation that its node does not have any more.
    #[error("the node does not have these units any more: {}", list(.0))]
    UnitsLost(BTreeSet<UnitId>),
    /// A report of a topology that is not newer than the one known.
    #[error("the node is at topologyGen {0}; a report must carry a higher one")]
    StaleTopology(u64),
    /// Units on which a condemned spot VM still runs.
    #[error("a condemned VM is still stopping on: {}; release them once it is gone", list(.0))]
    UnitDraining(BTreeSet<UnitId>),
    /// Nothing that fits is free.
    #[error("no capacity: {0}")]
    InsufficientCapacity(String),
    /// The VM was never told to stop, so its stop cannot be confirmed.
    #[error("VM {0} is not condemned; only the stop of a condemned VM can be confirmed")]
    VmNotCondemned(VmId),
    /// The node is registered with other properties.
    #[error("the node is already registered with another {0}")]
    NodeAlreadyRegistered(&'static str),
    /// The idempotency key belongs to another call.
    #[error("this Idempotency-Key belongs to another call; use a fresh one for each call")]
    IdempotencyKeyReused,
    /// A call with the same idempotency key may still be under way.
    #[error("a call with this Idempotency-Key may be under way; send it again in a second")]
    InFlight,
    /// A bound of the product is reached.
    #[error("{0}")]
    LimitReached(String),
}

/// Ids with commas between.
fn list(units: &BTreeSet<UnitId>) -> String {
    units
        .iter()
        .map(UnitId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

fn holders(units: &BTreeMap<UnitId, ReservationId>) -> String {
    let each = units
        .iter()
        .map(|(unit, holder)| format!("{unit} by {holder}"));
    each.collect::<Vec<_>>().join(", ")
}

/// The sentence that says from when on the units are free, if they ever are.
fn free_from(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => format!("; all of them are free from {at}"),
        None => "; no time is known from which all of them are free".to_owned(),
    }
}
