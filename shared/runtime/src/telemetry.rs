//! What a function's process says on its standard output, which is where Lambda takes it from: one
//! JSON line for each event, readable alone, with named fields, and its numbers as lines of
//! CloudWatch's embedded metric format.

use std::io::Write as _;
use std::sync::OnceLock;

use app::ports::Clock as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock::SystemClock;

/// Where the numbers go.
static NAMESPACE: OnceLock<String> = OnceLock::new();

/// Starts both. `RUST_LOG` sets the level of the log; `info` without it. The numbers go to this
/// namespace of CloudWatch. Calling it again changes nothing.
pub fn init(namespace: String) {
    // A second one is refused; the first one stays.
    let _ = NAMESPACE.set(namespace);
    // Levels by target are all that a function needs: the richer filter brings regular expressions,
    // which are a tenth of a small binary.
    let asked = std::env::var("RUST_LOG").ok();
    let filter = asked.and_then(|text| text.parse().ok());
    let filter: Targets = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_target(false)
        .log_internal_errors(false)
        // The runtime's span of the event: its ids lead to the service's own lines about it.
        .with_current_span(true)
        .with_span_list(false);
    // A second subscriber is refused; the first one stays.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
    metrics::embed();
}

/// Writes what was counted since the last call. To be called at the end of each event, before its
/// reply: afterwards the service may stop the process for as long as it likes.
pub fn flush() {
    let namespace = NAMESPACE.get().map_or(metrics::NAMESPACE, String::as_str);
    let lines = metrics::take_embedded(namespace, SystemClock.now().unix_ms());
    if !lines.is_empty() {
        // Whole lines at once, so that none is torn by a line of the log. If nobody reads them,
        // nothing is left to do.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    }
}
