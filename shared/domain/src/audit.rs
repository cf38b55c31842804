//! The audit trail: one record for every version of a reservation, and one for every VM it
//! condemns, each linked to the one before by its hash.

mod verify;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::id::{KeyId, NodeId, OrgId, ReservationId, UnitId, VmId};
use crate::reservation::{Relation, Reservation, Status};
use crate::slot::condemned;
use crate::stamp::{ActionKind, Actor};
use crate::time::Timestamp;
use crate::version::Version;

pub use verify::{Expected, Fault, Head, Lost, Verified, Wrong, verify};

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// A reservation was made.
    Created,
    /// Units went on the spot market.
    Released,
    /// Units came back.
    Reclaimed,
    /// An operator ended it.
    Ended,
    /// Its term began.
    Activated,
    /// Its term ran out.
    Expired,
    /// The node's topology changed under it.
    NeedsReview,
    /// An operator put it back in force.
    Reaffirmed,
    /// A VM was placed on its units.
    VmPlaced,
    /// A VM on its units is to be terminated.
    VmCondemned,
    /// The stop of such a VM, or of another on its units, was confirmed.
    VmTerminated,
    /// The stop of a condemned VM is overdue.
    VmStuck,
    /// Records of these versions were lost for good; the chain goes on.
    Gap,
}

impl EventType {
    /// All types.
    pub const ALL: [EventType; 13] = [
        EventType::Created,
        EventType::Released,
        EventType::Reclaimed,
        EventType::Ended,
        EventType::Activated,
        EventType::Expired,
        EventType::NeedsReview,
        EventType::Reaffirmed,
        EventType::VmPlaced,
        EventType::VmCondemned,
        EventType::VmTerminated,
        EventType::VmStuck,
        EventType::Gap,
    ];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Created => "reservation.created",
            EventType::Released => "reservation.released",
            EventType::Reclaimed => "reservation.reclaimed",
            EventType::Ended => "reservation.ended",
            EventType::Activated => "reservation.activated",
            EventType::Expired => "reservation.expired",
            EventType::NeedsReview => "reservation.needs_review",
            EventType::Reaffirmed => "reservation.reaffirmed",
            EventType::VmPlaced => "vm.placed",
            EventType::VmCondemned => "vm.condemned",
            EventType::VmTerminated => "vm.terminated",
            EventType::VmStuck => "vm.stuck",
            EventType::Gap => "audit.gap",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    fn of(action: ActionKind) -> Self {
        match action {
            ActionKind::Create => EventType::Created,
            ActionKind::Release => EventType::Released,
            ActionKind::Reclaim => EventType::Reclaimed,
            ActionKind::End => EventType::Ended,
            ActionKind::Place => EventType::VmPlaced,
            ActionKind::Stop => EventType::VmCondemned,
            ActionKind::Confirm => EventType::VmTerminated,
            ActionKind::Activate => EventType::Activated,
            ActionKind::Expire => EventType::Expired,
            ActionKind::Review => EventType::NeedsReview,
            ActionKind::Reaffirm => EventType::Reaffirmed,
            ActionKind::Stuck => EventType::VmStuck,
        }
    }
}

/// In what capacity somebody acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActorKind {
    /// An operator of the platform.
    Operator,
    /// The node's owner org.
    Owner,
    /// An org in `managingOrgIds`.
    Manager,
    /// An org that places and stops its own VMs.
    Tenant,
    /// The platform itself.
    System,
}

impl ActorKind {
    /// All kinds.
    pub const ALL: [ActorKind; 5] = [
        ActorKind::Operator,
        ActorKind::Owner,
        ActorKind::Manager,
        ActorKind::Tenant,
        ActorKind::System,
    ];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ActorKind::Operator => "operator",
            ActorKind::Owner => "owner",
            ActorKind::Manager => "manager",
            ActorKind::Tenant => "tenant",
            ActorKind::System => "system",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Who acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// The org, unless the platform itself acted.
    pub org: Option<OrgId>,
    /// The key's public id, unless the platform itself acted.
    pub key: Option<KeyId>,
    /// In what capacity.
    pub kind: ActorKind,
}

/// What an audited change shows of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its stored status.
    pub status: Status,
    /// Its released units.
    pub released: BTreeSet<UnitId>,
}

impl Snapshot {
    fn of(reservation: &Reservation) -> Self {
        Self {
            status: reservation.status,
            released: reservation.released.clone(),
        }
    }
}

/// A record's content, before it has its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What it tells of.
    pub event: EventType,
    /// The reservation.
    pub reservation: ReservationId,
    /// Its node.
    pub node: NodeId,
    /// The version of the reservation that the change made; of a gap, the last one lost.
    pub version: Version,
    /// Set on the records that stand beside a version's own: the VM it condemned.
    pub beside: Option<VmId>,
    /// When the change was made.
    pub at: Timestamp,
    /// Who made it.
    pub actor: AuditActor,
    /// By which request.
    pub request_id: String,
    /// Why, in the caller's words.
    pub reason: Option<String>,
    /// The units concerned.
    pub units: BTreeSet<UnitId>,
    /// The VMs concerned.
    pub vms: BTreeSet<VmId>,
    /// The reservation before.
    pub before: Option<Snapshot>,
    /// The reservation after.
    pub after: Option<Snapshot>,
}

/// A record in its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it tells.
    pub event: Event,
    /// The hash of the record before; empty for the first.
    pub prev_hash: String,
    /// The hash of this one.
    pub hash: String,
}

impl Event {
    /// The record's id: unique within the system and the same whenever it is made.
    #[must_use]
    pub fn id(&self) -> String {
        match &self.beside {
            None => format!("{}:{}", self.reservation, self.version),
            Some(vm) => format!("{}:{}:{vm}", self.reservation, self.version),
        }
    }

