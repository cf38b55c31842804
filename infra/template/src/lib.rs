#![doc = include_str!("../README.md")]

mod yaml;

use dynamo::table::{Definition, Index};
use serde_json::Value;

pub use yaml::{Unreadable, parse};

/// The template's text.
pub const TEXT: &str = include_str!("../../template.yaml");

/// The table as the template has it.
///
/// # Errors
/// [`Unreadable`] if the template is not YAML, or has no table that an engine could make.
pub fn table() -> Result<Definition, Unreadable> {
    table_of(&parse(TEXT)?)
}

/// The table of a parsed template: what an engine makes of it. Backups, encryption, protection and
/// tags are the cloud's alone.
///
/// # Errors
/// [`Unreadable`] says what is missing.
pub fn table_of(template: &Value) -> Result<Definition, Unreadable> {
    let table = &template["Resources"]["Table"]["Properties"];
    let indexes = table["GlobalSecondaryIndexes"].as_array();
    let indexes: Result<Vec<Index>, Unreadable> =
        indexes.into_iter().flatten().map(index).collect();
    let view = &table["StreamSpecification"]["StreamViewType"];
    if view != "NEW_AND_OLD_IMAGES" {
        return Err(missing("a stream of both images"));
    }
    if table["BillingMode"] != "PAY_PER_REQUEST" {
        return Err(missing("a price by the request"));
    }
    let ttl = &table["TimeToLiveSpecification"];
    if ttl["Enabled"] != true {
        return Err(missing("items that expire"));
    }
    Ok(Definition {
        attributes: attributes(&table["AttributeDefinitions"])?,
        key: key(&table["KeySchema"])?,
        indexes: indexes?,
        ttl: text(&ttl["AttributeName"])?,
    })
}

fn missing(what: &str) -> Unreadable {
    Unreadable(format!("its table lacks {what}"))
}

fn text(value: &Value) -> Result<String, Unreadable> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| missing("a name where one belongs"))
}

/// The names of attributes; all of them are texts.
fn attributes(value: &Value) -> Result<Vec<String>, Unreadable> {
    let each = value.as_array().into_iter().flatten();
    each.map(|attribute| match attribute["AttributeType"].as_str() {
        Some("S") => text(&attribute["AttributeName"]),
        _ => Err(missing("attributes of type S")),
    })
    .collect()
}

/// The partition key and the sort key.
fn key(value: &Value) -> Result<(String, String), Unreadable> {
    let of = |kind: &str| {
        let mut elements = value.as_array().into_iter().flatten();
        let element = elements.find(|element| element["KeyType"] == kind);
        text(&element.ok_or_else(|| missing("a key of two parts"))?["AttributeName"])
    };
    Ok((of("HASH")?, of("RANGE")?))
}

fn index(value: &Value) -> Result<Index, Unreadable> {
    if value["Projection"]["ProjectionType"] != "KEYS_ONLY" {
        return Err(missing("indexes of keys alone"));
    }
    Ok(Index {
        name: text(&value["IndexName"])?,
        key: key(&value["KeySchema"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_template_has_a_table_that_an_engine_can_make() {
        let table = table().unwrap();
        assert_eq!(table.key, ("PK".to_owned(), "SK".to_owned()));
        let names: Vec<&str> = table.indexes.iter().map(|index| &*index.name).collect();
        assert_eq!(names, ["due", "market", "org"]);
        assert_eq!(table.ttl, "ttl");
    }

    #[test]
    fn a_table_that_lacks_something_is_refused() {
        let whole = parse(TEXT).unwrap();
        for (pointer, wrong) in [
            ("/AttributeDefinitions/0/AttributeType", json!("N")),
            ("/KeySchema/0/KeyType", json!("RANGE")),
            ("/GlobalSecondaryIndexes/1/IndexName", json!(7)),
            (
                "/GlobalSecondaryIndexes/2/Projection/ProjectionType",
                json!("ALL"),
            ),
            ("/StreamSpecification/StreamViewType", json!("KEYS_ONLY")),
            ("/BillingMode", json!("PROVISIONED")),
            ("/TimeToLiveSpecification/Enabled", json!(false)),
        ] {
            let mut template = whole.clone();
            let pointer = format!("/Resources/Table/Properties{pointer}");
            *template.pointer_mut(&pointer).unwrap() = wrong;
            assert!(table_of(&template).is_err(), "{pointer}");
        }
    }
}
