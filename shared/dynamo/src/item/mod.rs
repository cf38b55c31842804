//! Items as the store holds them, and how each kind is written and read.
//!
//! Nothing is taken on trust: an attribute that is missing or of the wrong shape, an entity type
//! that does not fit, or an image that breaks an invariant is [`StoreError::Corrupt`], naming it.

pub(crate) mod api_key;
pub(crate) mod audit;
pub(crate) mod kept;
pub(crate) mod link;
pub(crate) mod node;
mod reader;
pub(crate) mod reservation;
pub(crate) mod slots;
pub(crate) mod stamp;
pub(crate) mod vm;
mod writer;

use std::collections::BTreeMap;

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::invariants::Violation;

pub(crate) use reader::Reader;
pub(crate) use writer::{Writer, map, number, set, text};

use crate::keys::{Key, PK, SK};

/// An item, or an image of one.
pub(crate) type Item = BTreeMap<String, AttributeValue>;

/// The attribute that says what kind of thing an item is.
pub(crate) const TYPE: &str = "type";
/// The attribute that holds an item's version.
pub(crate) const VERSION: &str = "ver";
/// The attribute that says when an item changed last.
pub(crate) const UPDATED: &str = "updated";

/// A new item of this kind with its key.
fn fresh(key: &Key, kind: &str) -> Writer {
    let mut writer = Writer::default();
    writer.text(PK, &key.pk);
    writer.text(SK, &key.sk);
    writer.text(TYPE, kind);
    writer
}

/// A reader of an item that must be of this kind.
fn open<'a>(item: &'a Item, kind: &str) -> StoreResult<Reader<'a>> {
    let name = |attribute: &str| match item.get(attribute) {
        Some(AttributeValue::S(text)) => text.as_str(),
        _ => "?",
    };
    let reader = Reader::new(format!("{} {}", name(PK), name(SK)), item);
    reader.parsed(TYPE, "its kind", |found| (found == kind).then_some(()))?;
    Ok(reader)
}

/// Refuses an image that breaks an invariant.
fn sound(what: &str, violations: &[Violation]) -> StoreResult<()> {
    match violations.first() {
        None => Ok(()),
        Some(violation) => Err(StoreError::Corrupt(format!("{what}: {violation}"))),
    }
}
