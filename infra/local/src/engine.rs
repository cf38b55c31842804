//! The embedded engine: DynamoDB's protocol over HTTP, on a port of this machine alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::failure::{Failure, run, start};

/// The one region of this machine.
const REGION: &str = "local";

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    url: String,
    tidy: Tidy,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), String>>,
}

impl Engine {
    /// Starts an engine over the table in this file; over one in memory without.
    ///
    /// # Errors
    /// [`Failure::Start`] if the file is not the engine's or cannot be opened.
    pub async fn start(file: Option<&Path>) -> Result<Self, Failure> {
        let database = match file {
            Some(file) => {
                let what = format!("cannot open {}", file.display());
                let database = Database::new(&file.to_string_lossy());
                let database = database.map_err(|error| start(&what, error))?;
                index_stream(file).map_err(|error| start(&what, error))?;
                database
            }
            None => Database::memory().map_err(|error| start("cannot open the table", error))?,
        };
        let bound = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = bound.map_err(|error| start("cannot open a port for the table", error))?;
        let address = listener
            .local_addr()
            .map_err(|error| start("cannot open a port for the table", error))?;
        let tidy = Tidy(database.clone());
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            // A sender that is gone means the same as one that has spoken.
            let _ = stopped.await;
        };
        let serving = dynoxide::server::serve_with_shutdown(listener, database, shutdown);
        Ok(Self {
            url: format!("http://{address}"),
            tidy,
            stop,
            task: tokio::spawn(serving),
        })
    }

    /// What drops its items that have had their time.
    #[must_use]
    pub fn tidy(&self) -> Tidy {
        self.tidy.clone()
    }

    /// The files that a table in this file may consist of.
    pub(crate) fn files(file: &Path) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|suffix| {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        })
    }

    /// Brings a table that no engine has open into its one file.
    ///
    /// # Errors
    /// As the file system has it.
    pub(crate) fn fold(file: &Path) -> rusqlite::Result<()> {
        rusqlite::Connection::open(file)?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// A client of its tables.
    #[must_use]
    pub fn tables(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::new(&self.settings())
    }

    /// A client of its streams.
    #[must_use]
    pub fn streams(&self) -> aws_sdk_dynamodbstreams::Client {
        aws_sdk_dynamodbstreams::Client::new(&self.settings())
    }

    /// Where it is, with the bounds on time and tries of production.
    fn settings(&self) -> SdkConfig {
        // It asks for a signature and takes any.
        let credentials = Credentials::new("local", "local", None, None, "relet");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&self.url)
            .region(Region::new(REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .retry_config(dynamo::retries())
            .timeout_config(dynamo::timeouts())
            .build()
    }

    /// Stops it once the requests it is at are answered.
    ///
    /// # Errors
    /// [`Failure::Run`] if it had failed.
    pub async fn stop(self) -> Result<(), Failure> {
        // Nobody listening means that it has stopped by itself.
        let _ = self.stop.send(());
        let ended = self.task.await;
        let ended = ended.map_err(|error| run("the table's engine", error))?;
        ended.map_err(|error| run("the table's engine", error))
    }
}

/// Drops items that have had their time, as the cloud's table does by itself.
#[derive(Clone)]
pub struct Tidy(Database);

impl std::fmt::Debug for Tidy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tidy")
    }
}

/// Between two looks through the table, which read all of it.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

impl Tidy {
    /// Drops those that have had their time by now. Returns how many.
    ///
    /// # Errors
    /// [`Failure::Run`] if the table cannot be read.
    pub async fn once(&self) -> Result<usize, Failure> {
        let what = "the table's engine";
        let database = self.0.clone();
        let dropped = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        let dropped = dropped.map_err(|error| run(what, error))?;
        dropped.map_err(|error| run(what, error))
    }

    /// Does so every hour until it is told to stop.
    pub async fn run(self, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(TIDY_EVERY) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            match self.once().await {
                Ok(dropped) => tracing::debug!(dropped, "expired items dropped"),
                Err(error) => tracing::warn!(%error, "expired items not dropped"),
            }
        }
    }
}

/// The engine keeps a table's stream for good and looks for its end and its continuation by the
/// order of the records. Without this index it reads all of them, at each write and each poll.
fn index_stream(file: &Path) -> rusqlite::Result<()> {
    rusqlite::Connection::open(file)?.execute_batch(
        "CREATE INDEX IF NOT EXISTS relet_stream_order
         ON _stream_records (table_name, CAST(sequence_number AS INTEGER))",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::AttributeValue;

    #[tokio::test]
    async fn what_has_had_its_time_is_dropped_and_nothing_else() {
        let engine = Engine::start(None).await.unwrap();
        let tables = engine.tables();
        let table = relet_template::table().unwrap();
        dynamo::table::create(&tables, "table", &table)
            .await
            .unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        for (name, ttl) in [
            ("past", Some(1_600_000_000)),
            ("future", Some(now + 3_600)),
            ("none", None),
        ] {
            let text = AttributeValue::S(name.to_owned());
            let put = tables.put_item().table_name("table");
            let put = put.item("PK", text.clone()).item("SK", text);
            let ttl = ttl.map(|seconds: u64| AttributeValue::N(seconds.to_string()));
            let put = match ttl {
                Some(ttl) => put.item("ttl", ttl),
                None => put,
            };
            put.send().await.unwrap();
        }
        assert_eq!(engine.tidy().once().await.unwrap(), 1);
        let left = tables.scan().table_name("table").send().await.unwrap();
        let mut left: Vec<String> = left
            .items()
            .iter()
            .filter_map(|item| item["PK"].as_s().ok().cloned())
            .collect();
        left.sort();
        assert_eq!(left, ["future", "none"]);
    }
}
