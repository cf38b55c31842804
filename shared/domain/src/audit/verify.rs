//! Whether a trail is whole: every record unchanged, in its place, and none missing.
//!
//! The hashes hold no secret. Whoever may write the table may therefore rewrite a trail from some
//! record on, hash after hash, so that it is sound in itself. That is found only by comparing with
//! a hash that was kept elsewhere, a [`Head`]: whatever lies at or before it is the very trail that
//! was verified when it was taken. What lies behind it is proved by nobody but the table's keeper.
//! A cut tail, likewise, is found only by whoever knows which version the reservation is at.

use super::{ActorKind, Event, EventType, Record, Snapshot, hash};
use crate::id::VmId;
use crate::version::Version;

/// A hash that a trail is known to have had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The version whose last record has it; `None` if any record may.
    pub version: Option<Version>,
    /// The hash, in lower-case hexadecimal.
    pub hash: String,
}

/// What a verifier knows of a trail beside the trail itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The version that the trail must have come to.
    pub at_least: Version,
    /// The version that it cannot have passed; `None` if nobody knows.
    pub at_most: Option<Version>,
    /// A hash that it must have.
    pub head: Option<Head>,
}

impl From<Version> for Expected {
    /// The trail of a reservation that is at exactly this version.
    fn from(current: Version) -> Self {
        Self {
            at_least: current,
            at_most: Some(current),
            head: None,
        }
    }
}

/// Versions whose records were lost for good, and that the trail says so of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The first of them.
    pub first: Version,
    /// The last of them.
    pub last: Version,
}

/// A trail that holds together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many records it has.
    pub records: usize,
    /// The version that it has come to.
    pub last: Version,
    /// The hash of its last record: what to keep, to verify by later.
    pub head: String,
    /// What it says is lost.
    pub gaps: Vec<Lost>,
}

/// What is wrong with a trail, and where: everything before that place holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {place}, version {version}: {wrong}")]
pub struct Fault {
    /// The record, counted from 0; the number of records where it is about what should follow them.
    pub place: usize,
    /// That record's version; past the last one, the version that should have been there.
    pub version: Version,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It does not have the hash it carries.
    #[error("it was changed: its hash does not match its content")]
    Changed,
    /// It belongs elsewhere.
    #[error("it is of another reservation or node than the records before it")]
    Foreign,
    /// It tells of what has not happened.
    #[error("the reservation has come to version {current} only")]
    Ahead {
        /// The reservation's version.
        current: Version,
    },
    /// A record that belongs before it is not there.
    #[error("a record that belongs before it is missing")]
    Missing,
    /// Its place has gone by.
    #[error("it repeats a record, or stands behind a later one")]
    Repeated,
    /// It does not carry the hash of the one before.
    #[error("it is not linked to the record before it")]
    Unlinked,
    /// It cannot have followed.
    #[error("what it says does not fit the records before it")]
    Misfit,
    /// The trail ends too early.
    #[error("the trail ends before it, and the reservation has come to version {current}")]
    Truncated {
        /// The reservation's version.
        current: Version,
    },
    /// It is not what it was: this record or one before it was rewritten, or the hash is of another
    /// trail.
    #[error("the trail does not have the expected hash here; it was rewritten here or before")]
    OtherHead,
}

/// Checks a whole trail, oldest record first, against what is known beside it.
///
/// # Errors
/// The first [`Fault`], which says where it is.
pub fn verify(records: &[Record], expected: impl Into<Expected>) -> Result<Verified, Fault> {
    let expected = expected.into();
    let mut walk = Walk {
        records,
        expected: &expected,
        own: None,
        besides: 0,
        gaps: Vec::new(),
    };
    for (place, record) in records.iter().enumerate() {
        walk.step(place, record).map_err(|wrong| Fault {
            place,
            version: record.event.version,
            wrong,
        })?;
    }
    walk.end()
}

/// A trail on the way through it.
struct Walk<'a> {
    records: &'a [Record],
    expected: &'a Expected,
    /// The record of the version that was reached, its own or the gap in its place.
    own: Option<&'a Record>,
    /// How many records stand beside it so far.
    besides: usize,
    gaps: Vec<Lost>,
}

impl<'a> Walk<'a> {
    fn step(&mut self, place: usize, record: &'a Record) -> Result<(), Wrong> {
        let event = &record.event;
        if hash(event, &record.prev_hash) != record.hash {
            return Err(Wrong::Changed);
        }
        let first = self.records.first().map_or(event, |first| &first.event);
        if (&event.reservation, &event.node) != (&first.reservation, &first.node) {
            return Err(Wrong::Foreign);
        }
        if let Some(current) = self.expected.at_most
            && event.version > current
        {
            return Err(Wrong::Ahead { current });
        }
        match &event.beside {
            Some(vm) => self.in_turn_beside(event, vm)?,
            None => self.in_turn(event)?,
        }
        let before = place
            .checked_sub(1)
            .and_then(|before| self.records.get(before));
        if record.prev_hash != before.map_or("", |before| before.hash.as_str()) {
            return Err(Wrong::Unlinked);
        }
        if !self.fits(event) {
            return Err(Wrong::Misfit);
        }
        self.take(record);
        Ok(())
    }

    fn take(&mut self, record: &'a Record) {
        let event = &record.event;
        if event.beside.is_some() {
            self.besides += 1;
            return;
        }
        if event.event == EventType::Gap {
            let first = self.due();
            let last = event.version;
            self.gaps.push(Lost { first, last });
        }
        self.own = Some(record);
        self.besides = 0;
    }

