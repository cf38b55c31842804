#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::bootstrap::{self, Touch};
use runtime::controller::HttpController;
use runtime::{SystemClock, SystemIds, config, terminate};
use tokio::task::spawn_blocking;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::Error> {
    let (url, secret) = config::controller()?;
    // Reads all certificates of the system, as the store does: both at once.
    let controller = spawn_blocking(move || HttpController::new(&url, &secret, SystemClock));
    let settings = bootstrap::settings().await?;
    let store = bootstrap::store(&settings, Touch::Vms).await?;
    bootstrap::serve(terminate::function(
        Arc::new(store),
        Arc::new(controller.await??),
        SystemClock,
        SystemIds,
    ))
    .await
}
