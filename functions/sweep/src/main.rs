#![doc = include_str!("../README.md")]

use std::sync::Arc;

use runtime::bootstrap::{self, Touch};
use runtime::orders::SqsOrders;
use runtime::{SystemClock, SystemIds, config, sweep};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::Error> {
    let settings = bootstrap::settings().await?;
    let store = Arc::new(bootstrap::store(&settings, Touch::Trails).await?);
    let orders = Arc::new(SqsOrders::connect(&settings, config::queue_url()?));
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
