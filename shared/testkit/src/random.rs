//! Random states and commands that a seed determines, made to hit every clause of the rules.
//!
//! Wrong things are rare enough that commands often go through, and common enough that a few
//! thousand seeds meet every refusal. Print the seed with a failure: it is all there is to repeat.

mod command;
mod state;

pub use command::{caller, end, placement, reclaim, release, reserve, stamp};
pub use state::{node, pair, reservation};

/// A small random generator (SplitMix64): fast, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_u64() % bound).unwrap_or(0)
    }

    /// True so many times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `options`; there must be one.
    pub fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }

    /// Each of `options` with so many chances out of a hundred.
    pub fn some_of<'a, T>(
        &mut self,
        options: impl IntoIterator<Item = &'a T>,
        percent: usize,
    ) -> Vec<T>
    where
        T: Clone + 'a,
    {
        options
            .into_iter()
            .filter(|_| self.chance(percent))
            .cloned()
            .collect()
    }

    /// At least one and at most `most` of `options`, if there is one, in any order.
    pub fn few_of<'a, T>(&mut self, options: impl IntoIterator<Item = &'a T>, most: usize) -> Vec<T>
    where
        T: Clone + 'a,
    {
        let mut left: Vec<T> = options.into_iter().cloned().collect();
        let wanted = 1 + self.below(most.min(left.len()));
        let mut out = Vec::new();
        while out.len() < wanted && !left.is_empty() {
            let at = self.below(left.len());
            out.push(left.swap_remove(at));
        }
        out
    }
}

#[cfg(test)]
mod moves;
#[cfg(test)]
mod tests;
