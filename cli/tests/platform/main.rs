//! The command against a platform that runs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod examples;
mod keys;
mod lists;
mod manuals;
mod story;
mod support;
#[path = "../shared/terminal.rs"]
mod terminal;
mod watching;
