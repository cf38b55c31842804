//! The sweep as a function of the platform: much at once, killed in the middle, two of it at once,
//! with items that nobody can read, and what it costs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod between;
mod crowd;
mod growth;
mod killed;
mod trails;
mod twice;
mod unheard;
