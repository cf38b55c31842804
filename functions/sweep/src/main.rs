#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::orders::SqsOrders;
use runtime::{SystemClock, SystemIds, bootstrap, config, sweep};

#[tokio::main]
async fn main() -> Result<(), runtime::Error> {
    let store = Arc::new(bootstrap::store(bootstrap::Touch::Trails).await?);
    let orders = Arc::new(SqsOrders::connect(config::queue_url()?).await);
    let rules = config::sweep_rules()?;
    bootstrap::serve(sweep::function(
        store,
        orders,
        SystemClock,
        SystemIds,
        rules,
    ))
    .await
}
