//! The item of an audit record.

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::Status;
use domain::audit::{ActorKind, AuditActor, Event, EventType, Record, Snapshot};

use super::{Item, Reader, Writer, fresh, open};
use crate::keys::{Key, PK, SK, Subject};

const KIND: &str = "audit";
const EVENT: &str = "event";
const NODE: &str = "node";
const AT: &str = "at";
const ACTOR: &str = "actor";
const REQUEST: &str = "rq";
const REASON: &str = "why";
const UNITS: &str = "units";
const VMS: &str = "vms";
const BEFORE: &str = "before";
const AFTER: &str = "after";
const PREV_HASH: &str = "prev";
const HASH: &str = "hash";

const ACTOR_KIND: &str = "k";
const ACTOR_ORG: &str = "o";
const ACTOR_KEY: &str = "y";
const STATUS: &str = "s";
const RELEASED: &str = "r";

/// The key of a record.
pub(crate) fn key(record: &Record) -> Key {
    let event = &record.event;
    Key::audit(&event.reservation, event.version, event.beside.as_ref())
}

/// The item of a record.
pub(crate) fn encode(record: &Record) -> Item {
    let event = &record.event;
    let mut writer = fresh(&key(record), KIND);
    writer.text(EVENT, event.event.as_str());
    writer.text(NODE, &event.node);
    writer.time(AT, event.at);
    writer.put(ACTOR, encode_actor(&event.actor));
    writer.text(REQUEST, &event.request_id);
    writer.maybe_text(REASON, event.reason.as_ref());
    writer.set(UNITS, &event.units);
    writer.set(VMS, &event.vms);
    for (name, snapshot) in [(BEFORE, &event.before), (AFTER, &event.after)] {
        if let Some(snapshot) = snapshot {
            writer.put(name, encode_snapshot(snapshot));
        }
    }
    writer.text(PREV_HASH, &record.prev_hash);
    writer.text(HASH, &record.hash);
    writer.item()
}

fn encode_actor(actor: &AuditActor) -> AttributeValue {
    let mut writer = Writer::default();
    writer.text(ACTOR_KIND, actor.kind.as_str());
    writer.maybe_text(ACTOR_ORG, actor.org.as_ref());
    writer.maybe_text(ACTOR_KEY, actor.key.as_ref());
    writer.map()
}

fn encode_snapshot(snapshot: &Snapshot) -> AttributeValue {
    let mut writer = Writer::default();
    writer.text(STATUS, snapshot.status);
    writer.set(RELEASED, &snapshot.released);
    writer.map()
}

/// Reads the item of a record.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one.
pub(crate) fn decode(item: &Item) -> StoreResult<Record> {
    let reader = open(item, KIND)?;
    let subject = Subject::parse(&reader.text(PK)?, &reader.text(SK)?);
    let Some(Subject::Audit(reservation, version, beside)) = subject else {
        return Err(reader.corrupt(PK, "an audit record's"));
    };
    let actor = reader.map(ACTOR)?;
    let event = Event {
        event: reader.parsed(EVENT, "an event", EventType::parse)?,
        reservation,
        node: reader.id(NODE)?,
        version,
        beside,
        at: reader.time(AT)?,
        actor: AuditActor {
            org: actor.maybe_id(ACTOR_ORG)?,
            key: actor.maybe_id(ACTOR_KEY)?,
            kind: actor.parsed(ACTOR_KIND, "a kind of actor", ActorKind::parse)?,
        },
        request_id: reader.text(REQUEST)?,
        reason: reader.maybe_text(REASON)?,
        units: reader.ids(UNITS)?,
        vms: reader.ids(VMS)?,
        before: decode_snapshot(&reader, BEFORE)?,
        after: decode_snapshot(&reader, AFTER)?,
    };
    Ok(Record {
        event,
        prev_hash: reader.text(PREV_HASH)?,
        hash: reader.text(HASH)?,
    })
}

fn decode_snapshot(reader: &Reader<'_>, name: &str) -> StoreResult<Option<Snapshot>> {
    let Some(snapshot) = reader.maybe_map(name)? else {
        return Ok(None);
    };
    Ok(Some(Snapshot {
        status: snapshot.parsed(STATUS, "a status", Status::parse)?,
        released: snapshot.ids(RELEASED)?,
    }))
}
