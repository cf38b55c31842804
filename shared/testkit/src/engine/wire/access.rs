//! What a request needs the right to: each action by itself, on the table or an index, and the
//! partitions that it names.

use serde_json::Value;

/// One right that a request made use of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The action, such as `dynamodb:PutItem`; one for each part of a transaction.
    pub action: String,
    /// The index; `None` is the table.
    pub index: Option<String>,
    /// The kind of partition, such as `NODE#*`; `None` for an action on no item.
    pub partition: Option<String>,
}

/// All that a request of this operation with this body needs the right to.
pub(super) fn accesses(operation: &str, body: &Value) -> Vec<Access> {
    let each = |key: &str, of: &[&str]| -> Vec<Access> {
        let parts = body[key].as_array().into_iter().flatten();
        parts.flat_map(|part| inner(part, of)).collect()
    };
    match operation {
        "TransactWriteItems" => each("TransactItems", &["Put", "Update", "Delete"]),
        "TransactGetItems" => each("TransactItems", &["Get"]),
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let keys = tables.flat_map(|(_, wanted)| wanted["Keys"].as_array());
            let keys = keys.flatten();
            keys.map(|key| access(operation, Some(key))).collect()
        }
        "Query" => vec![Access {
            action: "dynamodb:Query".to_owned(),
            index: body["IndexName"].as_str().map(str::to_owned),
            partition: queried(body),
        }],
        _ => {
            let key = [&body["Key"], &body["Item"]];
            let key = key.into_iter().find(|key| key.is_object());
            vec![access(operation, key)]
        }
    }
}

/// The parts of a transaction: each is the action of its kind. A check is one too.
fn inner(part: &Value, of: &[&str]) -> Vec<Access> {
    let mut found = Vec::new();
    for kind in of {
        let part = &part[*kind];
        let key = [&part["Key"], &part["Item"]];
        if let Some(key) = key.into_iter().find(|key| key.is_object()) {
            found.push(access(&format!("{kind}Item"), Some(key)));
        }
    }
    let check = &part["ConditionCheck"]["Key"];
    if check.is_object() {
        found.push(access("ConditionCheckItem", Some(check)));
    }
    found
}

fn access(operation: &str, key: Option<&Value>) -> Access {
    Access {
        action: format!("dynamodb:{operation}"),
        index: None,
        partition: key.and_then(|key| key["PK"]["S"].as_str()).map(kind),
    }
}

/// The kind of a partition: up to its first `#`.
fn kind(partition: &str) -> String {
    match partition.split_once('#') {
        Some((kind, _)) => format!("{kind}#*"),
        None => partition.to_owned(),
    }
}

/// The kind of the partition that a query is of, which its condition names first.
fn queried(body: &Value) -> Option<String> {
    let condition = body["KeyConditionExpression"].as_str()?;
    let (_, behind) = condition.split_once('=')?;
    let end = behind.find([' ', ')']).unwrap_or(behind.len());
    let value = &body["ExpressionAttributeValues"][behind.get(..end)?]["S"];
    value.as_str().map(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(operation: &str, body: &Value) -> Vec<(String, Option<String>, Option<String>)> {
        let each = accesses(operation, body).into_iter();
        each.map(|a| (a.action, a.index, a.partition)).collect()
    }

    #[test]
    fn every_part_of_a_transaction_is_an_action_of_its_own() {
        let key = json!({ "PK": { "S": "NODE#n#m" }, "SK": { "S": "NODE" } });
        let body = json!({ "TransactItems": [
            { "Put": { "Item": key } },
            { "Update": { "Key": key } },
            { "Delete": { "Key": key } },
            { "ConditionCheck": { "Key": key } },
        ] });
        let names: Vec<String> = told("TransactWriteItems", &body)
            .into_iter()
            .map(|(action, index, partition)| {
                assert_eq!((index, partition.as_deref()), (None, Some("NODE#*")));
                action
            })
            .collect();
        let expected = ["PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"];
        assert_eq!(names, expected.map(|name| format!("dynamodb:{name}")));
    }

    #[test]
    fn a_query_tells_its_index_and_its_partition_and_a_batch_each_of_its_keys() {
        let body = json!({
            "IndexName": "due",
            "KeyConditionExpression": "#a=:v0 AND #b<=:v1",
            "ExpressionAttributeValues": { ":v0": { "S": "DUE#3" }, ":v1": { "S": "x" } },
        });
        let (index, partition) = (Some("due".to_owned()), Some("DUE#*".to_owned()));
        let query = "dynamodb:Query".to_owned();
        assert_eq!(told("Query", &body), [(query, index, partition)]);
        let body = json!({ "RequestItems": { "t": { "Keys": [
            { "PK": { "S": "NODES" } }, { "PK": { "S": "VM#1" } },
        ] } } });
        let kinds: Vec<Option<String>> = told("BatchGetItem", &body)
            .into_iter()
            .map(|(_, _, kind)| kind)
            .collect();
        assert_eq!(kinds, [Some("NODES".to_owned()), Some("VM#*".to_owned())]);
        let create = told("CreateTable", &json!({ "KeySchema": [] }));
        assert_eq!(create, [("dynamodb:CreateTable".to_owned(), None, None)]);
    }
}