    /// The version whose record comes next.
    fn due(&self) -> Version {
        let reached = self.own.map(|own| own.event.version);
        reached.map_or(Version::FIRST, Version::next)
    }

    /// The VMs that still need a record beside that of the version that was reached.
    fn owed(&self) -> impl Iterator<Item = &'a VmId> {
        let own = self.own.filter(|own| condemns(own.event.event));
        let vms = own.into_iter().flat_map(|own| &own.event.vms);
        vms.skip(self.besides)
    }

    fn in_turn(&self, event: &Event) -> Result<(), Wrong> {
        let due = self.due();
        if event.version < due {
            return Err(Wrong::Repeated);
        }
        let jumps = event.version > due && event.event != EventType::Gap;
        if jumps || self.owed().next().is_some() {
            return Err(Wrong::Missing);
        }
        Ok(())
    }

    fn in_turn_beside(&self, event: &Event, vm: &VmId) -> Result<(), Wrong> {
        let reached = self.own.map(|own| own.event.version);
        if reached.is_none_or(|reached| reached < event.version) {
            return Err(Wrong::Missing);
        }
        if reached > Some(event.version) {
            return Err(Wrong::Repeated);
        }
        let named = self.own.is_some_and(|own| own.event.vms.contains(vm));
        match self.owed().position(|owed| owed == vm) {
            Some(0) => Ok(()),
            Some(_) => Err(Wrong::Missing),
            None if named && self.besides > 0 => Err(Wrong::Repeated),
            None => Err(Wrong::Misfit),
        }
    }

    /// Whether the record says what a record in this place can say.
    fn fits(&self, event: &Event) -> bool {
        let own = self.own.map(|own| &own.event);
        if let Some(vm) = &event.beside {
            return own.is_some_and(|own| fits_beside(event, vm, own));
        }
        if event.event == EventType::Gap {
            return is_plain_gap(event);
        }
        let made = event.event == EventType::Created;
        let starts = event.version == Version::FIRST;
        // Behind a gap nobody knows what was before.
        let known = own.filter(|own| own.event != EventType::Gap);
        let before: Option<&Snapshot> = known.and_then(|own| own.after.as_ref());
        made == starts
            && made == event.before.is_none()
            && event.after.is_some()
            && (known.is_none() || before == event.before.as_ref())
    }

    fn end(self) -> Result<Verified, Fault> {
        let current = self.expected.at_least;
        let place = self.records.len();
        let truncated = |version| Fault {
            place,
            version,
            wrong: Wrong::Truncated { current },
        };
        let (Some(own), Some(head)) = (self.own, self.records.last()) else {
            return Err(truncated(Version::FIRST));
        };
        let last = own.event.version;
        if self.owed().next().is_some() {
            return Err(truncated(last));
        }
        if last < current {
            return Err(truncated(last.next()));
        }
        if let Some(expected) = &self.expected.head {
            self.has(expected)?;
        }
        Ok(Verified {
            records: place,
            last,
            head: head.hash.clone(),
            gaps: self.gaps,
        })
    }

    /// Checks that the trail has this hash where it should.
    fn has(&self, head: &Head) -> Result<(), Fault> {
        let up_to = |version: Version| {
            let within = self.records.iter();
            within
                .take_while(|record| record.event.version <= version)
                .count()
        };
        // The version's last record; the gap that swallowed it, if one did.
        let count = head.version.map_or(self.records.len(), up_to);
        let reached = count.checked_sub(1).map(|place| &self.records[place]);
        let there = match (head.version, reached) {
            (None, _) => self.records.iter().any(|record| record.hash == head.hash),
            (version, Some(record)) => {
                Some(record.event.version) == version && record.hash == head.hash
            }
            (_, None) => false,
        };
        if there {
            return Ok(());
        }
        let place = match reached {
            Some(record) if head.version.is_none_or(|v| v == record.event.version) => count - 1,
            _ => count,
        };
        let found = self.records.get(place).map(|record| record.event.version);
        Err(Fault {
            place,
            version: found.or(head.version).unwrap_or(Version::FIRST),
            wrong: Wrong::OtherHead,
        })
    }
}

/// Whether the VMs of such a record are those that the change condemned, each with a record beside
/// it, as against the one VM that it is about.
fn condemns(event: EventType) -> bool {
    match event {
        EventType::Created
        | EventType::Released
        | EventType::Reclaimed
        | EventType::Ended
        | EventType::Activated
        | EventType::Expired
        | EventType::NeedsReview
        | EventType::Reaffirmed => true,
        EventType::VmPlaced
        | EventType::VmCondemned
        | EventType::VmTerminated
        | EventType::VmStuck
        | EventType::Gap => false,
    }
}

fn fits_beside(event: &Event, vm: &VmId, own: &Event) -> bool {
    let plain = event.event == EventType::VmCondemned
        && event.vms.iter().eq([vm])
        && event.before.is_none()
        && event.after.is_none();
    plain
        && (&event.at, &event.actor) == (&own.at, &own.actor)
        && (&event.request_id, &event.reason) == (&own.request_id, &own.reason)
}

fn is_plain_gap(event: &Event) -> bool {
    let system = event.actor.kind == ActorKind::System
        && event.actor.org.is_none()
        && event.actor.key.is_none();
    let told = event.reason.is_some() || !event.units.is_empty() || !event.vms.is_empty();
    system && !told && event.before.is_none() && event.after.is_none()
}
