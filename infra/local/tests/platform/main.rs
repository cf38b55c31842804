//! The binary `relet`, as a user runs it: real processes, real signals, a real folder.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod audit;
mod crash;
mod damage;
mod demo;
mod keys;
mod metrics;
mod operator;
mod processes;
mod refusals;
mod secrecy;
mod serve;
mod support;
