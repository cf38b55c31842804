//! The schemas of the types, finished: without what Rust knows and JSON does not, and with what the
//! types do not say.

use serde_json::{Map, Value, json};

use crate::fields;

/// What the contract promises of a reservation; the API sends more, always.
const RESERVATION_REQUIRED: [&str; 6] = [
    "id",
    "nodeId",
    "reservedUnitIds",
    "allowedOrgIds",
    "startsAt",
    "status",
];

/// All schemas, finished.
pub(crate) fn tidied(schemas: Map<String, Value>) -> Map<String, Value> {
    let finish = |(name, mut schema): (String, Value)| {
        finished(&name, &mut schema);
        (name, schema)
    };
    schemas
        .into_iter()
        .map(finish)
        .chain(fields::lists())
        .collect()
}

fn finished(name: &str, schema: &mut Value) {
    unwrap_lines(schema);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (field, property) in properties {
            let holds = fields::holds(name, field);
            let holds =
                holds.unwrap_or_else(|| unreachable!("say in fields.rs what {name}.{field} holds"));
            unwrap_lines(property);
            without_null(property);
            refine(property, holds);
        }
    }
    // Either one or the other, and what goes with what: see the handlers.
    match name {
        "Reservation" => schema["required"] = json!(RESERVATION_REQUIRED),
        "CreateVmRequest" => {
            let both = json!({
                "required": ["reservationId", "gpuModelId"],
                "properties": { "reservationId": {}, "gpuModelId": {} },
            });
            let places = [
                json!({ "required": ["nodeId"] }),
                json!({ "required": ["gpuModelId"] }),
            ];
            schema["allOf"] = json!([
                { "oneOf": [{ "required": ["gpuCount"] }, { "required": ["unitIds"] }] },
                { "anyOf": places },
                { "not": both },
            ]);
            schema["dependentRequired"] =
                json!({ "reservationId": ["nodeId"], "unitIds": ["nodeId"] });
        }
        "CreateKeyRequest" => {
            let either = json!([{ "required": ["role"] }, { "required": ["permissions"] }]);
            schema["allOf"] = json!([{ "oneOf": either }]);
        }
        _ => {}
    }
}

/// The lines of a comment in one.
fn unwrap_lines(schema: &mut Value) {
    if let Some(text) = schema["description"].as_str() {
        schema["description"] = json!(text.replace('\n', " "));
    }
    if schema["description"].is_null() {
        schema.as_object_mut().unwrap().remove("description");
    }
}

/// What has no value is left out, and never null.
fn without_null(property: &mut Value) {
    let object = property.as_object_mut().unwrap();
    object.remove("default");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        let only = types.pop().unwrap();
        object.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        let only = choices.pop().unwrap();
        object.extend(only.as_object().unwrap().clone());
    }
}

/// Adds what a field holds; null takes a member away.
fn refine(property: &mut Value, holds: Value) {
    let object = property.as_object_mut().unwrap();
    // A number's own format and bounds are Rust's.
    if ["integer", "number"].contains(&object.get("type").and_then(Value::as_str).unwrap_or("")) {
        for name in ["format", "minimum", "maximum"] {
            object.remove(name);
        }
    }
    let Value::Object(holds) = holds else {
        unreachable!("what a field holds is an object")
    };
    if holds.contains_key("$ref") {
        object.remove("type");
    }
    for (name, value) in holds {
        if value.is_null() {
            object.remove(&name);
        } else {
            object.insert(name, value);
        }
    }
}
