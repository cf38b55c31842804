//! Each role has exactly the rights that its function makes use of, and each of them on exactly the
//! resource that it is used on.
//!
//! What the code needs was seen on the wire. What the service needs of the role in the function's
//! stead, to read a stream or a queue and to write the log, follows from the mappings.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::used::Used;
use crate::{Findings, assert_generated, expect, folders, logical, properties};

/// A right, with the partitions that it is bounded to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    on: String,
    action: String,
    partitions: BTreeSet<String>,
    because: &'static str,
}

/// Actions that read items; all others of the table write them.
const READS: [&str; 3] = [
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:Query",
];

/// What the service does in the function's stead, where its resource has one of these words.
const OF_STREAM: [&str; 4] = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
];
const OF_QUEUE: [&str; 3] = [
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
];
const OF_LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

fn right(on: &str, action: &str, because: &'static str) -> Right {
    Right {
        on: on.to_owned(),
        action: action.to_owned(),
        partitions: BTreeSet::new(),
        because,
    }
}

/// What a function's role must allow.
fn needed(used: &Used, function: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    let accesses = &used[function];
    for access in accesses {
        let on = match &access.index {
            Some(index) => format!("Table/index/{index}"),
            None if access.action.starts_with("sqs:") => "OrdersQueue".to_owned(),
            None => "Table".to_owned(),
        };
        let mut right = right(&on, &access.action, "its code");
        if on == "Table" {
            // A transaction is judged with all of its keys, whatever is done to each: so reads have
            // one set of partitions, and writes have one.
            let reads = READS.contains(&access.action.as_str());
            let same = accesses.iter().filter(|other| {
                let kind = other.action.starts_with("dynamodb:") && other.index.is_none();
                kind && READS.contains(&other.action.as_str()) == reads
            });
            right.partitions = same.filter_map(|other| other.partition.clone()).collect();
        }
        rights.insert(right);
    }
    let because = "its mapping";
    match function {
        "stream" => {
            rights.extend(OF_STREAM.map(|action| right("Table.StreamArn", action, because)));
            rights.insert(right("FailedRecordsBucket", "s3:ListBucket", because));
            let objects = "FailedRecordsBucket/aws/lambda/*";
            rights.insert(right(objects, "s3:PutObject", because));
        }
        "terminate" => {
            rights.extend(OF_QUEUE.map(|action| right("OrdersQueue", action, because)));
        }
        _ => {}
    }
    let log = format!("{}Logs", logical(function));
    rights.extend(OF_LOG.map(|action| right(&log, action, "its log")));
    rights
}

/// What a role allows. What is not understood is a finding.
fn granted(found: &mut Findings, template: &Value, role: &str) -> BTreeSet<Right> {
    let policy = &properties(template, role)["Policies"][0]["PolicyDocument"];
    let mut rights = BTreeSet::new();
    for statement in policy["Statement"].as_array().into_iter().flatten() {
        let sound = statement["Effect"] == "Allow" && statement["Sid"].is_string();
        let (Some(on), true) = (resources(&statement["Resource"]), sound) else {
            found.push(format!("{role}: {statement} is not understood"));
            continue;
        };
        let partitions = partitions(found, role, statement);
        for action in statement["Action"].as_array().into_iter().flatten() {
            for on in &on {
                rights.insert(Right {
                    on: on.clone(),
                    action: action.as_str().unwrap_or_default().to_owned(),
                    partitions: partitions.clone(),
                    because: "",
                });
            }
        }
    }
    rights
}

/// The resources of a statement by short names; `None` if one is of another form.
fn resources(value: &Value) -> Option<Vec<String>> {
    if let Some(several) = value.as_array() {
        let each = several.iter().map(|one| resources(one)?.pop());
        return each.collect();
    }
    let text = match (value["Fn::GetAtt"][1].as_str(), value["Fn::Sub"].as_str()) {
        (Some("Arn"), None) => value["Fn::GetAtt"][0].as_str()?.to_owned(),
        (Some(attribute), None) => format!("{}.{attribute}", value["Fn::GetAtt"][0].as_str()?),
        (None, Some(text)) => text.strip_prefix("${")?.replacen(".Arn}", "", 1),
        _ => return None,
    };
    Some(vec![text])
}

/// The partitions that a statement is bounded to: by nothing else may it be.
fn partitions(found: &mut Findings, role: &str, statement: &Value) -> BTreeSet<String> {
    let keys = &statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    let bound = json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys } });
    let condition = &statement["Condition"];
    if !condition.is_null() && *condition != bound {
        found.push(format!("{role}: {condition} is not understood"));
    }
    let keys = keys.as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned))
        .collect()
}

pub(crate) fn findings(template: &Value, used: &Used) -> Findings {
    let mut found = Findings::new();
    for function in folders() {
        let role = format!("{}Role", logical(&function));
        let kind = &template["Resources"][&role]["Type"];
        expect(&mut found, &role, kind, &json!("AWS::IAM::Role"));
        let trust = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Principal": { "Service": "lambda.amazonaws.com" },
            "Action": "sts:AssumeRole",
        }] });
        let properties = properties(template, &role);
        let policies = &properties["Policies"];
        let document = &policies[0]["PolicyDocument"];
        let rest = json!({
            "AssumeRolePolicyDocument": trust,
            "Policies": [{
                "PolicyName": function,
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": document["Statement"],
                },
            }],
        });
        expect(&mut found, &role, &properties, &rest);
        let granted = granted(&mut found, template, &role);
        let unexplained = |right: Right| Right {
            because: "",
            ..right
        };
        let needed = needed(used, &function).into_iter().map(unexplained);
        let needed: BTreeSet<Right> = needed.collect();
        for (rights, what) in [
            (granted.difference(&needed), "is not what is used"),
            (needed.difference(&granted), "is used and lacking"),
        ] {
            for right in rights {
                let (on, action, partitions) = (&right.on, &right.action, &right.partitions);
                found.push(format!("{role}: {action} on {on} {partitions:?} {what}"));
            }
        }
    }
    found
}

/// The rights as the document has them: a row for each resource of each function.
pub(crate) fn assert_documented(used: &Used) {
    let mut text = String::new();
    for function in folders() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n### {function}\n\n| on | may | where | for |\n|---|---|---|---|"
        );
        let rights = needed(used, &function);
        let mut rows: Vec<(&str, &BTreeSet<String>, &str)> = rights
            .iter()
            .map(|r| (r.on.as_str(), &r.partitions, r.because))
            .collect();
        rows.sort();
        rows.dedup();
        for (on, partitions, because) in rows {
            let same = rights.iter().filter(|right| {
                right.on == on && right.partitions == *partitions && right.because == because
            });
            let quoted = |text: &str| format!("`{text}`");
            let actions: Vec<String> = same.map(|right| quoted(&right.action)).collect();
            let places: Vec<String> = partitions.iter().map(|text| quoted(text)).collect();
            let (actions, places) = (actions.join(", "), places.join(", "));
            let _ = writeln!(text, "| `{on}` | {actions} | {places} | {because} |");
        }
    }
    text.push('\n');
    let lines = ("<!-- Made by tests/infra -->\n", "<!-- End -->\n");
    assert_generated("docs/iam.md", lines, &text);
}
