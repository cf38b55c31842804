//! The schedule of the sweep: a function called again and again, as EventBridge calls one.

use std::time::Duration;

use runtime::Function;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Between two strokes. In the cloud it is a minute; on one machine nobody wants to wait.
const EVERY: Duration = Duration::from_secs(1);

/// How long the first stroke waits for what came before the start. In the cloud nothing stops the
/// reactions while the schedule goes on; here both stop together, and an audit record that was on
/// its way for longer than a day must not be taken for lost.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(60);

/// Calls `function` with a scheduled event at every stroke until it is told to stop. A call that
/// takes longer than to the next stroke is waited for. The first stroke waits until the reactions
/// have `caught_up`, for as long as that may reasonably take.
pub async fn run(
    function: Function,
    mut caught_up: watch::Receiver<bool>,
    mut stopped: watch::Receiver<bool>,
) {
    tokio::select! {
        _ = timeout(CAUGHT_UP_WITHIN, caught_up.wait_for(|caught_up| *caught_up)) => {}
        _ = stopped.wait_for(|stopped| *stopped) => return,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn the_first_stroke_waits_for_what_came_before_the_start() {
        let (strokes, mut struck) = mpsc::unbounded_channel();
        let function = Function::new("sweep", move |_| {
            let told = strokes.send(());
            async move {
                told.unwrap();
                Ok(Value::Null)
            }
        });
        let (caught_up, waits) = watch::channel(false);
        let (stop, stopped) = watch::channel(false);
        let ticker = tokio::spawn(run(function, waits, stopped));
        // Whatever else is ready to run has run.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(struck.try_recv().is_err(), "it waits");
        caught_up.send_replace(true);
        struck.recv().await.unwrap();
        stop.send_replace(true);
        ticker.await.unwrap();
    }
}
