//! What each field may hold beside its type: patterns, bounds and closed lists, out of the limits
//! and names that the handlers check by.

use app::auth::Permission;
use app::grant::Role;
use app::idempotency::KEY_CHARS_MAX;
use app::ports::Part;
use domain::audit::{ActorKind, EventType};
use domain::limits::{
    GPUS_PER_UNIT_MAX, ID_CHARS_MAX, KEY_LIFE_SECONDS_MAX, KEY_NAME_CHARS_MAX, ORGS_PER_LIST_MAX,
    PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, REASON_CHARS_MAX, TOPOLOGY_GEN_MAX, UNITS_PER_NODE_MAX,
    UNITS_PER_REQUEST_MAX, UNITS_PER_RESERVATION_MAX, VM_NAME_CHARS_MAX,
};
use domain::{Status, Tier, VmStatus};
use serde_json::{Map, Value, json};

/// An id.
pub(crate) fn id() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": ID_CHARS_MAX,
        "pattern": "^[A-Za-z0-9._:-]+$",
    })
}

/// A list of ids, each once.
fn ids(min: usize, max: Option<usize>) -> Value {
    let mut list = json!({ "items": id(), "uniqueItems": true });
    if min > 0 {
        list["minItems"] = json!(min);
    }
    if let Some(max) = max {
        list["maxItems"] = json!(max);
    }
    list
}

fn text(max: usize) -> Value {
    json!({ "minLength": 1, "maxLength": max })
}

fn one_of(names: impl IntoIterator<Item = &'static str>) -> Value {
    json!({ "enum": names.into_iter().collect::<Vec<_>>() })
}

/// A closed list of names that more than one field takes, as a component of its own.
fn named(component: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{component}") })
}

/// Those components.
pub(crate) fn lists() -> Map<String, Value> {
    let list = |description: &str, names: &[&'static str]| {
        let mut list = json!({ "type": "string", "description": description });
        list["enum"] = json!(names);
        list
    };
    let lists = [
        (
            "ReservationStatus",
            list("What a reservation is.", &Status::ALL.map(Status::as_str)),
        ),
        (
            "VmStatus",
            list("What a VM is.", &VmStatus::ALL.map(VmStatus::as_str)),
        ),
        (
            "Tier",
            list("What a VM is bought as.", &Tier::ALL.map(Tier::as_str)),
        ),
        (
            "Role",
            list("What somebody is in an org.", &Role::ALL.map(Role::as_str)),
        ),
        (
            "Permission",
            list(
                "Something that a key may do.",
                &Permission::ALL.map(Permission::as_str),
            ),
        ),
    ];
    lists
        .map(|(name, list)| (name.to_owned(), list))
        .into_iter()
        .collect()
}

fn number(min: u64, max: Option<u64>) -> Value {
    let mut number = json!({ "format": "int64", "minimum": min });
    if let Some(max) = max {
        number["maximum"] = json!(max);
    }
    number
}

fn count(min: u32, max: Option<u32>) -> Value {
    let mut number = number(min.into(), max.map(u64::from));
    number["format"] = json!("int32");
    number
}

fn permissions() -> Value {
    json!({ "items": named("Permission"), "uniqueItems": true })
}

fn tiers_free() -> Value {
    let free = named("FreeCapacity");
    let each = Tier::ALL.map(|tier| (tier.as_str().to_owned(), free.clone()));
    json!({
        "additionalProperties": null,
        "properties": each.into_iter().collect::<Map<_, _>>(),
    })
}

/// What a field of a request may hold, where that is not what it holds in an answer.
fn asked(schema: &str, field: &str) -> Option<Value> {
    let gpus_max = u32::from(GPUS_PER_UNIT_MAX);
    Some(match (schema, field) {
        ("PutNodeRequest" | "PutTopologyRequest", "units") => {
            json!({ "minItems": 1, "maxItems": UNITS_PER_NODE_MAX, "uniqueItems": true })
        }
        // The years that there are; at their very ends, the offset decides.
        (request, name) if request.ends_with("Request") && name.ends_with("At") => json!({
            "format": "date-time",
            "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-",
        }),
        ("CreateReservationRequest", "allowedOrgIds") => ids(1, Some(ORGS_PER_LIST_MAX)),
        ("CreateKeyRequest", "name") => text(KEY_NAME_CHARS_MAX),
        ("CreateKeyRequest", "permissions") => {
            let mut list = permissions();
            list["minItems"] = json!(1);
            list
        }
        ("CreateVmRequest", "gpuCount") => {
            let units = u32::try_from(UNITS_PER_REQUEST_MAX).unwrap();
            count(1, Some(gpus_max * units))
        }
        (request, "unitIds") if request.ends_with("Request") => ids(1, Some(UNITS_PER_REQUEST_MAX)),
        _ => return None,
    })
}

