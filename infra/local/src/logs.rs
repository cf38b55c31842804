//! Logs for a person at a terminal; in the cloud they are JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Sends log lines to standard error. `RUST_LOG` sets the level; `level` of this product and
/// warnings of all else without it.
pub fn to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(format!("{level},dynoxide=warn")));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second subscriber is refused; the first one stays.
    let _ = format.try_init();
}
