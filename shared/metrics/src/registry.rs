//! Where the numbers are until they are read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::table::{DIMENSIONS_MAX, Metric};

/// Upper bounds of the buckets of a distribution, in microseconds.
pub(crate) const BOUNDS_US: [u64; 17] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    600_000_000,
];

/// Most single times of one metric that are kept until they are taken: no event has more records.
const SINGLES_MAX: usize = 10_000;

/// A metric with values of its dimensions; unused places are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    name: &'static str,
    pub(crate) values: [&'static str; DIMENSIONS_MAX],
}

/// What has come together in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The sum of a counter, or the last value of a gauge.
    Number(u64),
    /// Times in microseconds, one by one.
    Singles(Vec<u64>),
    /// Times counted into buckets.
    Buckets(Box<Buckets>),
}

/// A distribution of times in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Buckets {
    /// How many are in each bucket and in none before it; the last place is for those past all.
    pub(crate) counts: [u64; BOUNDS_US.len() + 1],
    /// Their sum.
    pub(crate) sum_us: u64,
}

impl Buckets {
    fn count(&mut self, us: u64) {
        let at = BOUNDS_US.iter().take_while(|bound| us > **bound).count();
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }
}

/// The cells in order of their metrics' names.
pub(crate) type Cells = BTreeMap<Place, (&'static Metric, Cell)>;

#[derive(Debug)]
struct State {
    embedded: bool,
    cells: Cells,
}

/// The numbers of a process.
#[derive(Debug)]
pub(crate) struct Registry(Mutex<State>);

impl Registry {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            embedded: false,
            cells: BTreeMap::new(),
        }))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn embed(&self) {
        self.locked().embedded = true;
    }

    pub(crate) fn add(&self, metric: &'static Metric, values: &[&'static str], by: u64) {
        let mut state = self.locked();
        if let Cell::Number(sum) = cell(&mut state.cells, metric, values, || Cell::Number(0)) {
            *sum = sum.saturating_add(by);
        }
    }

    pub(crate) fn set(&self, metric: &'static Metric, values: &[&'static str], to: u64) {
        let mut state = self.locked();
        if let Cell::Number(value) = cell(&mut state.cells, metric, values, || Cell::Number(0)) {
            *value = to;
        }
    }

    pub(crate) fn observe(&self, metric: &'static Metric, values: &[&'static str], us: u64) {
        let mut state = self.locked();
        let embedded = state.embedded;
        let empty = || match embedded {
            true => Cell::Singles(Vec::new()),
            false => Cell::Buckets(Box::default()),
        };
        match cell(&mut state.cells, metric, values, empty) {
            Cell::Singles(singles) if singles.len() < SINGLES_MAX => singles.push(us),
            Cell::Buckets(buckets) => buckets.count(us),
            Cell::Singles(_) | Cell::Number(_) => {}
        }
    }

    /// Takes all numbers out; none if they are kept for [`Self::read`].
    pub(crate) fn take(&self) -> Cells {
        let mut state = self.locked();
        match state.embedded {
            true => std::mem::take(&mut state.cells),
            false => Cells::new(),
        }
    }

    pub(crate) fn read<T>(&self, with: impl FnOnce(&Cells) -> T) -> T {
        with(&self.locked().cells)
    }
}

fn cell<'a>(
    cells: &'a mut Cells,
    metric: &'static Metric,
    values: &[&'static str],
    empty: impl FnOnce() -> Cell,
) -> &'a mut Cell {
    let mut place = Place {
        name: metric.name,
        values: [""; DIMENSIONS_MAX],
    };
    for (to, value) in place.values.iter_mut().zip(values) {
        *to = value;
    }
    let (_, cell) = cells.entry(place).or_insert_with(|| (metric, empty()));
    cell
}

/// Microseconds as seconds, in decimal.
pub(crate) fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// A value of a dimension with nothing in it that either form would have to escape, and never
/// empty, which CloudWatch refuses.
pub(crate) fn word(value: &str) -> String {
    const CHARS_MAX: usize = 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let chars = value.chars().take(CHARS_MAX);
    match value {
        "" => "none".to_owned(),
        _ => chars.map(|c| if plain(c) { c } else { '_' }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{CALL_DURATION, CALLS, DRAINS_OPEN};

    #[test]
    fn numbers_saturate_and_the_last_level_counts() {
        let registry = Registry::new();
        registry.add(CALLS.metric(), &["a", "b", "c"], u64::MAX);
        registry.add(CALLS.metric(), &["a", "b", "c"], 2);
        registry.add(CALLS.metric(), &["a", "b", "d"], 2);
        registry.set(DRAINS_OPEN.metric(), &[], 7);
        registry.set(DRAINS_OPEN.metric(), &[], 3);
        let cells = registry.read(|cells| cells.values().cloned().collect::<Vec<_>>());
        let numbers: Vec<Cell> = cells.into_iter().map(|(_, cell)| cell).collect();
        let expected = [u64::MAX, 2, 3].map(Cell::Number);
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        let mut buckets = Buckets::default();
        for us in [0, 1_000, 1_001, 600_000_000, 600_000_001, u64::MAX] {
            buckets.count(us);
        }
        assert_eq!(buckets.counts[..2], [2, 1]);
        assert_eq!(buckets.counts[BOUNDS_US.len() - 1..], [1, 2]);
        assert_eq!(buckets.counts.iter().sum::<u64>(), 6);
        assert_eq!(buckets.sum_us, u64::MAX);
        assert!(BOUNDS_US.is_sorted());
    }

    #[test]
    fn what_nobody_takes_is_bounded() {
        let registry = Registry::new();
        registry.embed();
        for us in 0..SINGLES_MAX as u64 + 5 {
            registry.observe(CALL_DURATION.metric(), &["a", "b", "c"], us);
        }
        let taken = registry.take();
        let (_, cell) = taken.values().next().unwrap();
        assert!(matches!(cell, Cell::Singles(all) if all.len() == SINGLES_MAX));
        assert_eq!(registry.take(), Cells::new(), "taken once");
    }

    #[test]
    fn threads_lose_nothing() {
        let registry = Registry::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| registry.add(CALLS.metric(), &["a"], 1)));
            }
        });
        let sum = registry.read(|cells| cells.values().next().map(|(_, cell)| cell.clone()));
        assert_eq!(sum, Some(Cell::Number(4_000)));
    }

    #[test]
    fn values_of_dimensions_need_no_escaping() {
        assert_eq!(word("insufficient_capacity"), "insufficient_capacity");
        assert_eq!(word("a\"b\\c\nd ü"), "a_b_c_d__");
        assert_eq!(word(""), "none");
        assert_eq!(word(&"x".repeat(1_000)).len(), 64);
    }
}
