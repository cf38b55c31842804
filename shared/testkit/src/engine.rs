//! The embedded engine behind the real store, in the test's own process: the store speaks HTTP to
//! it over a [`Wire`] that counts, measures and fails as a test asks.

mod wire;

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use app::ports::StoreResult;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use dynamo::DynamoStore;
use dynamo::table::Definition;
use dynoxide::{Database, ImportOptions};
use std::time::Duration;

pub use wire::{Access, Call, Fault, Wire};

/// The name of the table.
pub const TABLE: &str = "relet";

/// A running engine with the product's table. It stops when dropped.
pub struct Engine {
    endpoint: String,
    wire: Wire,
    store: DynamoStore,
    database: Database,
    server: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.endpoint)
    }
}

impl Engine {
    /// Starts one that holds its data in memory.
    ///
    /// # Panics
    /// If it cannot start: then no test can run.
    pub async fn start() -> Self {
        let database = Database::memory();
        Self::serve(database.unwrap_or_else(|error| unreachable!("no engine: {error}"))).await
    }

    /// Starts one that holds its data in this file.
    ///
    /// # Panics
    /// If it cannot start: then no test can run.
    pub async fn at(path: &Path) -> Self {
        let database = Database::new(&path.to_string_lossy());
        Self::serve(database.unwrap_or_else(|error| unreachable!("no engine: {error}"))).await
    }

    async fn serve(database: Database) -> Self {
        crate::logs::collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| unreachable!("no port: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| unreachable!("no address: {error}"));
        let served = dynoxide::server::serve_on(listener, database.clone());
        let server = tokio::spawn(served);
        let endpoint = format!("http://{address}");
        let wire = Wire::default();
        let client = client(&endpoint, &wire);
        let made: StoreResult<()> = dynamo::table::create(&client, TABLE, table()).await;
        made.unwrap_or_else(|error| unreachable!("no table: {error}"));
        Self {
            store: DynamoStore::new(client, TABLE),
            endpoint,
            wire,
            database,
            server,
        }
    }

    /// The store over it.
    #[must_use]
    pub fn store(&self) -> DynamoStore {
        self.store.clone()
    }

    /// Puts items into the table, in the form that the protocol has them, past its stream: many at
    /// once, for tests to which it matters how much there is.
    ///
    /// # Panics
    /// If one is no item: then no test can run.
    pub fn import(&self, items: Vec<serde_json::Value>) {
        let items: Result<Vec<_>, _> = items.into_iter().map(serde_json::from_value).collect();
        let items = items.unwrap_or_else(|error| unreachable!("not an item: {error}"));
        let imported = self
            .database
            .import_items(TABLE, items, ImportOptions::default());
        imported.unwrap_or_else(|error| unreachable!("not imported: {error}"));
    }

    /// A plain client of it.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.store.client()
    }

    /// Its address.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The wire between [`Engine::store`] and the engine.
    #[must_use]
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Another store over the same table, whose wire has no faults: another actor.
    #[must_use]
    pub fn another_store(&self) -> DynamoStore {
        DynamoStore::new(client(&self.endpoint, &Wire::default()), TABLE)
    }
}

/// The table as the template has it, read once in a process.
fn table() -> &'static Definition {
    static READ: OnceLock<Definition> = OnceLock::new();
    READ.get_or_init(|| {
        let table = relet_template::table();
        table.unwrap_or_else(|error| unreachable!("{error}"))
    })
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The variable that names the address of an engine elsewhere.
pub const ELSEWHERE: &str = "RELET_CONTRACT_ENDPOINT";

/// The store over a table of its own on an engine that somebody else has started.
///
/// # Panics
/// If [`ELSEWHERE`] is not set, or the table cannot be made: then no test can run.
pub async fn elsewhere() -> DynamoStore {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let endpoint = std::env::var(ELSEWHERE);
    let endpoint = endpoint.unwrap_or_else(|_| unreachable!("{ELSEWHERE} is not set"));
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // The engine is a fresh one: no table of an earlier process is there under this name.
    let table = format!("contract-{}-{number}", std::process::id());
    let client = client(&endpoint, &Wire::default());
    let made: StoreResult<()> = dynamo::table::create(&client, &table, self::table()).await;
    made.unwrap_or_else(|error| unreachable!("no table: {error}"));
    DynamoStore::new(client, table)
}

/// A client with the product's tries. Its time-outs are long: a slow machine is no failure.
fn client(endpoint: &str, wire: &Wire) -> Client {
    let patient = TimeoutConfig::builder()
        .operation_attempt_timeout(Duration::from_secs(20))
        .build();
    let retries: RetryConfig = dynamo::retries();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(retries)
        .timeout_config(patient)
        .http_client(wire.clone())
        .build();
    Client::from_conf(config)
}
