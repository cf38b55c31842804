//! The item of an answer that is kept for calls that come again.

use app::idempotency::{Answer, IdempotencyKey, Kept, Repeatable};
use app::ports::StoreResult;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::WriteId;

use super::{Item, fresh, open};
use crate::keys::{Key, PK, SK, Subject};

const KIND: &str = "kept";
const FINGERPRINT: &str = "call";
const BODY: &str = "body";
const VERSION: &str = "ver";
/// From when on it does not count any more.
pub(crate) const EXPIRES: &str = "expires";
/// The same in seconds since 1970: by this attribute the table drops the item, some time after.
pub(crate) const TTL: &str = "ttl";
/// The write that left it: by it a write whose reply was lost knows itself.
const WRITE: &str = "wr";

/// The item of an answer that `write` leaves.
pub(crate) fn encode(kept: &Kept, write: &WriteId) -> Item {
    let mut writer = fresh(&Key::kept(&kept.call.org, &kept.call.key), KIND);
    writer.text(FINGERPRINT, &kept.call.fingerprint);
    writer.text(BODY, &kept.answer.body);
    if let Some(version) = kept.answer.version {
        writer.number(VERSION, version);
    }
    writer.time(EXPIRES, kept.expires_at);
    writer.number(TTL, kept.expires_at.unix_ms() / 1_000);
    writer.text(WRITE, write.as_str());
    writer.item()
}

/// Reads the item of an answer.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one.
pub(crate) fn decode(item: &Item) -> StoreResult<Kept> {
    let reader = open(item, KIND)?;
    let subject = Subject::parse(&reader.text(PK)?, &reader.text(SK)?);
    let Some(Subject::Kept(org, key)) = subject else {
        return Err(reader.corrupt(PK, "a kept answer's"));
    };
    let key = IdempotencyKey::parse(&key).ok_or_else(|| reader.corrupt(PK, "a key's"))?;
    Ok(Kept {
        call: Repeatable {
            org,
            key,
            fingerprint: reader.text(FINGERPRINT)?,
        },
        answer: Answer {
            body: reader.text(BODY)?,
            version: reader.maybe_version(VERSION)?,
        },
        expires_at: reader.time(EXPIRES)?,
    })
}

/// Whether `write` left this answer.
pub(crate) fn written_by(item: &Item, write: &WriteId) -> bool {
    matches!(item.get(WRITE), Some(AttributeValue::S(there)) if there == write.as_str())
}
