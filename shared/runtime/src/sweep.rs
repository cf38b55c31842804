//! The sweep function: run by the clock, it looks after everything that is due.

use std::sync::Arc;
use std::time::Instant;

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
    let started = Instant::now();
    let swept = sweep(store, orders, clock, ids, rules).await;
    let swept = swept.map_err(|error| FunctionError {
        kind: "Sweep",
        message: format!("what is due cannot be found: {}", error.for_log()),
    })?;
    count(&swept);
    tell(&swept, started);
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

/// What a run found is what there is until the next one.
fn count(swept: &Swept) {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    metrics::DRAINS_OPEN.set(number(swept.draining));
    metrics::STUCK.set(number(swept.stuck));
    metrics::DUE_LAG.set_ms(swept.lag_ms);
    metrics::DUE_BACKLOG.set(number(swept.left.saturating_add(swept.failed)));
}

/// One line for a run that found something.
fn tell(swept: &Swept, started: Instant) {
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
        duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "sweep"
    );
    if swept.behind {
        tracing::warn!(lag_ms = swept.lag_ms, "more is due than one run takes on");
    }
}
