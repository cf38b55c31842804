//! The pump: reads the table's stream and hands it to the stream function by the rules of an event
//! source mapping, in order, nothing skipped.
//!
//! How far the stream is finished is written down after each batch, so a process killed at any
//! moment repeats records and never leaves one out.

pub mod record;
pub mod rules;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use app::ports::Clock as _;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use runtime::{Function, FunctionError, SystemClock};
use tokio::sync::watch;

use crate::client::causes;
use crate::data::Data;
use record::Record;
use rules::{Step, expired, pause, step, verdict};

/// Most records of one batch.
const BATCH_MAX: i32 = 100;
/// Longest time that the function may take.
const FUNCTION_MAX: Duration = Duration::from_secs(30);
/// The pause after an empty read while there is traffic; twice as long after each further one.
const IDLE_FIRST: Duration = Duration::from_millis(10);
/// The longest pause.
const IDLE_MAX: Duration = Duration::from_millis(100);
/// The pause after a read that failed.
const READ_FAILED: Duration = Duration::from_millis(500);
/// The file that says how far the stream is finished.
const CHECKPOINT: &str = "stream-checkpoint";

/// The pump of one stream to one function.
#[derive(Debug)]
pub struct Pump {
    source: Source,
    function: Function,
    data: Arc<Data>,
    work: VecDeque<Work>,
    /// How long to wait after so many failures.
    pause: fn(u32) -> Duration,
    /// Whether it has once come to the end of the stream.
    caught_up: watch::Sender<bool>,
}

/// Records that go to the function together.
#[derive(Debug)]
struct Work {
    records: VecDeque<Record>,
    /// How often the first of them failed.
    failures: u32,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stream of the table: {0}")]
pub struct StreamError(String);

impl StreamError {
    fn of(error: impl std::error::Error) -> Self {
        Self(causes(&error))
    }
}

impl Pump {
    /// A pump of this table's stream that goes on where the one before it left off.
    ///
    /// # Errors
    /// [`StreamError`] if the table has no stream, or what was written down cannot be read.
    pub async fn new(
        client: Client,
        table: &str,
        function: Function,
        data: Arc<Data>,
    ) -> Result<Self, StreamError> {
        let finished = data.read(CHECKPOINT).map_err(StreamError::of)?;
        let finished = finished.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let finished = finished.filter(|number| {
            let whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            if !whole {
                // Records that come again change nothing.
                tracing::warn!(
                    CHECKPOINT,
                    "not a checkpoint; the stream is read from its beginning"
                );
            }
            whole
        });
        Ok(Self {
            source: Source::new(client, table, finished).await?,
            function,
            data,
            work: VecDeque::new(),
            pause,
            caught_up: watch::Sender::new(false),
        })
    }

    /// Says true once it has come to the end of the stream for the first time: what a stopped
    /// platform left behind has been reacted to.
    pub fn caught_up(&self) -> watch::Receiver<bool> {
        self.caught_up.subscribe()
    }

    /// Pumps until `stop` says true; the batch under way is finished first.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut idle = IDLE_FIRST;
        while !*stop.borrow() {
            if self.work.is_empty() {
                let wait = match self.source.read().await {
                    Ok(records) if records.is_empty() => {
                        self.caught_up.send_replace(true);
                        let longer = idle.saturating_mul(2).min(IDLE_MAX);
                        std::mem::replace(&mut idle, longer)
                    }
                    Ok(records) => {
                        idle = IDLE_FIRST;
                        self.work.push_back(Work {
                            records: records.into(),
                            failures: 0,
                        });
                        Duration::ZERO
                    }
                    Err(error) => {
                        tracing::warn!(%error, "stream not read");
                        READ_FAILED
                    }
                };
                sleep(wait, &mut stop).await;
            } else {
                self.deliver(&mut stop).await;
            }
        }
    }

    /// Takes the first batch one step further.
    async fn deliver(&mut self, stop: &mut watch::Receiver<bool>) {
        let Some(mut work) = self.work.pop_front() else {
            return;
        };
        sleep((self.pause)(work.failures), stop).await;
        let Some(first) = work.records.front() else {
            return;
        };
        let now = SystemClock.now().unix_ms() / 1_000;
        let next = if expired(first.created_at, now, work.failures) {
            Step::GiveUp { at: 0 }
        } else {
            let reply = self.invoke(&work).await;
            let numbers: Vec<&str> = work
                .records
                .iter()
                .map(|record| record.sequence_number.as_str())
                .collect();
            step(numbers.len(), work.failures, verdict(&numbers, &reply))
        };
        self.take(&mut work, next);
    }

    async fn invoke(&self, work: &Work) -> Result<serde_json::Value, FunctionError> {
        let event = record::event(&work.records);
        let reply = tokio::time::timeout(FUNCTION_MAX, self.function.invoke(event)).await;
        let reply = reply.unwrap_or_else(|_| {
            Err(FunctionError {
                kind: "Timeout",
                message: format!("no reply within {} s", FUNCTION_MAX.as_secs()),
            })
        });
        if let Err(error) = &reply {
            tracing::warn!(%error, records = work.records.len(), "stream function failed");
        }
        reply
    }