/// What a field may hold; `None` for a field that is not known here.
pub(crate) fn holds(schema: &str, field: &str) -> Option<Value> {
    if let Some(asked) = asked(schema, field) {
        return Some(asked);
    }
    Some(match (schema, field) {
        ("Vm", "status") => named("VmStatus"),
        ("Health", "status") => one_of(["ok"]),
        (_, "status") => named("ReservationStatus"),
        (_, "state") => one_of(["free", "reserved", "released"]),
        (_, "tier") => named("Tier"),
        (_, "role") => named("Role"),
        (_, "type") => one_of(EventType::ALL.map(EventType::as_str)),
        (_, "kind") => one_of(ActorKind::ALL.map(ActorKind::as_str)),
        (_, "permissions") => permissions(),
        ("Availability", "free") => tiers_free(),
        (_, "reservedUnitIds") => ids(1, Some(UNITS_PER_RESERVATION_MAX)),
        (_, "releasedUnitIds") => ids(0, Some(UNITS_PER_RESERVATION_MAX)),
        (_, "allowedOrgIds" | "managingOrgIds") => ids(0, Some(ORGS_PER_LIST_MAX)),
        (_, "unitIds" | "vmIds") => ids(0, None),
        (_, "terminated" | "skipped" | "wouldTerminate" | "wouldSkip") => ids(0, None),
        (_, "hash") => json!({ "pattern": "^[0-9a-f]{64}$" }),
        (_, "prevHash") => json!({ "pattern": "^([0-9a-f]{64})?$" }),
        (_, "code") => json!({ "pattern": "^[a-z]+(_[a-z]+)*$" }),
        (_, "name") => text(VM_NAME_CHARS_MAX),
        (_, "reason" | "contractRef") => text(REASON_CHARS_MAX),
        (_, "topologyGen") => number(1, Some(TOPOLOGY_GEN_MAX)),
        (_, "version" | "reservationVersion") => number(1, None),
        (_, "expiresInSeconds") => count(1, Some(KEY_LIFE_SECONDS_MAX)),
        ("Unit" | "UnitRequest", "gpus") => count(1, Some(u32::from(GPUS_PER_UNIT_MAX))),
        (_, "gpuCount") => count(1, None),
        (_, "gpus" | "units" | "nodes" | "largestVmGpus" | "unitCount" | "attempts")
            if schema != "Node" =>
        {
            count(0, None)
        }
        // Said in full by their types and descriptions.
        ("Node", "units") => json!({}),
        (_, "items" | "nextCursor" | "actor" | "before" | "after" | "current") => json!({}),
        (_, "dryRun" | "platformOperator" | "atLeast" | "stuck") => json!({}),
        (_, "error" | "statusReason" | "key" | "keyPrefix" | "requestId") => json!({}),
        (_, "id") => id(),
        (_, name) if name.ends_with("Id") => id(),
        (_, name) if name.ends_with("At") || name == "at" => json!({ "format": "date-time" }),
        _ => return None,
    })
}

/// What a query parameter may be, and what it does.
pub(crate) fn query(name: &str) -> (Value, &'static str) {
    match name {
        "limit" => (
            json!({ "type": "integer", "minimum": 1, "maximum": PAGE_ITEMS_MAX,
                "default": PAGE_ITEMS_DEFAULT }),
            "How many items a page has at most.",
        ),
        "cursor" => (
            json!({ "type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]+$" }),
            "Where the list goes on: the `nextCursor` of the page before, with the same filters. \
             It is sealed, and good for this list alone.",
        ),
        "status" => (
            named("ReservationStatus"),
            "Only reservations that are this now.",
        ),
        "role" => (
            json!({ "type": "string", "enum": Part::ALL.map(Part::as_str) }),
            "Only reservations in which the org has this part.",
        ),
        "tier" => (named("Tier"), "Only what is free at this tier."),
        "gpuModelId" => (id(), "Only this model."),
        "dryRun" => (
            json!({ "type": "boolean" }),
            "Say what would be done, and do nothing. May also stand in the body; where it is in \
             both, they must agree.",
        ),
        other => unreachable!("say what the query parameter {other} is"),
    }
}

/// What `If-Match` may be.
pub(crate) fn if_match() -> Value {
    json!({ "type": "string", "pattern": "^(\\*|\"[1-9][0-9]{0,17}\")$" })
}

/// What `Idempotency-Key` may be.
pub(crate) fn idempotency_key() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": KEY_CHARS_MAX,
        "pattern": "^[A-Za-z0-9._:+/=-]+$",
    })
}
