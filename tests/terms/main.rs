//! Terms, reviews and overdue stops, call by call: what a call meets at the edges of a term before
//! any sweep has run, and what the sweep makes of it. Over the store in memory and the real one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
extern crate relet_tests;

mod adjacent;
mod begins;
mod over;
mod review;
mod stuck;

use app::Error;
use domain::Refusal;

/// The refusal that a call met.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> Refusal {
    match answer.unwrap_err() {
        Error::Refused { refusal, .. } => refusal,
        error => unreachable!("{error:?}"),
    }
}

/// Whether a call found nothing for sale.
fn sold_out<T: std::fmt::Debug>(answer: Result<T, Error>) -> bool {
    matches!(refused(answer), Refusal::InsufficientCapacity(_))
}
