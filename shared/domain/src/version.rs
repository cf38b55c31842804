//! The version of an item: one step up with every change, never down.

/// How many changes an item has seen. The first is 1; clients see it as the `ETag`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

impl Version {
    /// The version of an item just made.
    pub const FIRST: Version = Version(1);

    /// A version that no item ever reaches.
    pub const LAST: Version = Version(u64::MAX);

    /// Reads a stored version.
    ///
    /// Returns `None` for 0, which no item ever has.
    #[must_use]
    pub fn stored(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The version after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The version before this one; `None` before the first.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        Self::stored(self.0 - 1)
    }

    /// The number itself.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
