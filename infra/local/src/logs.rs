//! Logs for a person at a terminal; in the cloud they are JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Sends log lines to standard error. `RUST_LOG` sets the level; `level` without it, where two
/// things are left out: the functions' own line for each call, since the gateway writes one as
/// well, and the engine's for each condition that did not hold, which is what conditions are for.
pub fn to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env();
    let filter =
        filter.unwrap_or_else(|_| EnvFilter::new(format!("{level},http_api=error,dynoxide=error")));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        // A reader that has gone, or a full disk, is no reason for the platform to end.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second subscriber is refused; the first one stays.
    let _ = format.try_init();
}
