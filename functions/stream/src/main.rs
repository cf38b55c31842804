#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::bootstrap::{self, Touch};
use runtime::orders::SqsOrders;
use runtime::{SystemClock, config, stream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::Error> {
    let settings = bootstrap::settings().await?;
    let store = Arc::new(bootstrap::store(&settings, Touch::Trails).await?);
    let orders = Arc::new(SqsOrders::connect(&settings, config::queue_url()?));
    bootstrap::serve(stream::function(store, orders, SystemClock)).await
}
