//! Reads a record of the table's stream.

use app::StoreError;
use app::ports::StoreResult;
use app::react::Change;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::item::{Item, TYPE, node, reservation};

/// What a record of the stream tells, by its images before and after; an image that is not there is
/// empty. Items that hold no units, and deletions, are [`Change::Other`].
///
/// # Errors
/// [`StoreError::Corrupt`] if an image is not what its type says.
pub fn change(old: serde_dynamo::Item, new: serde_dynamo::Item) -> StoreResult<Change> {
    let (old, new) = (image(old), image(new));
    let Some(AttributeValue::S(kind)) = new.get(TYPE) else {
        return match new.is_empty() {
            true => Ok(Change::Other),
            false => Err(StoreError::Corrupt("a stream image has no type".to_owned())),
        };
    };
    let old = (!old.is_empty()).then_some(&old);
    match kind.as_str() {
        reservation::KIND => Ok(Change::Reservation {
            old: old.map(reservation::decode).transpose()?.map(Box::new),
            new: Box::new(reservation::decode(&new)?),
        }),
        node::KIND => Ok(Change::Node {
            old: old.map(node::decode).transpose()?.map(Box::new),
            new: Box::new(node::decode(&new)?),
        }),
        _ => Ok(Change::Other),
    }
}

fn image(item: serde_dynamo::Item) -> Item {
    let attributes = item.iter();
    attributes
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect()
}
