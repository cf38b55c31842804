//! Numbers of requests.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Up to here every whole number is one of floating point, too, and no two are the same one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number from 0 on, however it is written: to JSON, `2.0` and `2e0` are the number `2`,
/// and some programs know no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Whole(pub(crate) u64);

impl Whole {
    /// The number as a smaller type, if it fits and lies within these bounds.
    pub(crate) fn within<T>(self, min: T, max: T) -> Option<T>
    where
        T: TryFrom<u64> + PartialOrd,
    {
        let number = T::try_from(self.0).ok()?;
        (min <= number && number <= max).then_some(number)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a whole number from 0 on")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
        let odd = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).map(Whole).map_err(odd)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() != 0.0 || !(0.0..=EXACT_MAX).contains(&number) {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        Ok(Whole(number as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let read = |text: &str| serde_json::from_str::<Whole>(text).ok().map(|n| n.0);
        for text in ["2", "2.0", "2e0", "20e-1", "0.2e1"] {
            assert_eq!(read(text), Some(2), "{text}");
        }
        assert_eq!(read("9007199254740992.0"), Some(1 << 53));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        let others = [
            "2.5",
            "-1",
            "-2.0",
            "1e30",
            "9007199254740994.0",
            "\"2\"",
            "true",
            "[2]",
        ];
        for text in others {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn bounds_belong_to_the_numbers_within_them() {
        let within = |number| Whole(number).within(1_u16, 64);
        assert_eq!(
            [0, 1, 64, 65, 65_537].map(within),
            [None, Some(1), Some(64), None, None]
        );
    }
}
