//! A clock that stands still until it is told, and ids and random bytes that come again with the
//! same seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use app::ports::{Clock, Ids, NoRandom, Random};
use domain::Timestamp;

use crate::random::Rng;

/// A clock set by hand. Its clones show the same time.
#[derive(Debug, Clone)]
pub struct TestClock {
    unix_ms: Arc<AtomicI64>,
    step_ms: Arc<AtomicI64>,
}

impl TestClock {
    /// A clock that shows `at`.
    #[must_use]
    pub fn at(at: Timestamp) -> Self {
        Self {
            unix_ms: Arc::new(AtomicI64::new(at.unix_ms())),
            step_ms: Arc::default(),
        }
    }

    /// Sets it, on all clones.
    pub fn set(&self, at: Timestamp) {
        self.unix_ms.store(at.unix_ms(), Ordering::SeqCst);
    }

    /// From now on each look at it, on any clone, moves it on by so many milliseconds.
    pub fn step_ms(&self, ms: i64) {
        self.step_ms.store(ms, Ordering::SeqCst);
    }

    /// Moves it by so many milliseconds, on all clones, and returns what it shows then.
    pub fn advance_ms(&self, ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms.fetch_add(ms, Ordering::SeqCst) + ms)
    }
}

impl Default for TestClock {
    /// Shows the instant that the fixtures are made at.
    fn default() -> Self {
        Self::at(crate::fixtures::now())
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let step_ms = self.step_ms.load(Ordering::SeqCst);
        Timestamp::from_unix_ms(self.unix_ms.fetch_add(step_ms, Ordering::SeqCst))
    }
}

/// Ids in the form of UUID version 7 that a seed determines, and random bytes. Ids sort in the
/// order they are drawn in; clones draw from the same sequences.
#[derive(Debug, Clone)]
pub struct SeededIds {
    seed: u64,
    drawn: Arc<AtomicU64>,
    bytes_drawn: Arc<AtomicU64>,
}

impl SeededIds {
    /// The ids of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            drawn: Arc::new(AtomicU64::new(0)),
            bytes_drawn: Arc::new(AtomicU64::new(0)),
        }
    }
}

impl Ids for SeededIds {
    fn uuid(&self) -> String {
        let count = self.drawn.fetch_add(1, Ordering::SeqCst);
        let mut rng = Rng::new(self.seed ^ count.rotate_left(32));
        let (high, low) = (rng.next_u64(), rng.next_u64());
        // Version 7: 48 bits of time, which the count stands for here, then random bits.
        let time = 0x0190_0000_0000_u64 + count;
        format!(
            "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
            time >> 16,
            time & 0xffff,
            high & 0x0fff,
            0x8000 | ((high >> 12) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }
}

impl Random for SeededIds {
    fn random(&self) -> Result<[u8; 32], NoRandom> {
        let count = self.bytes_drawn.fetch_add(1, Ordering::SeqCst);
        // Not the numbers that ids are made of.
        let mut rng = Rng::new(!self.seed ^ count.rotate_left(32));
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&rng.next_u64().to_be_bytes());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn clones_of_a_clock_show_one_time() {
        let clock = TestClock::default();
        let other = clock.clone();
        let later = clock.advance_ms(1_500);
        assert_eq!(other.now(), later);
        assert_eq!(later, crate::fixtures::now().plus_ms(1_500));
        other.set(Timestamp::from_unix_ms(7));
        assert_eq!(clock.now().unix_ms(), 7);
        other.step_ms(2);
        assert_eq!([clock.now(), other.now()].map(Timestamp::unix_ms), [7, 9]);
    }

    #[test]
    fn a_seed_gives_its_random_bytes_again_and_they_are_fresh() {
        let draw = |seed| -> Vec<[u8; 32]> {
            let ids = SeededIds::new(seed);
            (0..100).map(|_| ids.random().unwrap()).collect()
        };
        let first = draw(1);
        assert_eq!(first, draw(1));
        let all: BTreeSet<_> = first.into_iter().chain(draw(2)).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn a_seed_gives_its_ids_again_and_they_are_fresh_and_in_order() {
        let draw = |seed| -> Vec<String> {
            let ids = SeededIds::new(seed);
            (0..500).map(|_| ids.uuid()).collect()
        };
        let first = draw(1);
        assert_eq!(first, draw(1));
        assert_ne!(first, draw(2));
        assert!(first.is_sorted());
        let tails: BTreeSet<&str> = first.iter().map(|id| &id[24..]).collect();
        assert_eq!(tails.len(), first.len(), "the last 12 digits differ too");
        for id in &first {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "7", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
    }
}
