//! Logs for a person at a terminal; in the cloud the same lines are JSON.

mod human;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use human::Human;

/// Sends log lines to standard error. `RUST_LOG` sets the level; `level` without it, where two
/// things are left out: calls that only read, since the node's agent polls all the time, and the
/// engine's line for each condition that did not hold, which is what conditions are for.
pub fn to_stderr(level: &str) {
    let asked = EnvFilter::try_from_default_env().ok();
    let human = Human {
        hides_reads: asked.is_none(),
    };
    let filter = asked.unwrap_or_else(|| EnvFilter::new(format!("{level},dynoxide=error")));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A reader that has gone, or a full disk, is no reason for the platform to end.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .event_format(human)
        .with_writer(std::io::stderr);
    // A second subscriber is refused; the first one stays.
    let _ = format.try_init();
}
