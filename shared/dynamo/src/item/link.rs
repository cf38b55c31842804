//! Items that list others: they hold a key and nothing else, and are never changed.

use super::{Item, fresh};
use crate::keys::{Key, Subject};

/// The value of the attribute `type`.
const KIND: &str = "link";

/// The item of a link.
pub(crate) fn encode(key: &Key) -> Item {
    fresh(key, KIND).item()
}

/// What the item is a link to.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is no link.
pub(crate) fn decode<T>(
    item: &Item,
    wanted: impl FnOnce(Subject) -> Option<T>,
) -> app::ports::StoreResult<T> {
    let reader = super::open(item, KIND)?;
    let (pk, sk) = (reader.text(crate::keys::PK)?, reader.text(crate::keys::SK)?);
    let subject = Subject::parse(&pk, &sk).and_then(wanted);
    subject.ok_or_else(|| reader.corrupt(crate::keys::SK, "a link of this list"))
}
