//! Audit records as a caller got them, read back without losing anything: what cannot be shown
//! again letter for letter is refused, so that nothing stands in a trail which its hashes do not
//! cover.

use std::collections::BTreeSet;
use std::str::FromStr;

use domain::audit::{ActorKind, AuditActor, Event, EventType, Record, Snapshot};
use domain::{Status, Timestamp, Version};
use serde_json::{Map, Value};

use crate::view::RecordView;

/// Why a value is no audit record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an audit record: {0}")]
pub struct BadRecord(String);

/// Reads a record of the API.
///
/// # Errors
/// [`BadRecord`] names the first member that is missing, unknown, or not as the API writes it.
pub fn parse(value: &Value) -> Result<Record, BadRecord> {
    let Value::Object(members) = value else {
        return Err(BadRecord("it is no object".to_owned()));
    };
    let record = read(&Members(members))?;
    let again = serde_json::to_value(RecordView::of(&record));
    let again = again.map_err(|error| BadRecord(error.to_string()))?;
    match differing(members, again.as_object()) {
        None => Ok(record),
        Some(name) => Err(BadRecord(format!("{name} is not as the API writes it"))),
    }
}

/// The first member that one of the two has and the other has not, or has otherwise.
fn differing(given: &Map<String, Value>, again: Option<&Map<String, Value>>) -> Option<String> {
    let empty = Map::new();
    let again = again.unwrap_or(&empty);
    let mut names = given.keys().chain(again.keys());
    names
        .find(|name| given.get(*name) != again.get(*name))
        .cloned()
}

/// The members of an object.
struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    fn need<T>(&self, name: &str, found: Option<T>) -> Result<T, BadRecord> {
        found.ok_or_else(|| BadRecord(format!("{name} is missing, or not what it should be")))
    }

    fn text(&self, name: &str) -> Result<&'a str, BadRecord> {
        let found = self.0.get(name).and_then(Value::as_str);
        self.need(name, found)
    }

    fn parsed<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, BadRecord> {
        let parsed = parse(self.text(name)?);
        self.need(name, parsed)
    }

    fn id<T: FromStr>(&self, name: &str) -> Result<T, BadRecord> {
        self.parsed(name, |text| text.parse().ok())
    }

    fn maybe<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<T, BadRecord>,
    ) -> Result<Option<T>, BadRecord> {
        let there = self.0.contains_key(name);
        there.then(|| read(self, name)).transpose()
    }

    fn ids<T: FromStr + Ord>(&self, name: &str) -> Result<BTreeSet<T>, BadRecord> {
        let items = self.0.get(name).and_then(Value::as_array);
        let ids: Option<BTreeSet<T>> = items.and_then(|items| {
            let each = items.iter().map(|item| item.as_str()?.parse().ok());
            each.collect()
        });
        self.need(name, ids)
    }

    fn object(&self, name: &str) -> Result<Members<'a>, BadRecord> {
        let found = self.0.get(name).and_then(Value::as_object);
        self.need(name, found).map(Members)
    }

    fn snapshot(&self, name: &str) -> Result<Snapshot, BadRecord> {
        let shown = self.object(name)?;
        Ok(Snapshot {
            status: shown.parsed("status", Status::parse)?,
            released: shown.ids("releasedUnitIds")?,
        })
    }
}

