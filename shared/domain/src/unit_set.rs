//! A set of units as a caller names it: never empty, no unit twice, bounded.

use std::collections::BTreeSet;

use crate::id::{BadId, UnitId};

/// Why a list of unit ids is not a unit set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUnitSet {
    /// No unit at all.
    #[error("names no unit; name at least one")]
    Empty,
    /// More units than one call may name.
    #[error("names {given} units; one call takes at most {max}")]
    TooMany {
        /// How many were given.
        given: usize,
        /// How many are taken.
        max: usize,
    },
    /// One unit twice.
    #[error("names unit {0} twice; name each once")]
    Duplicate(UnitId),
    /// Something that is no id, at this place of the list, counted from 0.
    #[error("item {0}: {1}")]
    Id(usize, BadId),
}

/// One or more units, each once, in order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnitSet(BTreeSet<UnitId>);

impl UnitSet {
    /// Reads a list of unit ids of at most `max` members.
    ///
    /// # Errors
    /// [`BadUnitSet`] says what is wrong with the list.
    pub fn parse<S: AsRef<str>>(ids: &[S], max: usize) -> Result<Self, BadUnitSet> {
        if ids.is_empty() {
            return Err(BadUnitSet::Empty);
        }
        if ids.len() > max {
            return Err(BadUnitSet::TooMany {
                given: ids.len(),
                max,
            });
        }
        let mut set = BTreeSet::new();
        for (place, id) in ids.iter().enumerate() {
            let unit = UnitId::parse(id.as_ref()).map_err(|e| BadUnitSet::Id(place, e))?;
            if let Some(twice) = set.replace(unit) {
                return Err(BadUnitSet::Duplicate(twice));
            }
        }
        Ok(Self(set))
    }

    /// Takes a set that already has its units in order; `None` if it is empty.
    #[must_use]
    pub fn from_set(units: BTreeSet<UnitId>) -> Option<Self> {
        (!units.is_empty()).then_some(Self(units))
    }

    /// The units in order.
    pub fn iter(&self) -> impl Iterator<Item = &UnitId> {
        self.0.iter()
    }

    /// Whether `unit` is one of them.
    #[must_use]
    pub fn contains(&self, unit: &UnitId) -> bool {
        self.0.contains(unit)
    }

    /// How many there are; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a unit set is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The plain set.
    #[must_use]
    pub fn as_set(&self) -> &BTreeSet<UnitId> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_refused_for_what_is_wrong_with_it() {
        let set = |ids: &[&str]| UnitSet::parse(ids, 2);
        assert_eq!(set(&[]), Err(BadUnitSet::Empty));
        assert_eq!(
            set(&["a", "b", "c"]),
            Err(BadUnitSet::TooMany { given: 3, max: 2 })
        );
        assert!(matches!(set(&["a", "a"]), Err(BadUnitSet::Duplicate(u)) if u.as_str() == "a"));
        assert_eq!(set(&["a", ""]), Err(BadUnitSet::Id(1, BadId)));
        let sorted = set(&["b", "a"]).map(|s| s.iter().map(|u| u.to_string()).collect::<Vec<_>>());
        assert_eq!(sorted, Ok(vec!["a".to_owned(), "b".to_owned()]));
    }
}
