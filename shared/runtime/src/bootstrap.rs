//! The start of a function's process, and its loop.

use std::sync::Arc;

use dynamo::{DynamoStore, Settings};
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

/// Starts logging and connects to the store, so that the first call finds the connection open.
///
/// # Errors
/// A missing variable, or a store that cannot be reached.
pub async fn store() -> Result<DynamoStore, Error> {
    crate::telemetry::init(config::metrics_namespace()?);
    let settings = Settings {
        table: config::table()?,
        ..Settings::default()
    };
    Ok(DynamoStore::connect(&settings).await?)
}

/// Starts an HTTP function's process up to its first call.
///
/// # Errors
/// As [`store`].
pub async fn service() -> Result<Arc<ProductionService>, Error> {
    let store = store().await?;
    let (cursors, ttl_ms) = (config::cursor_key()?, config::key_ttl_ms()?);
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
