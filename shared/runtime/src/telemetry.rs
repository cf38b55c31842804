//! Logs: one JSON line for each event, readable alone, with named fields.

use tracing_subscriber::EnvFilter;

/// Sends log lines to standard output as JSON, which is where Lambda takes them from. `RUST_LOG`
/// sets the level; `info` without it. Calling it again changes nothing.
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let format = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false);
    // A second subscriber is refused; the first one stays.
    let _ = format
        .with_current_span(false)
        .with_env_filter(filter)
        .try_init();
}
