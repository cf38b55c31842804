//! Calls that may come again: the answer to the first is kept together with its effect, in one
//! transaction, so that there is never one without the other.

use domain::{OrgId, Timestamp, Version};

use crate::error::Error;
use crate::ports::Once;

/// How long an answer is kept, in milliseconds.
pub const KEPT_MS: i64 = 86_400_000;

/// Most characters of a key.
pub const KEY_CHARS_MAX: usize = 255;

/// The key of a call that may come again, in the caller's words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Takes 1 to [`KEY_CHARS_MAX`] characters of `A-Z a-z 0-9 . _ : - + / =`, which UUIDs and
    /// base64 are made of; `None` for anything else. Gateways put other characters in the place of
    /// those that a header cannot have, so that two keys would become one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"._:-+/=".contains(&b);
        let fits = (1..=KEY_CHARS_MAX).contains(&text.len());
        (fits && text.bytes().all(legal)).then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call that may come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeatable {
    /// The org of the caller: each has keys of its own.
    pub org: OrgId,
    /// The key.
    pub key: IdempotencyKey,
    /// A digest of everything that the call asks: another call must not have the same key.
    pub fingerprint: String,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The body, JSON.
    pub body: String,
    /// The version of the resource, where it has one.
    pub version: Option<Version>,
}

/// An answer that is kept for calls that come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The call that was answered.
    pub call: Repeatable,
    /// The answer.
    pub answer: Answer,
    /// From when on it does not count any more.
    pub expires_at: Timestamp,
}

/// How the outcome `T` of a call that may come again is kept.
pub struct Keep<'a, T> {
    /// The call.
    pub call: Repeatable,
    /// What the caller is told of the outcome.
    pub answer: &'a (dyn Fn(&T) -> Result<Answer, Error> + Send + Sync),
}

impl<T> std::fmt::Debug for Keep<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keep({:?})", self.call)
    }
}

impl<T> Keep<'_, T> {
    /// What is to be kept of this outcome.
    ///
    /// # Errors
    /// Those of making the answer.
    pub(crate) fn kept(&self, outcome: &T, now: Timestamp) -> Result<Kept, Error> {
        Ok(Kept {
            call: self.call.clone(),
            answer: (self.answer)(outcome)?,
            expires_at: now.plus_ms(KEPT_MS),
        })
    }
}

/// What a write that keeps an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceCommit {
    /// It went through, now or at an earlier try of the same write.
    Done,
    /// An item had changed since it was read, or was not as required.
    Lost,
    /// A call with this key has been answered before: nothing was written.
    Answered,
}

impl OnceCommit {
    /// Whether it went through; [`Error::Answered`] if there is nothing to be done any more.
    pub(crate) fn done(self) -> Result<bool, Error> {
        match self {
            OnceCommit::Done => Ok(true),
            OnceCommit::Lost => Ok(false),
            OnceCommit::Answered => Err(Error::Answered),
        }
    }
}

/// What is known of a call that may come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it is to be done.
    Nothing,
    /// It has been answered, so.
    Answered(Answer),
    /// Its key belongs to another call.
    OtherCall,
}

/// Looks whether a call has been answered before.
///
/// # Errors
/// The store's failures.
pub async fn known(store: &impl Once, call: &Repeatable, now: Timestamp) -> Result<Known, Error> {
    let kept = store.load_kept(&call.org, &call.key).await?;
    Ok(match kept.filter(|kept| now < kept.expires_at) {
        None => Known::Nothing,
        Some(kept) if kept.call == *call => Known::Answered(kept.answer),
        Some(_) => Known::OtherCall,
    })
}
