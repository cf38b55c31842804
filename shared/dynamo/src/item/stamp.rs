//! What a write leaves on its item: its id among the last ones, and the action.

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::stamp::{Action, ActionKind, Actor, Recent};
use domain::{Caller, Timestamp, Version, WriteId};

use super::{Reader, Writer, number, text};
use crate::keys::{DUE_AT, DUE_PK, due_pk};

/// The attribute that lists the last write ids, the latest first. It is always of one length, so
/// that an update can push them on by one without knowing them.
pub(crate) const RECENT_IDS: &str = "rc";
/// The attribute that lists the versions that they made.
pub(crate) const RECENT_VERSIONS: &str = "rn";
/// Stands where there has been no write yet.
const NO_WRITE: &str = "-";

const KIND: &str = "k";
const ORG: &str = "o";
const KEY: &str = "y";
const OPERATOR: &str = "op";
const REQUEST: &str = "rq";
const REASON: &str = "why";
const UNITS: &str = "u";
const VM: &str = "vm";
const AT: &str = "at";

/// Writes the recent writes.
pub(crate) fn put_recent(writer: &mut Writer, recent: &Recent) {
    let (mut ids, mut versions): (Vec<_>, Vec<_>) = recent
        .latest()
        .map(|(id, version)| (text(id.as_str()), number(version)))
        .unzip();
    ids.resize(Recent::KEPT, text(NO_WRITE));
    versions.resize(Recent::KEPT, number(0));
    writer.put(RECENT_IDS, AttributeValue::L(ids));
    writer.put(RECENT_VERSIONS, AttributeValue::L(versions));
}

/// Reads the recent writes.
pub(crate) fn recent(item: &Reader<'_>) -> StoreResult<Recent> {
    let (ids, versions) = (item.list(RECENT_IDS)?, item.list(RECENT_VERSIONS)?);
    if ids.len() != Recent::KEPT || versions.len() != Recent::KEPT {
        return Err(item.corrupt(RECENT_IDS, "a list of the writes that are kept"));
    }
    let written = ids.iter().zip(versions);
    let written = written.take_while(|(id, _)| !id.as_s().is_ok_and(|id| id == NO_WRITE));
    let writes: Option<Vec<_>> = written
        .map(|(id, version)| {
            let id = WriteId::parse(id.as_s().ok()?)?;
            let version = Version::stored(version.as_n().ok()?.parse().ok()?)?;
            Some((id, version))
        })
        .collect();
    let writes = writes.ok_or_else(|| item.corrupt(RECENT_IDS, "write ids with versions"))?;
    Ok(Recent::from_latest(writes))
}

/// The stored form of an action.
pub(crate) fn action(action: &Action) -> AttributeValue {
    let mut writer = Writer::default();
    writer.text(KIND, action.kind.as_str());
    if let Actor::Caller(caller) = &action.actor {
        writer.text(ORG, &caller.org);
        writer.text(KEY, &caller.key);
        writer.flag(OPERATOR, caller.operator);
    }
    writer.text(REQUEST, &action.request_id);
    writer.maybe_text(REASON, action.reason.as_ref());
    writer.set(UNITS, &action.units);
    writer.maybe_text(VM, action.vm.as_ref());
    writer.time(AT, action.at);
    writer.map()
}

/// Reads an action.
pub(crate) fn decode_action(map: &Reader<'_>) -> StoreResult<Action> {
    let actor = match map.maybe_id(ORG)? {
        None => Actor::System,
        Some(org) => Actor::Caller(Caller {
            org,
            key: map.id(KEY)?,
            operator: map.flag(OPERATOR)?,
        }),
    };
    Ok(Action {
        kind: map.parsed(KIND, "a kind of action", ActionKind::parse)?,
        actor,
        request_id: map.text(REQUEST)?,
        reason: map.maybe_text(REASON)?,
        units: map.ids(UNITS)?,
        vm: map.maybe_id(VM)?,
        at: map.time(AT)?,
    })
}

/// Writes when the item with this id is to be looked at, in the form of the index of what is due.
pub(crate) fn put_due(writer: &mut Writer, id: &str, due_at: Option<Timestamp>) {
    if let Some(due_at) = due_at {
        writer.text(DUE_PK, due_pk(id));
        writer.time(DUE_AT, due_at);
    }
}

/// Reads when the item is to be looked at.
pub(crate) fn due(item: &Reader<'_>) -> StoreResult<Option<Timestamp>> {
    let due_at = item.maybe_time(DUE_AT)?;
    if due_at.is_some() != item.maybe_text(DUE_PK)?.is_some() {
        return Err(item.corrupt(DUE_PK, "beside dueAt"));
    }
    Ok(due_at)
}
