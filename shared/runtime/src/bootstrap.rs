//! The start of a function's process, and its loop.

use std::sync::Arc;
use std::time::Duration;

use aws_config::{BehaviorVersion, SdkConfig};
use dynamo::DynamoStore;
pub use dynamo::Touch;
use http_api::{HttpFunction, Service};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value;

use crate::clock::{SystemClock, SystemIds};
use crate::config;
use crate::function::{Function, FunctionError};

/// Why a process ends.
pub type Error = lambda_runtime::Error;

impl From<FunctionError> for Diagnostic {
    fn from(error: FunctionError) -> Self {
        Diagnostic {
            error_type: error.kind.to_owned(),
            error_message: error.message,
        }
    }
}

/// What an HTTP function of production has at hand.
pub type ProductionService = Service<DynamoStore, SystemClock, SystemIds>;

/// Longest time that the first request of a process may take, of its start.
const TOUCH_MAX: Duration = Duration::from_millis(1_500);

/// Starts logging and reads how the services are reached, once for all clients of a process.
///
/// # Errors
/// A missing variable.
pub async fn settings() -> Result<SdkConfig, Error> {
    crate::telemetry::init(config::metrics_namespace()?);
    Ok(aws_config::load_defaults(BehaviorVersion::latest()).await)
}

/// Opens the connection to the store by a read of what is not there, so that the first call finds
/// it open. Where that fails the process starts all the same: it is the first call that then opens
/// the connection, and says what is wrong if it cannot.
///
/// # Errors
/// A missing variable.
pub async fn store(settings: &SdkConfig, touch: Touch) -> Result<DynamoStore, Error> {
    let store = DynamoStore::connect(settings, config::table()?);
    match tokio::time::timeout(TOUCH_MAX, store.touch(touch)).await {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => tracing::warn!(%cause, "the store does not answer yet"),
        Err(_) => tracing::warn!("the store does not answer in time"),
    }
    Ok(store)
}

/// Starts an HTTP function's process up to its first call.
///
/// # Errors
/// A missing variable, or one that makes no sense.
pub async fn service() -> Result<Arc<ProductionService>, Error> {
    let (cursors, ttl_ms) = (config::cursor_key()?, config::key_ttl_ms()?);
    let store = store(&settings().await?, Touch::Keys).await?;
    Ok(Arc::new(Service::new(
        store,
        SystemClock,
        SystemIds,
        cursors,
        ttl_ms,
    )))
}

/// Answers HTTP events until the service ends the process.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn serve_http(function: HttpFunction) -> Result<(), Error> {
    serve(crate::http::function(function)).await
}

/// Handles events until the service ends the process.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn serve(function: Function) -> Result<(), Error> {
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let function = function.clone();
        async move {
            let reply = function.invoke(event.payload).await;
            crate::telemetry::flush();
            reply
        }
    });
    lambda_runtime::run(handler).await
}
