//! The pump against functions that fail in every way the rules know. The stream itself is the
//! engine's, and is covered by the tests of the whole platform.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;

type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// A pump over records 101, 102, … whose function answers what `reply` says of their numbers.
async fn pump(
    count: usize,
    reply: impl Fn(&[String]) -> Result<Value, FunctionError> + Send + Sync + 'static,
) -> (Pump, Arc<Data>, Seen) {
    let seen = Seen::default();
    let (log, reply) = (Arc::clone(&seen), Arc::new(reply));
    let function = Function::new("stream", move |event: Value| {
        let records = event["Records"].as_array().cloned().unwrap_or_default();
        let numbers: Vec<String> = records
            .iter()
            .map(|record| record["n"].as_str().unwrap_or_default().to_owned())
            .collect();
        log.lock().unwrap().push(numbers.clone());
        let reply = reply(&numbers);
        async move { reply }
    });
    let records = (0..count).map(|place| {
        let number = (101 + place).to_string();
        Record {
            value: json!({ "n": number }),
            sequence_number: number,
            created_at: SystemClock.now().unix_ms() / 1_000,
        }
    });
    let data = Arc::new(Data::memory());
    let conf = aws_sdk_dynamodbstreams::Config::builder()
        .behavior_version(aws_sdk_dynamodbstreams::config::BehaviorVersion::latest())
        .build();
    let source = Source {
        client: Client::from_conf(conf),
        arn: String::new(),
        shard: String::new(),
        finished: None,
        iterator: None,
    };
    let pump = Pump {
        source,
        function,
        data: Arc::clone(&data),
        work: VecDeque::from([Work {
            records: records.collect(),
            failures: 0,
        }]),
        pause: |_| Duration::ZERO,
        caught_up: tokio::sync::watch::Sender::new(false),
    };
    (pump, data, seen)
}

async fn drain(pump: &mut Pump) {
    let (_sender, mut stop) = watch::channel(false);
    while !pump.work.is_empty() {
        pump.deliver(&mut stop).await;
    }
}

fn checkpoint(data: &Data) -> Option<String> {
    let bytes = data.read(CHECKPOINT).unwrap();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn failed(numbers: &[String], bad: &str) -> Result<Value, FunctionError> {
    let ids = numbers.iter().filter(|number| *number == bad);
    let each: Vec<Value> = ids.map(|id| json!({ "itemIdentifier": id })).collect();
    Ok(json!({ "batchItemFailures": each }))
}

fn error() -> FunctionError {
    FunctionError {
        kind: "Panic",
        message: "boom".to_owned(),
    }
}

#[tokio::test]
async fn a_good_batch_is_handed_over_once_and_noted() {
    let (mut pump, data, seen) = pump(3, |numbers| failed(numbers, "none")).await;
    drain(&mut pump).await;
    assert_eq!(*seen.lock().unwrap(), [["101", "102", "103"]]);
    assert_eq!(checkpoint(&data).as_deref(), Some("103"));
}

#[tokio::test]
async fn what_failed_comes_again_with_all_after_it_and_nothing_before_it() {
    let tries = Arc::new(Mutex::new(0));
    let (mut pump, data, seen) = pump(4, move |numbers| {
        let mut tries = tries.lock().unwrap();
        *tries += 1;
        failed(numbers, if *tries < 3 { "103" } else { "none" })
    })
    .await;
    drain(&mut pump).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], ["101", "102", "103", "104"]);
    assert_eq!(seen[1..], [["103", "104"], ["103", "104"]]);
    assert_eq!(checkpoint(&data).as_deref(), Some("104"));
}

#[tokio::test]
async fn a_record_that_fails_for_good_is_kept_whole_and_the_rest_goes_on() {
    let (mut pump, data, seen) = pump(3, |numbers| failed(numbers, "102")).await;
    drain(&mut pump).await;
    let seen = seen.lock().unwrap();
    let tries = seen
        .iter()
        .filter(|batch| batch.contains(&"102".to_owned()));
    assert_eq!(tries.count(), 11, "once, and ten times again");
    assert_eq!(seen.last().unwrap(), &["103"]);
    let kept = data.read("dead-letters/stream-102.json").unwrap().unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&kept).unwrap(),
        json!({ "n": "102" })
    );
    assert_eq!(data.names("dead-letters").unwrap().len(), 1);
    assert_eq!(checkpoint(&data).as_deref(), Some("103"));
}

#[tokio::test]
async fn a_record_that_fails_the_function_is_found_by_halving() {
    let (mut pump, data, seen) = pump(8, |numbers| match numbers.contains(&"106".to_owned()) {
        true => Err(error()),
        false => Ok(json!({ "batchItemFailures": [] })),
    })
    .await;
    drain(&mut pump).await;
    let done: Vec<String> = {
        let seen = seen.lock().unwrap();
        let good = seen
            .iter()
            .filter(|batch| !batch.contains(&"106".to_owned()));
        good.flatten().cloned().collect()
    };
    assert_eq!(done, ["101", "102", "103", "104", "105", "107", "108"]);
    assert_eq!(
        data.names("dead-letters").unwrap(),
        ["dead-letters/stream-106.json"]
    );
    assert_eq!(checkpoint(&data).as_deref(), Some("108"));
}

#[tokio::test]
async fn a_reply_with_an_empty_id_fails_the_batch_whole() {
    let tries = Arc::new(Mutex::new(0));
    let (mut pump, data, seen) = pump(2, move |_| {
        let mut tries = tries.lock().unwrap();
        *tries += 1;
        let id = json!({ "itemIdentifier": "" });
        let none = json!({ "batchItemFailures": [] });
        Ok(if *tries == 1 {
            json!({ "batchItemFailures": [id] })
        } else {
            none
        })
    })
    .await;
    drain(&mut pump).await;
    let seen: Vec<usize> = seen.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(seen, [2, 1, 1]);
    assert_eq!(checkpoint(&data).as_deref(), Some("102"));
}
