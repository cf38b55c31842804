//! What of each kind of answer a person sees, in which order, and what counts as its id.

use serde_json::Value;

use crate::output::table::{Column, Kind, Rank};
use crate::output::text::plain;

/// A column with the field that fills it: a path with dots into an item.
pub type Field = (&'static str, Column);

/// How a kind of answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The field that names an item, for `--output id`.
    pub id: Option<&'static str>,
    /// The columns of a list.
    pub columns: &'static [Field],
    /// The fields of a single one.
    pub fields: &'static [Field],
    /// A list inside a single one, shown as a table below its fields.
    pub inner: Option<(&'static str, &'static [Field])>,
}

const fn field(name: &'static str, head: &'static str, kind: Kind, rank: Rank) -> Field {
    (name, Column { head, kind, rank })
}

/// A field that always stays.
const fn whole(name: &'static str, head: &'static str) -> Field {
    field(name, head, Kind::Whole, Rank::Always)
}

const fn status(name: &'static str, head: &'static str) -> Field {
    field(name, head, Kind::Status, Rank::Always)
}

const fn words(name: &'static str, head: &'static str) -> Field {
    field(name, head, Kind::Breakable, Rank::Always)
}

const fn spare(name: &'static str, head: &'static str, rank: u8) -> Field {
    field(name, head, Kind::Whole, Rank::Spare(rank))
}

const fn spare_words(name: &'static str, head: &'static str, rank: u8) -> Field {
    field(name, head, Kind::Breakable, Rank::Spare(rank))
}

const fn below(name: &'static str, head: &'static str) -> Field {
    field(name, head, Kind::Breakable, Rank::Below)
}

/// A reservation in a list of its node's.
pub const RESERVATION_OF_NODE: View = View {
    id: Some("id"),
    columns: &[
        whole("id", "ID"),
        status("status", "STATUS"),
        words("reservedUnitIds", "UNITS"),
        words("releasedUnitIds", "RELEASED"),
        spare_words("allowedOrgIds", "AUDIENCE", 2),
        spare("startsAt", "STARTS", 4),
        spare("endsAt", "ENDS", 3),
    ],
    fields: &[],
    inner: None,
};

/// A reservation.
pub const RESERVATION: View = View {
    id: Some("id"),
    columns: &[
        whole("id", "ID"),
        whole("nodeId", "NODE"),
        status("status", "STATUS"),
        words("reservedUnitIds", "UNITS"),
        words("releasedUnitIds", "RELEASED"),
        spare_words("allowedOrgIds", "AUDIENCE", 2),
        spare("startsAt", "STARTS", 4),
        spare("endsAt", "ENDS", 3),
    ],
    fields: &[
        whole("id", "Reservation"),
        whole("nodeId", "Node"),
        status("status", "Status"),
        whole("version", "Version"),
        words("reservedUnitIds", "Units"),
        words("releasedUnitIds", "Released"),
        words("allowedOrgIds", "Audience"),
        words("managingOrgIds", "Managers"),
        whole("startsAt", "Starts"),
        whole("endsAt", "Ends"),
        words("contractRef", "Contract"),
        words("reason", "Reason"),
        whole("topologyGen", "Topology"),
        whole("createdAt", "Created"),
        whole("updatedAt", "Updated"),
        words("terminated", "Terminated"),
        words("skipped", "Left running"),
        words("wouldTerminate", "Would terminate"),
        words("wouldSkip", "Would leave running"),
    ],
    inner: None,
};

/// An audit record.
pub const RECORD: View = View {
    id: Some("id"),
    columns: &[
        whole("version", "VER"),
        whole("at", "AT"),
        whole("type", "WHAT"),
        whole("actor.kind", "BY"),
        spare("actor.orgId", "ORG", 1),
        words("unitIds", "UNITS"),
        field("vmIds", "VMS", Kind::Whole, Rank::Below),
        below("reason", "REASON"),
        spare("requestId", "REQUEST", 9),
    ],
    fields: &[],
    inner: None,
};

