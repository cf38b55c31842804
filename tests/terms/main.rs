//! Terms, reviews and overdue stops, call by call: what a call meets at the edges of a term before
//! any sweep has run, and what the sweep makes of it. Over the store in memory and the real one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// Makes a test over each store out of functions that take one.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(testkit::MemoryStore::default()).await;
            })+
        }

        mod engine {
            $(#[tokio::test]
            async fn $name() {
                let engine = testkit::engine::Engine::start().await;
                super::$name(engine.store()).await;
            })+
        }
    };
}

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
