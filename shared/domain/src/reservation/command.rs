//! What can be asked of a reservation.

use std::collections::BTreeSet;

use crate::id::{OrgId, ReservationId};
use crate::stamp::Stamp;
use crate::time::Timestamp;
use crate::unit_set::UnitSet;
use crate::version::Version;

/// Put units on the spot market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Which units; all or nothing.
    pub units: UnitSet,
    /// The version the caller saw, where the call depends on it.
    pub expected: Option<Version>,
    /// Who, when, why.
    pub stamp: Stamp,
}

/// Take units back into exclusive use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// Which units; all or nothing.
    pub units: UnitSet,
    /// The version the caller saw, where the call depends on it.
    pub expected: Option<Version>,
    /// Who, when, why.
    pub stamp: Stamp,
}

/// End a reservation now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The version the caller saw, where the call depends on it.
    pub expected: Option<Version>,
    /// Who, when, why.
    pub stamp: Stamp,
}

/// Put a reservation back in force after a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaffirm {
    /// The version the caller saw, where the call depends on it.
    pub expected: Option<Version>,
    /// Who, when, why.
    pub stamp: Stamp,
}

/// Reserve units of a node for a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The new reservation's id.
    pub id: ReservationId,
    /// Which units.
    pub units: UnitSet,
    /// Orgs that may place workloads on them.
    pub audience: BTreeSet<OrgId>,
    /// Orgs that may release and reclaim them.
    pub managers: BTreeSet<OrgId>,
    /// When the term starts; `None` is now.
    pub starts: Option<Timestamp>,
    /// When the term ends; `None` is open-ended.
    pub ends: Option<Timestamp>,
    /// A reference to a contract.
    pub contract_ref: Option<String>,
    /// Who, when, why.
    pub stamp: Stamp,
}
