#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::orders::SqsOrders;
use runtime::{SystemClock, bootstrap, config, stream};

#[tokio::main]
async fn main() -> Result<(), runtime::Error> {
    let store = Arc::new(bootstrap::store(bootstrap::Touch::Trails).await?);
    let orders = Arc::new(SqsOrders::connect(config::queue_url()?).await);
    bootstrap::serve(stream::function(store, orders, SystemClock)).await
}
