//! The store: every port over one table.

mod audit;
mod due;
mod key;
mod lists;
mod market;
mod node;
mod once;
mod place;
mod read;
mod reservation;
mod rules;
mod settle;
mod touch;
mod vm;
mod write;

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;

use crate::retry::{CountRetries, TOTAL_MAX};
pub use touch::Touch;

/// Tries of one request by the SDK, for throttling, time-outs and faults of the store.
const SDK_TRIES_MAX: u32 = 3;
/// Longest first pause between two of them.
const SDK_PAUSE: Duration = Duration::from_millis(25);
/// Longest pause between two of them.
const SDK_PAUSE_MAX: Duration = Duration::from_millis(200);
/// Longest time for one try.
const TRY_MAX: Duration = Duration::from_millis(900);
/// Longest time for a connection to be made.
const CONNECT_MAX: Duration = Duration::from_millis(800);

/// The store over a DynamoDB table. Its clones share one connection pool.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
}

impl DynamoStore {
    /// A store over this table, by this client's settings.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let settings = client.config().to_builder().interceptor(CountRetries);
        Self {
            client: Client::from_conf(settings.build()),
            table: table.into(),
        }
    }

    /// A store with the product's bounds on time and tries, reached by these settings. Nothing is
    /// sent yet: see [`DynamoStore::touch`].
    #[must_use]
    pub fn connect(settings: &SdkConfig, table: impl Into<String>) -> Self {
        let bounded = aws_sdk_dynamodb::config::Builder::from(settings)
            .retry_config(retries())
            .timeout_config(timeouts());
        Self::new(Client::from_conf(bounded.build()), table)
    }

    /// The client, for what is not the store's business: the table's stream, tests.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }
}

/// The product's bounds on the SDK's own tries.
#[must_use]
pub fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(SDK_TRIES_MAX)
        .with_initial_backoff(SDK_PAUSE)
        .with_max_backoff(SDK_PAUSE_MAX)
}

/// The product's bounds on time.
#[must_use]
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_MAX)
        .operation_attempt_timeout(TRY_MAX)
        .operation_timeout(TOTAL_MAX)
        .build()
}
