#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::bootstrap::{self, Touch};
use runtime::controller::HttpController;
use runtime::{SystemClock, SystemIds, config, terminate};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::Error> {
    let (url, secret) = config::controller()?;
    let controller = HttpController::new(&url, &secret, SystemClock);
    controller.prepare();
    let settings = bootstrap::settings().await?;
    let store = bootstrap::store(&settings, Touch::Vms).await?;
    bootstrap::serve(terminate::function(
        Arc::new(store),
        Arc::new(controller),
        SystemClock,
        SystemIds,
    ))
    .await
}
