//! The API contract's own table of a reservation and of its release, held against the document as
//! it is committed: names, types, what is required, and the closed list of statuses, exactly.

use serde_json::{Value, json};

use crate::{committed, errors};

/// A field: its name, its type, and whether it is always there.
type Row = (&'static str, Kind, bool);

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Texts,
    Number,
    Flag,
    Status,
}

const REQUIRED: bool = true;
const OPTIONAL: bool = false;

/// A reservation, row by row.
const RESERVATION: [Row; 18] = [
    ("id", Kind::Text, REQUIRED),
    ("nodeId", Kind::Text, REQUIRED),
    ("reservedUnitIds", Kind::Texts, REQUIRED),
    ("releasedUnitIds", Kind::Texts, OPTIONAL),
    ("allowedOrgIds", Kind::Texts, REQUIRED),
    ("managingOrgIds", Kind::Texts, OPTIONAL),
    ("startsAt", Kind::Text, REQUIRED),
    ("endsAt", Kind::Text, OPTIONAL),
    ("status", Kind::Status, REQUIRED),
    ("topologyGen", Kind::Number, OPTIONAL),
    ("contractRef", Kind::Text, OPTIONAL),
    ("reason", Kind::Text, OPTIONAL),
    ("createdAt", Kind::Text, OPTIONAL),
    ("updatedAt", Kind::Text, OPTIONAL),
    ("terminated", Kind::Texts, OPTIONAL),
    ("skipped", Kind::Texts, OPTIONAL),
    ("wouldTerminate", Kind::Texts, OPTIONAL),
    ("wouldSkip", Kind::Texts, OPTIONAL),
];

const STATUSES: [&str; 5] = ["pending", "active", "expired", "cancelled", "needs-review"];

/// The bodies of the three verbs.
const RELEASE: [Row; 2] = [
    ("unitIds", Kind::Texts, REQUIRED),
    ("reason", Kind::Text, OPTIONAL),
];
const RECLAIM: [Row; 3] = [
    ("unitIds", Kind::Texts, REQUIRED),
    ("dryRun", Kind::Flag, OPTIONAL),
    ("reason", Kind::Text, OPTIONAL),
];
const END: [Row; 1] = [("reason", Kind::Text, OPTIONAL)];

/// What a reference points to; anything else is itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| unreachable!("{reference} is nowhere")),
        None => value,
    }
}

fn kind(document: &Value, property: &Value) -> Kind {
    let property = resolved(document, property);
    match (
        property["type"].as_str(),
        property["items"]["type"].as_str(),
    ) {
        (Some("array"), Some("string")) => Kind::Texts,
        (Some("integer"), None) => Kind::Number,
        (Some("boolean"), None) => Kind::Flag,
        (Some("string"), None) if property["enum"] == json!(STATUSES) => Kind::Status,
        (Some("string"), None) if property.get("enum").is_none() => Kind::Text,
        _ => unreachable!("not of the contract: {property}"),
    }
}

/// The rows of a schema in the order of their names.
fn rows(document: &Value, schema: &Value) -> Vec<(String, Kind, bool)> {
    let schema = resolved(document, schema);
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.contains(&json!(name)));
    let properties = schema["properties"].as_object().unwrap().iter();
    let row = |(name, property): (&String, &Value)| {
        (name.clone(), kind(document, property), is_required(name))
    };
    properties.map(row).collect()
}

fn sorted(rows: &[Row]) -> Vec<(String, Kind, bool)> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|(name, kind, required)| ((*name).to_owned(), *kind, *required))
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn a_reservation_has_the_fields_of_the_contract_and_no_others() {
    let document = committed();
    let schema = &document["components"]["schemas"]["Reservation"];
    assert_eq!(rows(&document, schema), sorted(&RESERVATION));
    assert_eq!(schema["type"], "object");
    assert_ne!(
        schema["additionalProperties"], false,
        "clients tolerate fields that they do not know"
    );
}

#[test]
fn the_verbs_read_the_fields_of_the_contract_and_answer_with_a_reservation() {
    let document = committed();
    let verbs: [(&str, &[Row], bool); 3] = [
        ("release", &RELEASE, REQUIRED),
        ("reclaim", &RECLAIM, REQUIRED),
        ("end", &END, OPTIONAL),
    ];
    for (verb, body, required) in verbs {
        let path = format!("/v1/nodes/{{nodeId}}/reservations/{{id}}/{verb}");
        let operation = &document["paths"][&path]["post"];
        let request = &operation["requestBody"];
        assert_eq!(request["required"], required, "{verb}");
        let schema = &request["content"]["application/json"]["schema"];
        assert_eq!(rows(&document, schema), sorted(body), "{verb}");
        assert_eq!(
            resolved(&document, schema)["additionalProperties"],
            false,
            "{verb}: an unknown field is refused"
        );
        let good = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(good["$ref"], "#/components/schemas/Reservation", "{verb}");
    }
}

#[test]
fn a_release_is_called_and_refused_as_the_contract_has_it() {
    let document = committed();
    let path = "/v1/nodes/{nodeId}/reservations/{id}/release";
    let operation = &document["paths"][path]["post"];
    assert_eq!(operation["operationId"], "releaseUnits");
    let parameters: Vec<&Value> = operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| resolved(&document, parameter))
        .collect();
    let in_path: Vec<(&str, &str)> = parameters
        .iter()
        .filter(|parameter| parameter["in"] == "path")
        .map(|parameter| {
            assert_eq!(parameter["required"], true);
            let kind = parameter["schema"]["type"].as_str().unwrap();
            (parameter["name"].as_str().unwrap(), kind)
        })
        .collect();
    assert_eq!(in_path, [("nodeId", "string"), ("id", "string")]);
    for header in ["If-Match", "Idempotency-Key"] {
        assert!(
            parameters
                .iter()
                .any(|given| given["in"] == "header" && given["name"] == header),
            "{header}"
        );
    }
    let description = operation["description"].as_str().unwrap();
    for said in [
        "`tier=spot`",
        "`managingOrgIds`",
        "`reservation.capacity`",
        "404",
    ] {
        assert!(description.contains(said), "{said}");
    }
    // By the document's own rule for all that does not say otherwise.
    assert_eq!(operation.get("security"), None);
    assert_eq!(document["security"], json!([{ "apiKey": [] }]));
    let scheme = &document["components"]["securitySchemes"]["apiKey"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"]),
        (&json!("http"), &json!("bearer"))
    );
    let statuses: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
    let expected = [
        "200", "400", "401", "404", "409", "412", "413", "415", "422", "429", "500", "503",
    ];
    assert_eq!(statuses, expected);
}

#[test]
fn the_document_has_every_code_of_the_list_of_errors() {
    let text = committed().to_string();
    for (status, code) in errors().into_keys() {
        assert!(text.contains(&format!("`{code}`")), "{status} {code}");
    }
}
