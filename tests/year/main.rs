//! A year of a fleet of 50 nodes, by a clock that jumps from one thing to the next.
//!
//! Ten thousand reservations come and go, with all that can happen on them, through the use cases
//! alone. The stream is fed from the store's own changes, late at times and some of them twice; the
//! sweep runs on the minute, whenever something is due. What must hold is checked at every step.
//! All of it follows from a seed, which stands in every failure.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod acts;
mod checks;
mod fleet;
mod machines;

use fleet::{Bounds, Fleet};

#[tokio::test]
async fn a_year_of_fifty_nodes_keeps_every_promise() {
    let bounds = Bounds {
        nodes: 50,
        reservations: 10_000,
        days: 365,
        reports: 6,
        outage: false,
    };
    Fleet::set(1, bounds).await.run().await;
}

/// Few nodes and little time: far more gets in each other's way.
#[tokio::test]
async fn crowded_weeks_keep_every_promise_whatever_the_seed() {
    let bounds = Bounds {
        nodes: 2,
        reservations: 200,
        days: 21,
        reports: 6,
        outage: false,
    };
    for seed in 100..106 {
        Fleet::set(seed, bounds).await.run().await;
    }
}

/// An hour in which no event comes through: the state and the sweep alone must do.
#[tokio::test]
async fn with_all_events_of_an_hour_lost_the_condemned_die_in_time_and_the_trails_say_so() {
    let bounds = Bounds {
        nodes: 24,
        reservations: 1_500,
        days: 1,
        reports: 1,
        outage: true,
    };
    for seed in 1..3 {
        Fleet::set(seed, bounds).await.run().await;
    }
}
