//! What a write leaves on its item: its id in one of the fixed places, and the action.

use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::stamp::{Action, ActionKind, Actor, Recent};
use domain::{Caller, WriteId};

use super::{Reader, Writer, map, number, text};

/// The attribute that maps a place to the write id in it.
pub(crate) const RECENT_IDS: &str = "rc";
/// The attribute that maps a place to the version its write made.
pub(crate) const RECENT_VERSIONS: &str = "rn";

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
    let ids = recent
        .places()
        .map(|(p, id, _)| (p.to_string(), text(id.as_str())));
    writer.put(RECENT_IDS, map(ids));
    let versions = recent.places().map(|(p, _, v)| (p.to_string(), number(v)));
    writer.put(RECENT_VERSIONS, map(versions));
}

/// Reads the recent writes.
pub(crate) fn recent(item: &Reader<'_>) -> StoreResult<Recent> {
    let ids = item.map(RECENT_IDS)?;
    let versions = item.map(RECENT_VERSIONS)?;
    let mut places = Vec::new();
    for name in ids.names() {
        let id = ids.parsed(name, "a write id", WriteId::parse)?;
        if name != id.place().to_string() {
            return Err(ids.corrupt(name, "the place of its write id"));
        }
        places.push((id.place(), id, versions.version(name)?));
    }
    Ok(Recent::from_places(places))
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
