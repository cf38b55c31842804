#![doc = include_str!("../README.md")]
// Nothing here may panic: whoever counts something is at work on something else.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::unreachable
    )
)]

mod embedded;
mod prometheus;
mod registry;
mod table;

use std::time::Duration;

pub use embedded::is_namespace;
use registry::Registry;
pub use table::*;

/// The numbers of this process.
static PROCESS: Registry = Registry::new();

/// A number that only grows.
#[derive(Debug, Clone, Copy)]
pub struct Counter<const N: usize>(&'static Metric);

impl<const N: usize> Counter<N> {
    /// Adds `by` under these values of the metric's dimensions, in the table's order.
    pub fn add(self, by: u64, values: [&'static str; N]) {
        PROCESS.add(self.0, &values, by);
    }

    /// The metric.
    #[must_use]
    pub const fn metric(self) -> &'static Metric {
        self.0
    }
}

impl Counter<0> {
    /// Adds 1.
    pub fn increment(self) {
        self.add(1, []);
    }
}

/// Times, each counted into a distribution.
#[derive(Debug, Clone, Copy)]
pub struct Times<const N: usize>(&'static Metric);

impl<const N: usize> Times<N> {
    /// Counts a time under these values of the metric's dimensions, in the table's order.
    pub fn observe(self, time: Duration, values: [&'static str; N]) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        PROCESS.observe(self.0, &values, us);
    }

    /// The metric.
    #[must_use]
    pub const fn metric(self) -> &'static Metric {
        self.0
    }
}

impl Times<0> {
    /// Counts a time in milliseconds; one below 0, out of clocks that differ, counts as 0.
    pub fn observe_ms(self, ms: i64) {
        PROCESS.observe(self.0, &[], us(ms));
    }
}

/// How many there are of something now.
#[derive(Debug, Clone, Copy)]
pub struct Level(&'static Metric);

impl Level {
    /// There are so many.
    pub fn set(self, count: u64) {
        PROCESS.set(self.0, &[], count);
    }

    /// The metric.
    #[must_use]
    pub const fn metric(self) -> &'static Metric {
        self.0
    }
}

/// How long something has lasted now.
#[derive(Debug, Clone, Copy)]
pub struct Lag(&'static Metric);

impl Lag {
    /// It has lasted so many milliseconds; below 0 counts as 0.
    pub fn set_ms(self, ms: i64) {
        PROCESS.set(self.0, &[], us(ms));
    }

    /// The metric.
    #[must_use]
    pub const fn metric(self) -> &'static Metric {
        self.0
    }
}

fn us(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).saturating_mul(1_000)
}

/// From now on numbers are kept for [`take_embedded`] and no longer than until it is called.
pub fn embed() {
    PROCESS.embed();
}

/// What was counted since the last call, as lines of CloudWatch's embedded metric format, each
/// ended by a line feed; empty if nothing was. `namespace` is where they go, most often
/// [`NAMESPACE`]; `now_ms` is the present instant, in milliseconds since 1970. Without [`embed`]
/// before it, nothing.
#[must_use]
pub fn take_embedded(namespace: &str, now_ms: i64) -> String {
    embedded::lines(&PROCESS.take(), namespace, now_ms)
}

/// Everything counted since the process began, as Prometheus text, version 0.0.4.
#[must_use]
pub fn prometheus() -> String {
    PROCESS.read(prometheus::text)
}