    /// Carries out a step: notes what is finished and puts back what comes again.
    fn take(&mut self, work: &mut Work, next: Step) {
        let (finished, failures) = match next {
            Step::Finish => (work.records.len(), 0),
            Step::Again { from, failures } => (from, failures),
            Step::GiveUp { at } => (at, 0),
            Step::Split { at } => {
                let second = work.records.split_off(at);
                self.put_back(second, 0);
                (0, 0)
            }
        };
        let mut last = work.records.drain(..finished).next_back();
        if matches!(next, Step::GiveUp { .. })
            && let Some(poison) = work.records.pop_front()
        {
            self.give_up(&poison);
            last = Some(poison);
        }
        if let Some(last) = last {
            self.finished(&last.sequence_number);
        }
        self.put_back(std::mem::take(&mut work.records), failures);
    }

    fn put_back(&mut self, records: VecDeque<Record>, failures: u32) {
        if !records.is_empty() {
            self.work.push_front(Work { records, failures });
        }
    }

    /// Notes how far the stream is finished. Where that fails, the records come again after a
    /// restart, which changes nothing.
    fn finished(&mut self, sequence_number: &str) {
        self.source.finished = Some(sequence_number.to_owned());
        if let Err(error) = self.data.write(CHECKPOINT, sequence_number.as_bytes()) {
            tracing::warn!(%error, sequence_number, "checkpoint not written");
        }
    }

    /// Keeps a record that was given up, whole.
    fn give_up(&self, record: &Record) {
        let sequence_number = &record.sequence_number;
        let file = format!("dead-letters/stream-{sequence_number}.json");
        let kept = self.data.write(&file, record.value.to_string().as_bytes());
        match kept {
            Ok(()) => tracing::error!(sequence_number, file, "record given up"),
            Err(error) => {
                // Its images hold what callers wrote, which is not for a log; the item is in the
                // table, and its trail tells of the gap.
                let keys = &record.value["dynamodb"]["Keys"];
                tracing::error!(sequence_number, %error, %keys, "record given up and not kept");
            }
        }
    }
}

/// Sleeps, but not past a stop.
async fn sleep(wait: Duration, stop: &mut watch::Receiver<bool>) {
    if !wait.is_zero() {
        // Either outcome means the same: go on and look whether to stop.
        let _ = tokio::time::timeout(wait, stop.wait_for(|stopped| *stopped)).await;
    }
}

/// The stream, read from where it is finished.
#[derive(Debug)]
struct Source {
    client: Client,
    arn: String,
    /// The engine keeps a table's stream in one shard.
    shard: String,
    finished: Option<String>,
    iterator: Option<String>,
}

impl Source {
    async fn new(
        client: Client,
        table: &str,
        finished: Option<String>,
    ) -> Result<Self, StreamError> {
        let absent = |what: &str| StreamError(format!("{what} is missing"));
        let listed = client.list_streams().table_name(table).send().await;
        let streams = listed.map_err(StreamError::of)?.streams.unwrap_or_default();
        let arn = streams
            .into_iter()
            .next()
            .and_then(|stream| stream.stream_arn);
        let arn = arn.ok_or_else(|| absent("the stream"))?;
        let described = client.describe_stream().stream_arn(&arn).send().await;
        let described = described.map_err(StreamError::of)?.stream_description;
        let shards = described
            .and_then(|stream| stream.shards)
            .unwrap_or_default();
        let shard = shards.into_iter().next().and_then(|shard| shard.shard_id);
        Ok(Self {
            client,
            arn,
            shard: shard.ok_or_else(|| absent("its shard"))?,
            finished,
            iterator: None,
        })
    }

    /// The next records, at most [`BATCH_MAX`]. Only called when all that was read before is
    /// finished, so a lost iterator is made again without a gap.
    async fn read(&mut self) -> Result<Vec<Record>, StreamError> {
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => self.begin().await?,
        };
        let read = self
            .client
            .get_records()
            .shard_iterator(iterator)
            .limit(BATCH_MAX)
            .send()
            .await
            .map_err(StreamError::of)?;
        self.iterator = read.next_shard_iterator;
        let records = read.records.unwrap_or_default().into_iter();
        let records = records.filter_map(|record| record::from_sdk(record, &self.arn));
        Ok(records.collect())
    }

    async fn begin(&self) -> Result<String, StreamError> {
        let kind = match self.finished {
            Some(_) => ShardIteratorType::AfterSequenceNumber,
            None => ShardIteratorType::TrimHorizon,
        };
        let made = self
            .client
            .get_shard_iterator()
            .stream_arn(&self.arn)
            .shard_id(&self.shard)
            .shard_iterator_type(kind)
            .set_sequence_number(self.finished.clone())
            .send()
            .await
            .map_err(StreamError::of)?;
        made.shard_iterator
            .ok_or_else(|| StreamError("no place to read from".to_owned()))
    }
}

#[cfg(test)]
mod tests;