fn read(members: &Members<'_>) -> Result<Record, BadRecord> {
    let version = members.0.get("version").and_then(Value::as_u64);
    let version = members.need("version", version.and_then(Version::stored))?;
    let actor = members.object("actor")?;
    let mut event = Event {
        event: members.parsed("type", EventType::parse)?,
        reservation: members.id("reservationId")?,
        node: members.id("nodeId")?,
        version,
        beside: None,
        at: members.parsed("at", |text| Timestamp::parse(text).ok())?,
        actor: AuditActor {
            org: actor.maybe("orgId", Members::id)?,
            key: actor.maybe("keyId", Members::id)?,
            kind: actor.parsed("kind", ActorKind::parse)?,
        },
        request_id: members.text("requestId")?.to_owned(),
        reason: members.maybe("reason", Members::text)?.map(str::to_owned),
        units: members.ids("unitIds")?,
        vms: members.ids("vmIds")?,
        before: members.maybe("before", Members::snapshot)?,
        after: members.maybe("after", Members::snapshot)?,
    };
    // A record that stands beside a version's own says so by its id alone.
    let own = event.id();
    let beside = members.text("id")?.strip_prefix(&own);
    event.beside = match members.need("id", beside)? {
        "" => None,
        vm => {
            let vm = vm.strip_prefix(':').and_then(|vm| vm.parse().ok());
            Some(members.need("id", vm)?)
        }
    };
    Ok(Record {
        event,
        prev_hash: members.text("prevHash")?.to_owned(),
        hash: members.text("hash")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Value {
        json!({
            "id": "res:1:7:vm:1",
            "type": "vm.condemned",
            "reservationId": "res:1",
            "nodeId": "n",
            "version": 7,
            "at": "2026-07-01T12:00:00.250Z",
            "actor": { "orgId": "o", "keyId": "k", "kind": "manager" },
            "requestId": "r \u{1} \"ü\" \u{1F980}",
            "reason": "a\\b\n\u{7f}",
            "unitIds": ["a", "b"],
            "vmIds": ["vm:1"],
            "before": { "status": "active", "releasedUnitIds": [] },
            "after": { "status": "needs-review", "releasedUnitIds": ["a"] },
            "prevHash": "p",
            "hash": "h",
        })
    }

    #[test]
    fn a_record_is_read_back_with_all_that_it_has() {
        let read = parse(&record()).unwrap();
        assert_eq!(
            serde_json::to_value(RecordView::of(&read)).unwrap(),
            record()
        );
        let beside = read.event.beside.as_ref().map(domain::VmId::as_str);
        assert_eq!(beside, Some("vm:1"));
        assert_eq!(read.event.reservation.as_str(), "res:1");
        let mut own = record();
        own["id"] = json!("res:1:7");
        assert_eq!(parse(&own).unwrap().event.beside, None);
    }

    #[test]
    fn what_would_be_lost_is_refused_and_named() {
        let spoiled = |name: &str, value: Value| {
            let mut record = record();
            record[name] = value;
            parse(&record).unwrap_err().to_string()
        };
        for (name, value) in [
            ("id", json!("res:1:8")),
            ("id", json!("res:1:7:")),
            ("id", json!("res:1:7x")),
            ("id", json!("another")),
            ("type", json!("vm.unheard-of")),
            ("version", json!(0)),
            ("version", json!(-1)),
            ("version", json!(7.5)),
            ("version", json!("7")),
            ("at", json!("2026-07-01T12:00:00.2500Z")),
            ("at", json!("2026-07-01T14:00:00.250+02:00")),
            ("at", json!("yesterday")),
            ("unitIds", json!(["b", "a"])),
            ("unitIds", json!(["a", "a"])),
            ("unitIds", json!([1])),
            ("unitIds", json!("a")),
            ("reason", Value::Null),
            ("prevHash", json!(1)),
            ("actor", json!({ "kind": "manager", "name": "x" })),
            (
                "before",
                json!({ "status": "active", "releasedUnitIds": [], "x": 1 }),
            ),
            ("after", Value::Null),
            ("note", json!("an unknown member")),
        ] {
            let told = spoiled(name, value.clone());
            assert!(told.contains(name), "{name} {value}: {told}");
        }
        for name in record().as_object().unwrap().keys() {
            let mut record = record();
            record.as_object_mut().unwrap().remove(name);
            let optional = ["reason", "before", "after"].contains(&name.as_str());
            assert_eq!(parse(&record).is_ok(), optional, "without {name}");
        }
        assert!(parse(&json!([])).is_err());
    }
}
