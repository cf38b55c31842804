//! A record of the stream as the event source mapping hands it to a function.

use aws_sdk_dynamodbstreams::types as sdk;
use serde_json::{Map, Value, json};

/// A record with what the pump itself needs of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its place in the stream.
    pub sequence_number: String,
    /// When the change was made, in seconds since 1970.
    pub created_at: i64,
    /// All of it, as functions get it.
    pub value: Value,
}

/// The event of a batch.
#[must_use]
pub fn event<'a>(records: impl IntoIterator<Item = &'a Record>) -> Value {
    let records: Vec<&Value> = records.into_iter().map(|record| &record.value).collect();
    json!({ "Records": records })
}

/// Takes a record of the SDK; `None` if it has no sequence number, which no real one lacks.
#[must_use]
pub fn from_sdk(record: sdk::Record, stream_arn: &str) -> Option<Record> {
    let change = record.dynamodb?;
    let sequence_number = change.sequence_number?;
    let created = change.approximate_creation_date_time;
    let created_at = created.map_or(0, |at| at.secs());
    let mut images = Map::new();
    images.insert("ApproximateCreationDateTime".to_owned(), json!(created_at));
    let named = [
        ("Keys", change.keys),
        ("NewImage", change.new_image),
        ("OldImage", change.old_image),
    ];
    for (name, image) in named {
        if let Some(image) = image {
            let attributes = image
                .into_iter()
                .map(|(name, value)| (name, serde_dynamo::AttributeValue::from(value)));
            let item: std::collections::BTreeMap<String, serde_dynamo::AttributeValue> =
                attributes.collect();
            images.insert(name.to_owned(), serde_json::to_value(item).ok()?);
        }
    }
    images.insert("SequenceNumber".to_owned(), json!(sequence_number));
    images.insert("SizeBytes".to_owned(), json!(change.size_bytes));
    let view = change.stream_view_type.map(|view| view.as_str().to_owned());
    images.insert("StreamViewType".to_owned(), json!(view));
    let value = json!({
        "eventID": record.event_id,
        "eventName": record.event_name.map(|name| name.as_str().to_owned()),
        "eventVersion": record.event_version,
        "eventSource": record.event_source,
        "awsRegion": record.aws_region,
        "eventSourceARN": stream_arn,
        "dynamodb": images,
    });
    Some(Record {
        sequence_number,
        created_at,
        value,
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::primitives::{Blob, DateTime};
    use aws_sdk_dynamodbstreams::types::AttributeValue as A;

    use super::*;

    #[test]
    fn a_record_has_every_member_that_functions_get() {
        let change = sdk::StreamRecord::builder()
            .approximate_creation_date_time(DateTime::from_secs(1_782_907_200))
            .keys("pk", A::S("NODE#n".to_owned()))
            .new_image("pk", A::S("NODE#n".to_owned()))
            .new_image("n", A::N("7".to_owned()))
            .new_image("set", A::Ss(vec!["a".to_owned(), "b".to_owned()]))
            .new_image("list", A::L(vec![A::Bool(true), A::Null(true)]))
            .new_image(
                "map",
                A::M([("b".to_owned(), A::B(Blob::new(b"x")))].into()),
            )
            .sequence_number("100000000000000000001")
            .size_bytes(42)
            .stream_view_type(sdk::StreamViewType::NewAndOldImages)
            .build();
        let record = sdk::Record::builder()
            .event_id("e-1")
            .event_name(sdk::OperationType::Insert)
            .event_version("1.1")
            .event_source("aws:dynamodb")
            .aws_region("local")
            .dynamodb(change)
            .build();
        let record = from_sdk(record, "arn:stream").unwrap();
        assert_eq!(record.sequence_number, "100000000000000000001");
        assert_eq!(record.created_at, 1_782_907_200);
        let expected = json!({
            "eventID": "e-1",
            "eventName": "INSERT",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "local",
            "eventSourceARN": "arn:stream",
            "dynamodb": {
                "ApproximateCreationDateTime": 1_782_907_200,
                "Keys": { "pk": { "S": "NODE#n" } },
                "NewImage": {
                    "pk": { "S": "NODE#n" },
                    "n": { "N": "7" },
                    "set": { "SS": ["a", "b"] },
                    "list": { "L": [{ "BOOL": true }, { "NULL": true }] },
                    "map": { "M": { "b": { "B": "eA==" } } },
                },
                "SequenceNumber": "100000000000000000001",
                "SizeBytes": 42,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        });
        assert_eq!(record.value, expected);
        assert_eq!(event([&record]), json!({ "Records": [expected] }));
    }
}