const UNITS: &[Field] = &[
    whole("id", "UNIT"),
    whole("gpus", "GPUS"),
    status("state", "STATE"),
    spare("vmId", "VM", 1),
    spare("reservationId", "RESERVATION", 2),
];

/// A node.
pub const NODE: View = View {
    id: Some("id"),
    columns: &[
        whole("id", "ID"),
        whole("ownerOrgId", "OWNER"),
        whole("gpuModelId", "MODEL"),
        whole("unitCount", "UNITS"),
        spare("topologyGen", "TOPOLOGY", 1),
        spare("createdAt", "CREATED", 3),
        spare("updatedAt", "UPDATED", 2),
    ],
    fields: &[
        whole("id", "Node"),
        whole("ownerOrgId", "Owner"),
        whole("gpuModelId", "Model"),
        whole("topologyGen", "Topology"),
        whole("createdAt", "Created"),
        whole("updatedAt", "Updated"),
    ],
    inner: Some(("units", UNITS)),
};

/// A VM that its node is to stop.
pub const TERMINATION: View = View {
    id: Some("vmId"),
    columns: &[
        whole("vmId", "VM"),
        words("unitIds", "UNITS"),
        whole("requestedAt", "SINCE"),
        spare("attempts", "TRIES", 1),
        status("stuck", "STUCK"),
        spare("reservationId", "RESERVATION", 2),
    ],
    fields: &[],
    inner: None,
};

/// A VM.
pub const VM: View = View {
    id: Some("id"),
    columns: &[
        whole("id", "ID"),
        words("name", "NAME"),
        status("status", "STATUS"),
        whole("tier", "TIER"),
        words("unitIds", "UNITS"),
        spare("nodeId", "NODE", 1),
        spare("gpuModelId", "MODEL", 2),
        spare("createdAt", "CREATED", 3),
    ],
    fields: &[
        whole("id", "VM"),
        words("name", "Name"),
        whole("organizationId", "Org"),
        status("status", "Status"),
        words("statusReason", "Why"),
        whole("tier", "Tier"),
        whole("gpuModelId", "Model"),
        whole("gpuCount", "GPUs"),
        whole("nodeId", "Node"),
        words("unitIds", "Units"),
        whole("reservationId", "Reservation"),
        whole("createdAt", "Created"),
    ],
    inner: None,
};

/// What is free of a model at a tier.
pub const AVAILABILITY: View = View {
    id: Some("gpuModelId"),
    columns: &[
        whole("gpuModelId", "MODEL"),
        whole("tier", "TIER"),
        whole("gpus", "GPUS"),
        whole("units", "UNITS"),
        whole("nodes", "NODES"),
        whole("largestVmGpus", "LARGEST VM"),
        spare("atLeast", "AT LEAST", 1),
    ],
    fields: &[],
    inner: None,
};

/// An API key.
pub const KEY: View = View {
    id: Some("id"),
    columns: &[
        whole("id", "ID"),
        words("name", "NAME"),
        spare("role", "ROLE", 2),
        spare("keyPrefix", "BEGINS", 1),
        below("permissions", "MAY"),
        below("expiresAt", "EXPIRES"),
        below("revokedAt", "REVOKED"),
        spare("createdAt", "CREATED", 3),
    ],
    fields: &[
        whole("id", "Key id"),
        words("name", "Name"),
        whole("organizationId", "Org"),
        whole("role", "Role"),
        words("permissions", "May"),
        whole("platformOperator", "Operator"),
        whole("createdAt", "Created"),
        whole("expiresAt", "Expires"),
        whole("key", "Key"),
    ],
    inner: None,
};

/// Who calls.
pub const CALLER: View = View {
    id: Some("keyId"),
    columns: &[],
    fields: &[
        whole("organizationId", "Org"),
        whole("keyId", "Key id"),
        whole("role", "Role"),
        words("permissions", "May"),
        whole("platformOperator", "Operator"),
        whole("expiresAt", "Expires"),
    ],
    inner: None,
};