    /// Puts the record behind the one with this hash.
    #[must_use]
    pub fn seal(self, prev_hash: &str) -> Record {
        let hash = hash(&self, prev_hash);
        Record {
            event: self,
            prev_hash: prev_hash.to_owned(),
            hash,
        }
    }
}

/// The records that a change of a reservation makes, in the order of the chain: the version's own,
/// then one for each VM it condemned. None for an image that is not newer.
#[must_use]
pub fn events(old: Option<&Reservation>, new: &Reservation) -> Vec<Event> {
    if old.is_some_and(|old| new.version <= old.version) {
        return Vec::new();
    }
    let before = old
        .map(|old| condemned(&old.slots, old.offer()))
        .unwrap_or_default();
    let after = condemned(&new.slots, new.offer());
    let fresh: Vec<_> = after
        .into_iter()
        .filter(|(vm, _)| !before.contains_key(vm))
        .collect();
    let action = &new.last_action;
    let own = Event {
        event: EventType::of(action.kind),
        reservation: new.id.clone(),
        node: new.node.clone(),
        version: new.version,
        beside: None,
        at: action.at,
        actor: actor(new),
        request_id: action.request_id.clone(),
        reason: action.reason.clone(),
        units: action.units.clone(),
        vms: action
            .vm
            .iter()
            .chain(fresh.iter().map(|(vm, _)| vm))
            .cloned()
            .collect(),
        before: old.map(Snapshot::of),
        after: Some(Snapshot::of(new)),
    };
    let mut out = vec![own.clone()];
    if action.kind != ActionKind::Stop {
        out.extend(fresh.into_iter().map(|(vm, sentence)| Event {
            event: EventType::VmCondemned,
            beside: Some(vm.clone()),
            units: sentence.units,
            vms: [vm].into(),
            before: None,
            after: None,
            ..own.clone()
        }));
    }
    out
}

/// The record that stands for lost versions up to and including `last`.
#[must_use]
pub fn gap(next: &Event, last: Version) -> Event {
    Event {
        event: EventType::Gap,
        version: last,
        beside: None,
        actor: AuditActor {
            org: None,
            key: None,
            kind: ActorKind::System,
        },
        reason: None,
        units: BTreeSet::new(),
        vms: BTreeSet::new(),
        before: None,
        after: None,
        ..next.clone()
    }
}

/// The record that stands for the lost versions at the end of a trail, up to the one that the
/// reservation is at.
#[must_use]
pub fn lost_tail(reservation: &Reservation) -> Option<Event> {
    let own = events(None, reservation).into_iter().next()?;
    Some(gap(&own, reservation.version))
}

fn actor(reservation: &Reservation) -> AuditActor {
    match &reservation.last_action.actor {
        Actor::System => AuditActor {
            org: None,
            key: None,
            kind: ActorKind::System,
        },
        Actor::Caller(caller) => AuditActor {
            org: Some(caller.org.clone()),
            key: Some(caller.key.clone()),
            kind: match reservation.relation(caller) {
                Relation::Operator => ActorKind::Operator,
                Relation::Owner => ActorKind::Owner,
                Relation::Manager => ActorKind::Manager,
                Relation::Audience | Relation::Stranger => ActorKind::Tenant,
            },
        },
    }
}

/// SHA-256 of the record's canonical JSON without its hash, in lower-case hexadecimal.
fn hash(event: &Event, prev_hash: &str) -> String {
    let digest = Sha256::digest(canonical(event, prev_hash).as_bytes());
    digest
        .iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}

/// The record as JSON with its members in order of their names, no white space, absent members left
/// out: one text for one record, whoever writes it.
#[must_use]
pub fn canonical(event: &Event, prev_hash: &str) -> String {
    let actor = &event.actor;
    let actor = object(&[
        ("keyId", actor.key.as_ref().map(|key| string(key.as_str()))),
        ("kind", Some(string(actor.kind.as_str()))),
        ("orgId", actor.org.as_ref().map(|org| string(org.as_str()))),
    ]);
    object(&[
        ("actor", Some(actor)),
        ("after", event.after.as_ref().map(snapshot)),
        ("at", Some(string(&event.at.to_string()))),
        ("before", event.before.as_ref().map(snapshot)),
        ("id", Some(string(&event.id()))),
        ("nodeId", Some(string(event.node.as_str()))),
        ("prevHash", Some(string(prev_hash))),
        ("reason", event.reason.as_deref().map(string)),
        ("requestId", Some(string(&event.request_id))),
        ("reservationId", Some(string(event.reservation.as_str()))),
        ("type", Some(string(event.event.as_str()))),
        (
            "unitIds",
            Some(array(event.units.iter().map(UnitId::as_str))),
        ),
        ("version", Some(event.version.to_string())),
        ("vmIds", Some(array(event.vms.iter().map(VmId::as_str)))),
    ])
}

fn snapshot(snapshot: &Snapshot) -> String {
    object(&[
        (
            "releasedUnitIds",
            Some(array(snapshot.released.iter().map(UnitId::as_str))),
        ),
        ("status", Some(string(snapshot.status.as_str()))),
    ])
}

fn object(members: &[(&str, Option<String>)]) -> String {
    let present = members.iter().filter_map(|(name, value)| {
        value
            .as_ref()
            .map(|value| format!("{}:{value}", string(name)))
    });
    format!("{{{}}}", present.collect::<Vec<_>>().join(","))
}

fn array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(string).collect::<Vec<_>>().join(","))
}

/// A JSON string, escaped as RFC 8785 has it.
fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
