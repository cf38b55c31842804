//! The state of a reservation, and what a caller is to it.

use std::collections::BTreeSet;

use crate::id::{GpuModelId, NodeId, OrgId, ReservationId, UnitId};
use crate::limits::AUDIT_LOST_AFTER_MS;
use crate::slot::{Offer, Slots, condemned};
use crate::stamp::{Action, Caller, Recent};
use crate::time::{Term, Timestamp};
use crate::unit_set::UnitSet;
use crate::version::Version;

/// Where a reservation is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Booked; its term has not begun.
    Pending,
    /// It holds its units.
    Active,
    /// Its term ran out.
    Expired,
    /// An operator ended it.
    Cancelled,
    /// The node's GPU topology changed under it: it grants nothing and withholds its units.
    NeedsReview,
}

impl Status {
    /// All, as the API lists them.
    pub const ALL: [Status; 5] = [
        Status::Pending,
        Status::Active,
        Status::Expired,
        Status::Cancelled,
        Status::NeedsReview,
    ];

    /// Those that may hold slots: units are in a reservation's hands in these and no others.
    pub const HOLDING: [Status; 2] = [Status::Active, Status::NeedsReview];

    /// Those in which a reservation is booked on its node: not expired, not cancelled.
    pub const LIVE: [Status; 3] = [Status::Pending, Status::Active, Status::NeedsReview];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Active => "active",
            Status::Expired => "expired",
            Status::Cancelled => "cancelled",
            Status::NeedsReview => "needs-review",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A boundary of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Boundary {
    /// The term begins: the reservation takes its units.
    Start,
    /// The term is over: the reservation gives its units back.
    End,
}

/// What a caller is to a reservation; the strongest that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// An operator of the platform.
    Operator,
    /// The org that owns the node.
    Owner,
    /// An org that may release and reclaim while the reservation is active and in its term.
    Manager,
    /// An org that may place workloads on the units, and read.
    Audience,
    /// Anyone else: the reservation does not exist for them.
    Stranger,
}

impl Relation {
    /// Whether the reservation exists for this caller at all.
    #[must_use]
    pub fn may_see(self) -> bool {
        self != Relation::Stranger
    }

    /// Whether the capacity verbs exist for this caller.
    #[must_use]
    pub fn may_manage(self) -> bool {
        self <= Relation::Manager
    }
}

/// A reservation with the units in its hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// The node whose units it reserves.
    pub node: NodeId,
    /// The org that owns the node.
    pub node_owner: OrgId,
    /// The GPU model of the node.
    pub gpu_model: GpuModelId,
    /// The units it reserves.
    pub units: UnitSet,
    /// Those of them that are on the spot market.
    pub released: BTreeSet<UnitId>,
    /// Orgs that may place workloads on the units.
    pub audience: BTreeSet<OrgId>,
    /// Orgs that may release and reclaim while it is active and in its term.
    pub managers: BTreeSet<OrgId>,
    /// From when until when.
    pub term: Term,
    /// Its stored status; what it is worth at an instant says [`Reservation::status_at`].
    pub status: Status,
    /// The node's topology generation it was written against.
    pub topology_gen: u64,
    /// A reference to a contract, in the caller's words.
    pub contract_ref: Option<String>,
    /// Why it was made, in the caller's words.
    pub reason: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The units in its hands: all of them while it is active; all or none while it needs review,
    /// as its term has begun or not; else none.
    pub slots: Slots,
    /// Changes so far.
    pub version: Version,
    /// The last change.
    pub last_action: Action,
    /// Write ids of the last changes.
    pub recent: Recent,
    /// When it is to be looked at again: a boundary of its term, or a drain.
    pub due_at: Option<Timestamp>,
}

impl Reservation {
    /// What the status is worth at `now`: a term that has run out ends the grant at once, whether
    /// or not the change has been written yet.
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> Status {
        match self.status {
            Status::Active | Status::NeedsReview | Status::Pending if self.term.is_over(now) => {
                Status::Expired
            }
            Status::Active if !self.term.contains(now) => Status::Pending,
            status => status,
        }
    }

    /// What it is to be called at `now`: a term that has begun makes it active, although it takes
    /// its units only with the next call that needs them, or with the next sweep.
    #[must_use]
    pub fn shown_at(&self, now: Timestamp) -> Status {
        match self.status_at(now) {
            Status::Pending if self.term.contains(now) => Status::Active,
            status => status,
        }
    }

    /// Whether its units are in its hands.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.slots.is_empty()
    }

    /// The boundary of its term that has come by `now` and is not written yet.
    #[must_use]
    pub fn boundary(&self, now: Timestamp) -> Option<Boundary> {
        if !Status::LIVE.contains(&self.status) {
            return None;
        }
        if self.term.is_over(now) {
            return Some(Boundary::End);
        }
        (!self.holds() && self.term.contains(now)).then_some(Boundary::Start)
    }

    /// The next boundary of its term that is not written yet.
    #[must_use]
    pub fn next_boundary(&self) -> Option<Timestamp> {
        if !Status::LIVE.contains(&self.status) {
            return None;
        }
        if self.holds() {
            return self.term.ends;
        }
        let starts = self.term.starts;
        Some(self.term.ends.map_or(starts, |ends| ends.min(starts)))
    }

    /// When it is to be looked at next, by its state alone: at the next boundary of its term, and
    /// at once where a VM on its units is condemned.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let draining = !condemned(&self.slots, self.offer()).is_empty();
        let drain = draining.then_some(self.updated_at);
        drain.into_iter().chain(self.next_boundary()).min()
    }

    /// Sets when it is to be looked at next, by its state and after a change at `now`: when nothing
    /// else is waited for, once the record of the change must have come.
    pub(crate) fn look_after(&mut self, now: Timestamp) {
        let due = self.next_due();
        self.due_at = Some(due.unwrap_or_else(|| now.plus_ms(AUDIT_LOST_AFTER_MS)));
    }

    /// What `caller` is to this reservation.
    #[must_use]
    pub fn relation(&self, caller: &Caller) -> Relation {
        if caller.operator {
            Relation::Operator
        } else if caller.org == self.node_owner {
            Relation::Owner
        } else if self.managers.contains(&caller.org) {
            Relation::Manager
        } else if self.audience.contains(&caller.org) {
            Relation::Audience
        } else {
            Relation::Stranger
        }
    }

    /// What it offers to spot: its released units.
    #[must_use]
    pub fn offer(&self) -> Offer<'_> {
        Offer::Only(&self.released)
    }
}