/// Whether the platform is there.
pub const HEALTH: View = View {
    id: None,
    columns: &[],
    fields: &[status("status", "Status")],
    inner: None,
};

/// A document that is no item: shown as it came.
pub const DOCUMENT: View = View {
    id: None,
    columns: &[],
    fields: &[],
    inner: None,
};

/// What stands at a path with dots, as a person reads it; empty where there is nothing.
#[must_use]
pub fn at(item: &Value, path: &str) -> String {
    let found = path
        .split('.')
        .try_fold(item, |value, name| value.get(name));
    // Ids and names may look like an instant, and stay as they are.
    let instant = path == "at" || path.ends_with("At");
    let instant = found
        .filter(|_| instant)
        .and_then(Value::as_str)
        .and_then(time);
    instant.unwrap_or_else(|| found.map_or_else(String::new, shown))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => plain(text),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(_) => plain(&value.to_string()),
    }
}

/// An instant of the API, `2026-07-01T12:00:00.250Z`, to the second and with a blank in it.
fn time(text: &str) -> Option<String> {
    let (day, rest) = text.split_once('T')?;
    let clock = rest.strip_suffix('Z')?.split('.').next()?;
    let digits = |text: &str, mark: char| text.split(mark).all(|part| part.parse::<u32>().is_ok());
    let fits = day.len() == 10 && clock.len() == 8;
    (fits && digits(day, '-') && digits(clock, ':')).then(|| format!("{day} {clock}Z"))
}

/// The items of a list as rows are made of them: what is free comes as one item for each model,
/// and is shown as one row for each tier.
#[must_use]
pub fn items(body: &Value) -> Vec<Value> {
    let Some(items) = body["items"].as_array() else {
        return Vec::new();
    };
    items.iter().flat_map(flat).collect()
}

fn flat(item: &Value) -> Vec<Value> {
    let Some(free) = item["free"].as_object() else {
        return vec![item.clone()];
    };
    let rows = free.iter().map(|(tier, counts)| {
        let mut row = counts.clone();
        for (name, value) in [
            ("gpuModelId", item["gpuModelId"].clone()),
            ("tier", Value::from(tier.as_str())),
            ("atLeast", item["atLeast"].clone()),
        ] {
            if let Some(fields) = row.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        }
        row
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_as_people_read_them() {
        let item = json!({
            "at": "2026-07-01T12:00:00.250Z", "name": "at 12T00Z", "list": ["a", "b"],
            "id": "2026-07-01T12:00:00Z", "createdAt": "soon",
            "inner": { "flag": true }, "number": 3, "odd": "\u{1b}[2J",
        });
        for (path, expected) in [
            ("at", "2026-07-01 12:00:00Z"),
            ("name", "at 12T00Z"),
            ("id", "2026-07-01T12:00:00Z"),
            ("createdAt", "soon"),
            ("list", "a, b"),
            ("inner.flag", "yes"),
            ("number", "3"),
            ("odd", "\u{fffd}[2J"),
            ("inner.none", ""),
            ("none.at.all", ""),
        ] {
            assert_eq!(at(&item, path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_free_is_a_row_for_each_tier() {
        let free = json!({ "spot": { "gpus": 2 }, "community": { "gpus": 1 } });
        let body = json!({ "items": [{ "gpuModelId": "h100", "free": free, "nodes": 1 }] });
        let rows = items(&body);
        let tiers: Vec<String> = rows.iter().map(|row| at(row, "tier")).collect();
        assert_eq!(tiers, ["community", "spot"]);
        assert!(rows.iter().all(|row| row["gpuModelId"] == "h100"));
        assert_eq!(
            items(&json!({ "items": [{ "id": "x" }] })),
            [json!({ "id": "x" })]
        );
    }
}
