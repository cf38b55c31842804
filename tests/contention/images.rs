//! Every change of the reservation, as the stream tells it, seat by seat.

use std::collections::BTreeSet;

use serde_json::Value;

fn members(set: &Value) -> BTreeSet<&str> {
    let members = set["SS"].as_array().into_iter().flatten();
    members.filter_map(Value::as_str).collect()
}

fn occupant(image: &Value, unit: &str) -> Option<String> {
    let vm = &image["slots"]["M"][unit]["M"]["v"]["M"]["i"]["S"];
    vm.as_str().map(str::to_owned)
}

/// Fails if the change gave a unit a second VM, or a wrong one: spot on a unit that is not
/// released, another tier on one that is, or a sentence of a reservation upon a VM that is not
/// spot.
pub(super) fn check_placements(record: &Value) {
    let (old, new) = (
        &record["dynamodb"]["OldImage"],
        &record["dynamodb"]["NewImage"],
    );
    if new["type"]["S"] != "reservation" {
        return;
    }
    let released = members(&new["released"]);
    let slots = new["slots"]["M"].as_object().into_iter().flatten();
    for (unit, slot) in slots {
        let (before, after) = (occupant(old, unit), occupant(new, unit));
        let there = &slot["M"]["v"]["M"];
        let spot = there["t"]["S"] == "s";
        if after.is_some() && before != after {
            assert_eq!(before, None, "{unit} had a VM already: {record}");
            assert_eq!(new["last"]["M"]["k"]["S"], "place", "{record}");
            assert_eq!(spot, released.contains(&**unit), "{unit}: {record}");
        }
        let sentence = there["d"]["S"].as_str().unwrap_or_default();
        assert!(spot || !sentence.starts_with("by#"), "{unit}: {record}");
    }
}
