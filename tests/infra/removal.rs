//! Whatever is taken out of the template is missed: each resource, each of its members, each item
//! of a list, down to the last right, setting and route. And what is put in is noticed.

use serde_json::{Value, json};

use crate::used::Used;
use crate::{findings, folders, is_wrong, logical};

/// Fails if anything can be taken out of the template, or some things put into it, unseen.
pub(crate) fn assert_missed(mut template: Value, used: &Used) {
    let mut places = Vec::new();
    for section in [
        "Parameters",
        "Conditions",
        "Globals",
        "Resources",
        "Outputs",
    ] {
        let depth = match section {
            // What a parameter allows and what an output says is theirs to tell.
            "Parameters" | "Outputs" => 1,
            _ => usize::MAX,
        };
        collect(
            &template[section],
            &format!("/{section}"),
            depth,
            &mut places,
        );
    }
    assert!(places.len() > 2_000, "only {} places", places.len());
    let mut unseen = Vec::new();
    for place in places {
        let (parent, name) = place.rsplit_once('/').unwrap();
        let taken = take(template.pointer_mut(parent).unwrap(), &unescaped(name));
        if !is_wrong(&template, used) {
            unseen.push(place.clone());
        }
        put(
            template.pointer_mut(parent).unwrap(),
            &unescaped(name),
            taken,
        );
    }
    assert_eq!(unseen, [""; 0], "taken out unseen");
    assert_eq!(
        findings(&template, used),
        [""; 0],
        "all is back in its place"
    );
    assert_noticed(&template, used);
}

/// All places below a value, by pointers, those further up first.
fn collect(value: &Value, at: &str, depth: usize, into: &mut Vec<String>) {
    let Some(deeper) = depth.checked_sub(1) else {
        return;
    };
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            members
                .iter()
                .map(|(name, member)| (escaped(name), member))
                .collect()
        }
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered
                .map(|(place, item)| (place.to_string(), item))
                .collect()
        }
        _ => return,
    };
    for (name, member) in members {
        let place = format!("{at}/{name}");
        into.push(place.clone());
        collect(member, &place, deeper, into);
    }
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn take(parent: &mut Value, name: &str) -> Value {
    match parent {
        Value::Object(members) => members.remove(name).unwrap(),
        Value::Array(items) => items.remove(name.parse::<usize>().unwrap()),
        _ => Value::Null,
    }
}

fn put(parent: &mut Value, name: &str, value: Value) {
    match parent {
        Value::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        Value::Array(items) => items.insert(name.parse::<usize>().unwrap(), value),
        _ => {}
    }
}

/// More than what is needed is noticed as well.
fn assert_noticed(template: &Value, used: &Used) {
    let mut changes: Vec<(String, Value)> = Vec::new();
    for function in folders() {
        let name = logical(&function);
        let statements =
            format!("/Resources/{name}Role/Properties/Policies/0/PolicyDocument/Statement");
        for (what, more) in [
            ("0/Action/-", json!("dynamodb:Scan")),
            ("1/Action/-", json!("dynamodb:DeleteItem")),
            ("0/Resource", json!("*")),
            (
                "0/Condition/ForAllValues:StringLike/dynamodb:LeadingKeys/-",
                json!("*"),
            ),
            ("0/Effect", json!("Deny")),
            (
                "-",
                json!({ "Sid": "All", "Effect": "Allow", "Action": ["s3:*"], "Resource": "*" }),
            ),
        ] {
            changes.push((format!("{statements}/{what}"), more));
        }
        let variables = format!("/Resources/{name}Function/Properties/Environment/Variables/EXTRA");
        changes.push((variables, json!("1")));
        changes.push((
            format!("/Resources/{name}Function/Properties/Policies"),
            json!(["x"]),
        ));
    }
    let route = template["Resources"]["DefaultRoute"].clone();
    changes.push(("/Resources/ExtraRoute".to_owned(), route));
    let function = template["Resources"]["KeysFunction"].clone();
    changes.push(("/Resources/ExtraFunction".to_owned(), function));
    let alarm = template["Resources"]["StuckAlarm"].clone();
    changes.push(("/Resources/ExtraAlarm".to_owned(), alarm));
    let permission = template["Resources"]["KeysPermission"].clone();
    changes.push(("/Resources/ExtraPermission".to_owned(), permission));
    for (place, more) in changes {
        let mut changed = template.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        let Some(parent) = changed.pointer_mut(parent) else {
            continue;
        };
        match (parent, name) {
            (Value::Array(items), "-") => items.push(more),
            (parent, name) => parent[unescaped(name)] = more,
        }
        assert!(
            !findings(&changed, used).is_empty(),
            "{place}: put in unseen"
        );
    }
}
