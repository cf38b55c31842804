//! The rules of an event source mapping over a stream, apart from everything that carries them out:
//! what a reply means, and what is to be done with the batch then.

use std::time::Duration;

use runtime::FunctionError;
use serde_json::Value;

/// How often a record is tried again after its first failure.
pub const RETRIES_MAX: u32 = 10;
/// Age past which a record that failed is not tried again: 6 hours, in seconds.
pub const AGE_MAX_SECONDS: i64 = 6 * 60 * 60;
/// The pause after the first failure; each later one is twice as long, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What a function's reply says of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All of it is done.
    Done,
    /// Everything before this place is done; the record there failed, and it and all after it are
    /// to come again.
    From(usize),
    /// Nothing is known to be done.
    Whole,
}

/// Reads the reply to a batch of records with these sequence numbers.
///
/// An id that is empty, missing or of no record in the batch leaves nothing to rely on, so the
/// whole batch counts as failed.
#[must_use]
pub fn verdict(sequence_numbers: &[&str], reply: &Result<Value, FunctionError>) -> Verdict {
    let Ok(reply) = reply else {
        return Verdict::Whole;
    };
    let failures = match reply.get("batchItemFailures") {
        None | Some(Value::Null) => return Verdict::Done,
        Some(Value::Array(failures)) => failures,
        Some(_) => return Verdict::Whole,
    };
    let places = failures.iter().map(|failure| {
        let id = failure.get("itemIdentifier").and_then(Value::as_str)?;
        sequence_numbers.iter().position(|number| *number == id)
    });
    match places.collect::<Option<Vec<usize>>>() {
        None => Verdict::Whole,
        Some(places) => places
            .into_iter()
            .min()
            .map_or(Verdict::Done, Verdict::From),
    }
}

/// What is to be done with a batch after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is finished.
    Finish,
    /// What is before `from` is finished; the rest comes again, its first record having failed
    /// `failures` times.
    Again {
        /// Where the rest begins.
        from: usize,
        /// How often its first record failed.
        failures: u32,
    },
    /// It comes again in two parts, to find out which record fails the function.
    Split {
        /// Where the second part begins.
        at: usize,
    },
    /// What is before `at` is finished, the record there is given up, the rest comes again.
    GiveUp {
        /// The place of the record that is given up.
        at: usize,
    },
}

/// The step after `verdict` on a batch of `len` records whose first one had failed `failures`
/// times.
#[must_use]
pub fn step(len: usize, failures: u32, verdict: Verdict) -> Step {
    let first_failed = |at: usize, failures: u32| {
        if failures > RETRIES_MAX {
            Step::GiveUp { at }
        } else {
            Step::Again { from: at, failures }
        }
    };
    match verdict {
        Verdict::Done => Step::Finish,
        Verdict::From(0) => first_failed(0, failures + 1),
        Verdict::From(at) => first_failed(at, 1),
        Verdict::Whole if len > 1 => Step::Split { at: len / 2 },
        Verdict::Whole => first_failed(0, failures + 1),
    }
}

/// How long to wait before a batch whose first record failed this often comes again.
#[must_use]
pub fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => PAUSE_FIRST
            .saturating_mul(2_u32.saturating_pow(n - 1))
            .min(PAUSE_MAX),
    }
}

/// Whether a record is too old to come again. One that has never been tried is tried at any age:
/// the machine may have been off meanwhile.
#[must_use]
pub fn expired(created_at: i64, now: i64, failures: u32) -> bool {
    failures > 0 && now.saturating_sub(created_at) > AGE_MAX_SECONDS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BATCH: [&str; 3] = ["101", "102", "103"];

    fn failing(ids: &[Value]) -> Result<Value, FunctionError> {
        let each: Vec<Value> = ids
            .iter()
            .map(|id| json!({ "itemIdentifier": id }))
            .collect();
        Ok(json!({ "batchItemFailures": each }))
    }

    #[test]
    fn a_reply_without_failures_finishes_the_batch() {
        for reply in [json!(null), json!({}), json!({ "batchItemFailures": null })] {
            assert_eq!(verdict(&BATCH, &Ok(reply)), Verdict::Done);
        }
        assert_eq!(verdict(&BATCH, &failing(&[])), Verdict::Done);
    }

    #[test]
    fn the_lowest_failed_record_counts() {
        let reply = failing(&[json!("103"), json!("102")]);
        assert_eq!(verdict(&BATCH, &reply), Verdict::From(1));
        assert_eq!(verdict(&BATCH, &failing(&[json!("101")])), Verdict::From(0));
    }

    #[test]
    fn a_reply_that_names_no_record_of_the_batch_fails_it_whole() {
        for id in [json!(""), json!(null), json!(7), json!("999")] {
            let reply = failing(&[json!("102"), id.clone()]);
            assert_eq!(verdict(&BATCH, &reply), Verdict::Whole, "{id}");
        }
        let odd = json!({ "batchItemFailures": [{ "itemIdentifer": "102" }] });
        assert_eq!(verdict(&BATCH, &Ok(odd)), Verdict::Whole);
        let odd = json!({ "batchItemFailures": "102" });
        assert_eq!(verdict(&BATCH, &Ok(odd)), Verdict::Whole);
        let error = FunctionError {
            kind: "Panic",
            message: String::new(),
        };
        assert_eq!(verdict(&BATCH, &Err(error)), Verdict::Whole);
    }

    #[test]
    fn failures_in_a_row_are_counted_and_progress_starts_the_count_again() {
        assert_eq!(step(3, 4, Verdict::Done), Step::Finish);
        let again = |from, failures| Step::Again { from, failures };
        assert_eq!(step(3, 4, Verdict::From(0)), again(0, 5));
        assert_eq!(step(3, 4, Verdict::From(2)), again(2, 1));
        assert_eq!(step(1, 0, Verdict::Whole), again(0, 1));
        assert_eq!(step(1, 10, Verdict::Whole), Step::GiveUp { at: 0 });
        assert_eq!(step(3, 10, Verdict::From(0)), Step::GiveUp { at: 0 });
    }

    #[test]
    fn a_batch_that_fails_whole_is_split_down_to_single_records() {
        assert_eq!(step(100, 0, Verdict::Whole), Step::Split { at: 50 });
        assert_eq!(step(3, 0, Verdict::Whole), Step::Split { at: 1 });
        assert_eq!(step(2, 9, Verdict::Whole), Step::Split { at: 1 });
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let ms: Vec<u128> = (0..8).map(|n| pause(n).as_millis()).collect();
        assert_eq!(ms, [0, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    #[test]
    fn a_record_comes_again_until_its_gap_may_be_told() {
        let tried: Duration = (1..=RETRIES_MAX).map(pause).sum();
        let waits = u128::try_from(app::trail::PREDECESSOR_WAIT_MS).unwrap();
        assert!(tried.as_millis() >= 2 * waits, "{tried:?}");
    }

    #[test]
    fn only_a_record_that_failed_grows_too_old() {
        assert!(!expired(0, AGE_MAX_SECONDS + 1, 0));
        assert!(!expired(0, AGE_MAX_SECONDS, 1));
        assert!(expired(0, AGE_MAX_SECONDS + 1, 1));
    }
}
