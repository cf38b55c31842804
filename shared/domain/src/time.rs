//! Instants and terms. One clock, UTC, compared as instants and never as local dates.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a time is RFC 3339 between the years 1970 and 9999, such as 2026-07-01T12:00:00Z")]
pub struct BadTimestamp;

/// An instant, to the millisecond, between the years 1970 and 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    unix_ms: i64,
}

/// The last millisecond of the year 9999: later instants would not fit the fixed width.
const UNIX_MS_MAX: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The instant so many milliseconds after 1970, held within the years 1970 to 9999.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Self {
        Self {
            unix_ms: unix_ms.clamp(0, UNIX_MS_MAX),
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        self.unix_ms
    }

    /// This instant moved by so many milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_unix_ms(self.unix_ms.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant; below 0 if that is the later one.
    #[must_use]
    pub fn ms_since(self, earlier: Timestamp) -> i64 {
        self.unix_ms.saturating_sub(earlier.unix_ms)
    }

    /// Reads RFC 3339 with any offset; digits below the millisecond are cut.
    ///
    /// # Errors
    /// [`BadTimestamp`] if it is something else, or outside the years 1970 to 9999.
    pub fn parse(text: &str) -> Result<Self, BadTimestamp> {
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| BadTimestamp)?;
        let unix_ms = i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000))
            .map_err(|_| BadTimestamp)?;
        if !(0..=UNIX_MS_MAX).contains(&unix_ms) {
            return Err(BadTimestamp);
        }
        Ok(Self { unix_ms })
    }
}

impl std::fmt::Display for Timestamp {
    /// RFC 3339 in UTC with three decimals: of one width, so that texts sort as instants do.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.unix_ms) * 1_000_000)
            .map_err(|_| std::fmt::Error)?;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )
    }
}

impl std::fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// From when until when: the start belongs to it, the end does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The first instant inside.
    pub starts: Timestamp,
    /// The first instant past it; `None` is open-ended.
    pub ends: Option<Timestamp>,
}

impl Term {
    /// Whether `at` lies inside.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.starts <= at && !self.is_over(at)
    }

    /// Whether `at` lies at or past the end.
    #[must_use]
    pub fn is_over(&self, at: Timestamp) -> bool {
        self.ends.is_some_and(|ends| ends <= at)
    }

    /// Whether some instant lies inside both.
    #[must_use]
    pub fn overlaps(&self, other: &Term) -> bool {
        !self.is_over(other.starts) && !other.is_over(self.starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap_or(Timestamp::from_unix_ms(0))
    }

    #[test]
    fn offsets_name_the_same_instant_and_texts_have_one_width() {
        let utc = at("2026-03-29T01:30:00Z");
        assert_eq!(utc, at("2026-03-29T03:30:00+02:00"));
        assert_eq!(utc.to_string(), "2026-03-29T01:30:00.000Z");
        assert_eq!(Timestamp::parse(&utc.to_string()), Ok(utc));
        assert_eq!(
            at("2026-01-01T00:00:00.123456Z").to_string(),
            "2026-01-01T00:00:00.123Z"
        );
    }

    #[test]
    fn what_is_no_time_or_out_of_range_is_refused() {
        for bad in [
            "",
            "2026-07-01",
            "2026-02-30T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "now",
            "1",
        ] {
            assert_eq!(Timestamp::parse(bad), Err(BadTimestamp), "{bad}");
        }
    }

    #[test]
    fn a_term_has_its_start_and_not_its_end() {
        let term = Term {
            starts: at("2026-01-01T00:00:00Z"),
            ends: Some(at("2026-01-02T00:00:00Z")),
        };
        assert!(term.contains(term.starts));
        assert!(!term.contains(at("2026-01-02T00:00:00Z")));
        assert!(term.contains(at("2026-01-01T23:59:59.999Z")));
    }

    #[test]
    fn adjacent_terms_do_not_overlap() {
        let first = Term {
            starts: at("2026-01-01T00:00:00Z"),
            ends: Some(at("2026-01-02T00:00:00Z")),
        };
        let second = Term {
            starts: at("2026-01-02T00:00:00Z"),
            ends: None,
        };
        assert!(!first.overlaps(&second) && !second.overlaps(&first));
        let earlier = Term {
            starts: at("2026-01-01T23:59:59.999Z"),
            ends: None,
        };
        assert!(first.overlaps(&earlier) && earlier.overlaps(&first));
    }
}
