#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::controller::HttpController;
use runtime::{SystemClock, SystemIds, bootstrap, config, terminate};

#[tokio::main]
async fn main() -> Result<(), runtime::Error> {
    let store = Arc::new(bootstrap::store(bootstrap::Touch::Vms).await?);
    let (url, secret) = config::controller()?;
    let controller = Arc::new(HttpController::new(&url, &secret, SystemClock)?);
    bootstrap::serve(terminate::function(
        store,
        controller,
        SystemClock,
        SystemIds,
    ))
    .await
}
