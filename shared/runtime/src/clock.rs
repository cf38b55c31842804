//! The clock, the ids and the random bytes of production.

use app::ports::{Clock, Ids, NoRandom, Random};
use domain::Timestamp;

/// The machine's clock, UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let ms = since.map_or(0, |elapsed| {
            i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
        });
        Timestamp::from_unix_ms(ms)
    }
}

/// Ids and bytes from the machine's random source. Ids are UUID version 7, which sort by the time
/// they were made.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that draws ids"
    )]
    fn uuid(&self) -> String {
        uuid::Uuid::now_v7().hyphenated().to_string()
    }
}

impl Random for SystemIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that draws random bytes"
    )]
    fn random(&self) -> Result<[u8; 32], NoRandom> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| NoRandom(error.to_string()))?;
        Ok(bytes)
    }
}
