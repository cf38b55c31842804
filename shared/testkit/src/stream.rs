//! The table's stream, read as an event source mapping reads it: records in order, in the form in
//! which a function gets them.

use std::collections::BTreeMap;

use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use serde_json::{Value, json};

use crate::engine::{Engine, TABLE};

/// Reads the stream of a table from its beginning.
#[derive(Debug)]
pub struct StreamReader {
    client: Client,
    iterator: String,
}

impl StreamReader {
    /// A reader at the beginning.
    ///
    /// # Panics
    /// If the engine has no such stream: then no test can run.
    pub async fn start(engine: &Engine) -> Self {
        Self::of(engine.endpoint(), TABLE).await
    }

    /// A reader at the beginning of the stream of this table, on the engine at this address.
    ///
    /// # Panics
    /// If there is no such stream: then no test can run.
    pub async fn of(endpoint: &str, table: &str) -> Self {
        let config = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::new("local"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .build();
        let client = Client::from_conf(config);
        let iterator = beginning(&client, table).await;
        let iterator = iterator.unwrap_or_else(|| unreachable!("{table} has no stream"));
        Self { client, iterator }
    }

    /// The next records, none if there are no more by now.
    ///
    /// # Panics
    /// If the engine does not answer.
    pub async fn next(&mut self) -> Vec<Value> {
        let asked = self
            .client
            .get_records()
            .shard_iterator(&self.iterator)
            .send();
        let page = asked.await;
        let page = page.unwrap_or_else(|error| unreachable!("no records: {error:?}"));
        if let Some(next) = page.next_shard_iterator {
            self.iterator = next;
        }
        page.records.iter().flatten().map(as_event_record).collect()
    }

    /// All records that there are by now.
    pub async fn drain(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let page = self.next().await;
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }
}

/// The engine has one shard for a table, so its beginning is that of the stream.
async fn beginning(client: &Client, table: &str) -> Option<String> {
    let streams = client.list_streams().table_name(table).send().await.ok()?;
    let arn = streams.streams().first()?.stream_arn()?.to_owned();
    let described = client
        .describe_stream()
        .stream_arn(&arn)
        .send()
        .await
        .ok()?;
    let shard = described.stream_description()?.shards().first()?;
    let iterator = client
        .get_shard_iterator()
        .stream_arn(&arn)
        .shard_id(shard.shard_id()?)
        .shard_iterator_type(ShardIteratorType::TrimHorizon)
        .send();
    iterator.await.ok()?.shard_iterator
}

fn as_event_record(record: &Record) -> Value {
    let mut out = json!({
        "eventID": record.event_id(),
        "eventName": record.event_name().map(|name| name.as_str()),
        "eventVersion": record.event_version(),
        "eventSource": record.event_source(),
        "awsRegion": record.aws_region(),
        "eventSourceARN": "arn:aws:dynamodb:eu-central-1:000000000000:table/relet/stream/1",
    });
    let Some(change) = record.dynamodb() else {
        return out;
    };
    let mut images = json!({
        "ApproximateCreationDateTime":
            change.approximate_creation_date_time().map(|at| at.as_secs_f64()),
        "SequenceNumber": change.sequence_number(),
        "SizeBytes": change.size_bytes(),
        "StreamViewType": change.stream_view_type().map(|view| view.as_str()),
    });
    let each = [
        ("Keys", change.keys()),
        ("NewImage", change.new_image()),
        ("OldImage", change.old_image()),
    ];
    for (name, image) in each {
        if let Some(image) = image {
            images[name] = item(image);
        }
    }
    out["dynamodb"] = images;
    out
}

fn item<'a>(image: impl IntoIterator<Item = (&'a String, &'a AttributeValue)>) -> Value {
    let item: BTreeMap<&String, serde_dynamo::AttributeValue> = image
        .into_iter()
        .map(|(name, value)| (name, value.clone().into()))
        .collect();
    json!(item)
}
