//! The sweep function: run by the clock, it looks after everything that is due.

use std::sync::Arc;

use app::ports::{Clock, Ids, SendOrders};
use app::sweep::{Rules, SweepStore, Swept, sweep};
use serde_json::{Value, json};

use crate::function::{Function, FunctionError};

/// The function over these ports. What the event says does not matter: it is the clock's stroke.
pub fn function<S, Q, C, I>(
    store: Arc<S>,
    orders: Arc<Q>,
    clock: C,
    ids: I,
    rules: Rules,
) -> Function
where
    S: SweepStore + 'static,
    Q: SendOrders + 'static,
    C: Clock + Clone,
    I: Ids + Clone,
{
    Function::new("sweep", move |_event| {
        let (store, orders) = (Arc::clone(&store), Arc::clone(&orders));
        let (clock, ids) = (clock.clone(), ids.clone());
        async move { handle(&*store, &*orders, &clock, &ids, &rules).await }
    })
}

async fn handle(
    store: &impl SweepStore,
    orders: &impl SendOrders,
    clock: &impl Clock,
    ids: &impl Ids,
    rules: &Rules,
) -> Result<Value, FunctionError> {
    let swept = sweep(store, orders, clock, ids, rules).await;
    let swept = swept.map_err(|error| FunctionError {
        kind: "Sweep",
        message: format!("what is due cannot be found: {error:?}"),
    })?;
    tell(&swept);
    Ok(json!({
        "items": swept.items,
        "activated": swept.activated,
        "withheld": swept.withheld,
        "expired": swept.expired,
        "orders": swept.orders,
        "draining": swept.draining,
        "stuck": swept.stuck,
        "gaps": swept.gaps,
        "failed": swept.failed,
        "behind": swept.behind,
        "lagMs": swept.lag_ms,
    }))
}

/// One line for a run that found something.
fn tell(swept: &Swept) {
    if swept.items == 0 {
        tracing::debug!("nothing due");
        return;
    }
    tracing::info!(
        items = swept.items,
        activated = swept.activated,
        withheld = swept.withheld,
        expired = swept.expired,
        orders = swept.orders,
        draining = swept.draining,
        stuck = swept.stuck,
        gaps = swept.gaps,
        failed = swept.failed,
        behind = swept.behind,
        lag_ms = swept.lag_ms,
        "sweep"
    );
    if swept.behind {
        tracing::warn!(lag_ms = swept.lag_ms, "more is due than one run takes on");
    }
}
