//! The embedded engine: DynamoDB's protocol over HTTP, on a port of this machine alone.

use std::path::{Path, PathBuf};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::{Failure, run, start};

/// The one region of this machine.
const REGION: &str = "local";

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    url: String,
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
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            // A sender that is gone means the same as one that has spoken.
            let _ = stopped.await;
        };
        let serving = dynoxide::server::serve_with_shutdown(listener, database, shutdown);
        Ok(Self {
            url: format!("http://{address}"),
            stop,
            task: tokio::spawn(serving),
        })
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

/// The engine keeps a table's stream for good and looks for its end and its continuation by the
/// order of the records. Without this index it reads all of them, at each write and each poll.
fn index_stream(file: &Path) -> rusqlite::Result<()> {
    rusqlite::Connection::open(file)?.execute_batch(
        "CREATE INDEX IF NOT EXISTS relet_stream_order
         ON _stream_records (table_name, CAST(sequence_number AS INTEGER))",
    )
}
