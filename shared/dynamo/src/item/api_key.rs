//! The item of an API key. Of the secret it holds no more than the digest, in its key.

use app::auth::{ApiKey, KeyDigest, Permission};
use app::ports::StoreResult;

use super::{Item, fresh, open};
use crate::keys::Key;

const KIND: &str = "key";
const ID: &str = "id";
const ORG: &str = "org";
const PERMISSIONS: &str = "permissions";
const OPERATOR: &str = "operator";
const EXPIRES: &str = "expires";
const REVOKED: &str = "revoked";

/// The item of a key.
pub(crate) fn encode(digest: &KeyDigest, key: &ApiKey) -> Item {
    let mut writer = fresh(&Key::api_key(digest), KIND);
    writer.text(ID, &key.id);
    writer.text(ORG, &key.org);
    writer.set(PERMISSIONS, key.permissions.iter().map(|p| p.as_str()));
    writer.flag(OPERATOR, key.operator);
    writer.maybe_text(EXPIRES, key.expires_at);
    writer.maybe_text(REVOKED, key.revoked_at);
    writer.item()
}

/// Reads the item of a key.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is not one.
pub(crate) fn decode(item: &Item) -> StoreResult<ApiKey> {
    let reader = open(item, KIND)?;
    Ok(ApiKey {
        id: reader.id(ID)?,
        org: reader.id(ORG)?,
        permissions: reader.set(PERMISSIONS, "a set of permissions", Permission::parse)?,
        operator: reader.flag(OPERATOR)?,
        expires_at: reader.maybe_time(EXPIRES)?,
        revoked_at: reader.maybe_time(REVOKED)?,
    })
}
