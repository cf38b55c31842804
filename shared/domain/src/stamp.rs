//! Who asks for a change, by which request, when and why: the stamp every write leaves on its item.

use std::collections::BTreeSet;

use crate::id::{KeyId, OrgId, UnitId, VmId};
use crate::time::Timestamp;
use crate::version::Version;

/// The holder of the API key behind a call. Its permissions were judged before it came here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The org the key belongs to.
    pub org: OrgId,
    /// The key's public id.
    pub key: KeyId,
    /// Whether the key belongs to an operator of the platform.
    pub operator: bool,
}

/// Who is behind an action: a caller, or the platform itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A call with an API key.
    Caller(Caller),
    /// A reaction of the platform: a confirmed stop, a term that ran out.
    System,
}

/// The short id of one write attempt: 12 lower-case hexadecimal digits, fresh for each request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(String);

impl WriteId {
    /// Digits of a write id.
    pub const DIGITS: usize = 12;

    /// Takes 12 lower-case hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == Self::DIGITS && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The write ids an item has seen last, each with the version it made.
///
/// A write that finds its own id here has landed before: its first reply was lost on the way. It is
/// known until so many later writes have come that it is pushed out: no single one can do that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recent(Vec<(WriteId, Version)>);

impl Recent {
    /// How many writes are kept.
    pub const KEPT: usize = 8;

    /// Rebuilds from stored writes, the latest first; those past the last kept one are dropped.
    pub fn from_latest(writes: impl IntoIterator<Item = (WriteId, Version)>) -> Self {
        Self(writes.into_iter().take(Self::KEPT).collect())
    }

    /// The writes, the latest first.
    pub fn latest(&self) -> impl Iterator<Item = (&WriteId, Version)> {
        self.0.iter().map(|(id, version)| (id, *version))
    }

    /// The version that this write made, if it is still known to have landed.
    #[must_use]
    pub fn landed(&self, write: &WriteId) -> Option<Version> {
        self.latest()
            .find(|(id, _)| *id == write)
            .map(|(_, version)| version)
    }

    /// Notes a write and the version it makes.
    pub fn note(&mut self, write: &WriteId, version: Version) {
        self.0.insert(0, (write.clone(), version));
        self.0.truncate(Self::KEPT);
    }
}

/// What a command carries beside its subject: who, by which write, when, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Who asks.
    pub actor: Actor,
    /// The write, fresh for each request.
    pub write: WriteId,
    /// The request's full id, for the audit trail.
    pub request_id: String,
    /// Why, in the caller's words; at most [`crate::limits::REASON_CHARS_MAX`] characters.
    pub reason: Option<String>,
    /// The instant the command is judged by.
    pub now: Timestamp,
}

impl Stamp {
    /// The caller, unless the platform itself acts.
    #[must_use]
    pub fn caller(&self) -> Option<&Caller> {
        match &self.actor {
            Actor::Caller(caller) => Some(caller),
            Actor::System => None,
        }
    }

    /// The action this stamp leaves on the item.
    #[must_use]
    pub fn action(&self, kind: ActionKind, units: &BTreeSet<UnitId>, vm: Option<&VmId>) -> Action {
        Action {
            kind,
            actor: self.actor.clone(),
            request_id: self.request_id.clone(),
            reason: self.reason.clone(),
            units: units.clone(),
            vm: vm.cloned(),
            at: self.now,
        }
    }
}

/// What was done to a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// It was made.
    Create,
    /// Units went on the spot market.
    Release,
    /// Units came back to exclusive use.
    Reclaim,
    /// An operator ended it.
    End,
    /// A VM was placed on its units.
    Place,
    /// A VM on its units was told to stop by its own org or by a manager.
    Stop,
    /// The stop of a VM on its units, or of one it had condemned, was confirmed.
    Confirm,
    /// Its term began and it took its units.
    Activate,
    /// Its term ran out and it gave its units back.
    Expire,
    /// The node's topology changed under it.
    Review,
    /// An operator put it back in force after a review.
    Reaffirm,
    /// A VM that it condemned is still not confirmed as gone.
    Stuck,
}

impl ActionKind {
    /// All kinds.
    pub const ALL: [ActionKind; 12] = [
        ActionKind::Create,
        ActionKind::Release,
        ActionKind::Reclaim,
        ActionKind::End,
        ActionKind::Place,
        ActionKind::Stop,
        ActionKind::Confirm,
        ActionKind::Activate,
        ActionKind::Expire,
        ActionKind::Review,
        ActionKind::Reaffirm,
        ActionKind::Stuck,
    ];

    /// Its stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ActionKind::Create => "create",
            ActionKind::Release => "release",
            ActionKind::Reclaim => "reclaim",
            ActionKind::End => "end",
            ActionKind::Place => "place",
            ActionKind::Stop => "stop",
            ActionKind::Confirm => "confirm",
            ActionKind::Activate => "activate",
            ActionKind::Expire => "expire",
            ActionKind::Review => "review",
            ActionKind::Reaffirm => "reaffirm",
            ActionKind::Stuck => "stuck",
        }
    }

    /// Reads a stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The last thing done to a reservation: the source of its audit record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// What.
    pub kind: ActionKind,
    /// By whom.
    pub actor: Actor,
    /// By which request.
    pub request_id: String,
    /// Why, in the caller's words.
    pub reason: Option<String>,
    /// On which units.
    pub units: BTreeSet<UnitId>,
    /// On which VM, where it concerns one.
    pub vm: Option<VmId>,
    /// When.
    pub at: Timestamp,
}
