//! The schedule of the sweep: a function called again and again, as EventBridge calls one.

use std::time::Duration;

use runtime::Function;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Between two strokes. In the cloud it is a minute; on one machine nobody wants to wait.
const EVERY: Duration = Duration::from_secs(1);

/// Calls `function` with a scheduled event at every stroke until it is told to stop. A call that
/// takes longer than to the next stroke is waited for.
pub async fn run(function: Function, mut stopped: watch::Receiver<bool>) {
    let mut strokes = interval(EVERY);
    strokes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = strokes.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        let event = json!({
            "version": "0",
            "source": "aws.events",
            "detail-type": "Scheduled Event",
            "resources": ["relet-sweep"],
            "detail": {},
        });
        if let Err(error) = function.invoke(event).await {
            // Whatever is due stays due: the next stroke takes it up.
            tracing::warn!(%error, "sweep failed");
        }
    }
}
