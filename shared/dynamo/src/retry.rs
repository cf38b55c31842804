//! Retries of what the SDK does not retry by itself: other writers in the way of a write.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::retries::RequestAttempts;

/// Most tries of one call.
const TRIES_MAX: u32 = 4;
/// Shortest pause before another try, in milliseconds.
const PAUSE_MS_MIN: u64 = 5;
/// Longest pause before another try, in milliseconds.
const PAUSE_MS_MAX: u64 = 80;
/// Longest time that one call of the store may take with all its tries.
pub(crate) const TOTAL_MAX: Duration = Duration::from_secs(3);

/// How a try failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Another try may go through: what was asked has not been done.
    Again(StoreError),
    /// Another try would not help, or the SDK has tried already.
    Final(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::Final(error)
    }
}

/// Tries until it succeeds, fails for good, or has been tried [`TRIES_MAX`] times; the pause before
/// each further try is drawn from a range that doubles.
pub(crate) async fn bounded<T, F, Fut>(mut attempt: F) -> StoreResult<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Trouble>>,
{
    let tries = async {
        let mut tried = 1;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again(error)) => error,
            };
            if error == StoreError::Conflict {
                metrics::STORE_CONFLICTS.increment();
            }
            if tried >= TRIES_MAX {
                return Err(error);
            }
            metrics::STORE_RETRIES.increment();
            tokio::time::sleep(pause(tried)).await;
            tried += 1;
        }
    };
    match tokio::time::timeout(TOTAL_MAX, tries).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Unavailable(format!(
            "no answer within {} s",
            TOTAL_MAX.as_secs()
        ))),
    }
}

/// A pause after so many tries: anything up to a bound that doubles ("full jitter"), so that
/// writers that met once do not meet again.
fn pause(tried: u32) -> Duration {
    let bound = (PAUSE_MS_MIN << tried.min(8)).min(PAUSE_MS_MAX);
    Duration::from_millis(PAUSE_MS_MIN + fresh() % (bound - PAUSE_MS_MIN + 1))
}

/// Counts the SDK's own further tries, which nobody else sees.
#[derive(Debug)]
pub(crate) struct CountRetries;

impl Intercept for CountRetries {
    fn name(&self) -> &'static str {
        "CountRetries"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let tries = settings.load::<RequestAttempts>();
        if tries.is_some_and(|tries| tries.attempts() > 1) {
            metrics::STORE_RETRIES.increment();
        }
        Ok(())
    }
}

/// The pause after a race that was lost: whoever lost it reads again and writes again, and is not
/// to meet the same others at once.
pub(crate) async fn stand_aside() {
    metrics::RACES_LOST.increment();
    tokio::time::sleep(pause(1)).await;
}

/// A number that is not drawn twice, by this process or another: keyed by the process's own random
/// state.
pub(crate) fn fresh() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(DRAWN.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &[Result<u8, Trouble>]) -> (StoreResult<u8>, usize) {
        let calls = AtomicU64::new(0);
        let result = bounded(|| async {
            let call = usize::try_from(calls.fetch_add(1, Ordering::Relaxed)).unwrap();
            match &script[call.min(script.len() - 1)] {
                Ok(value) => Ok(*value),
                Err(Trouble::Again(error)) => Err(Trouble::Again(error.clone())),
                Err(Trouble::Final(error)) => Err(Trouble::Final(error.clone())),
            }
        });
        let result = result.await;
        (result, usize::try_from(calls.into_inner()).unwrap())
    }

    #[tokio::test]
    async fn conflicts_are_tried_again_up_to_a_bound_and_the_rest_is_not() {
        let conflict = || Err(Trouble::Again(StoreError::Conflict));
        assert_eq!(run(&[conflict(), conflict(), Ok(7)]).await, (Ok(7), 3));
        assert_eq!(run(&[conflict()]).await, (Err(StoreError::Conflict), 4));
        let corrupt = StoreError::Corrupt("x".to_owned());
        let last = Err(Trouble::Final(corrupt.clone()));
        assert_eq!(run(&[conflict(), last, Ok(1)]).await, (Err(corrupt), 2));
    }

    #[test]
    fn pauses_stay_in_their_range() {
        for tried in 1..20 {
            let pause = u64::try_from(pause(tried).as_millis()).unwrap();
            assert!((PAUSE_MS_MIN..=PAUSE_MS_MAX).contains(&pause), "{pause}");
        }
        assert_ne!(fresh(), fresh());
    }
}
