//! The table.

use serde_json::{Value, json};

use crate::{Findings, expect};

pub(crate) fn findings(template: &Value) -> Findings {
    let mut found = Findings::new();
    match relet_template::table_of(template) {
        Ok(table) if table == dynamo::table::needed() => {}
        Ok(table) => found.push(format!("Table: is {table:?}, not what the store needs")),
        Err(error) => found.push(error.to_string()),
    }
    let table = &template["Resources"]["Table"];
    for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
        expect(&mut found, policy, &table[policy], &json!("Retain"));
    }
    expect(
        &mut found,
        "Table.Type",
        &table["Type"],
        &json!("AWS::DynamoDB::Table"),
    );
    let key = json!({ "Fn::If": ["HasManagedTableKey", true, false] });
    for (name, expected) in [
        ("DeletionProtectionEnabled", json!(true)),
        (
            "PointInTimeRecoverySpecification",
            json!({ "PointInTimeRecoveryEnabled": true }),
        ),
        ("SSESpecification", json!({ "SSEEnabled": key })),
    ] {
        let there = &table["Properties"][name];
        expect(&mut found, &format!("Table.{name}"), there, &expected);
    }
    found
}
