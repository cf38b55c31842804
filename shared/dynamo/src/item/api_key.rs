//! The item of an API key, and its entry in the list of its org. Of the secret they hold no more
//! than the digest and the first characters.

use app::auth::{ApiKey, KeyDigest, Permission};
use app::grant::{Grant, Role};
use app::ports::StoreResult;
use domain::{KeyId, Timestamp};

use super::{Item, fresh, open};
use crate::keys::Key;

pub(crate) const KIND: &str = "key";
pub(crate) const ID: &str = "id";
pub(crate) const ROLE: &str = "role";
pub(crate) const OPERATOR: &str = "operator";
pub(crate) const CREATED: &str = "created";
pub(crate) const REVOKED: &str = "revoked";
const ORG: &str = "org";
const NAME: &str = "name";
const PREFIX: &str = "prefix";
const PERMISSIONS: &str = "permissions";
const EXPIRES: &str = "expires";

const LINK_KIND: &str = "key-link";
const DIGEST: &str = "digest";

/// The item of a key.
pub(crate) fn encode(digest: &KeyDigest, key: &ApiKey) -> Item {
    let mut writer = fresh(&Key::api_key(digest), KIND);
    writer.text(ID, &key.id);
    writer.text(ORG, &key.org);
    writer.text(NAME, &key.name);
    writer.text(PREFIX, &key.prefix);
    match &key.grant {
        Grant::Role(role) => writer.text(ROLE, role.as_str()),
        Grant::Permissions(each) => writer.set(PERMISSIONS, each.iter().map(|p| p.as_str())),
    }
    writer.flag(OPERATOR, key.operator);
    writer.time(CREATED, key.created_at);
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
    let id: KeyId = reader.id(ID)?;
    let permissions = reader.set(PERMISSIONS, "a set of permissions", Permission::parse)?;
    let role = reader.maybe_parsed(ROLE, "a role", Role::parse)?;
    // Keys once had neither name nor prefix, nor the instant they were made at.
    let name = reader.maybe_text(NAME)?;
    let prefix = reader.maybe_text(PREFIX)?;
    let created_at = reader.maybe_time(CREATED)?;
    Ok(ApiKey {
        org: reader.id(ORG)?,
        name: name.unwrap_or_else(|| id.to_string()),
        id,
        prefix: prefix.unwrap_or_default(),
        grant: role.map_or(Grant::Permissions(permissions), Grant::Role),
        operator: reader.flag(OPERATOR)?,
        created_at: created_at.unwrap_or_else(|| Timestamp::from_unix_ms(0)),
        expires_at: reader.maybe_time(EXPIRES)?,
        revoked_at: reader.maybe_time(REVOKED)?,
    })
}

/// The entry of a key in the list of its org.
pub(crate) fn encode_link(digest: &KeyDigest, key: &ApiKey) -> Item {
    let mut writer = fresh(&Key::key_link(&key.org, &key.id), LINK_KIND);
    writer.text(ID, &key.id);
    writer.text(DIGEST, digest.as_str());
    writer.item()
}

/// Reads which key an entry is of.
///
/// # Errors
/// [`app::StoreError::Corrupt`] if it is none.
pub(crate) fn decode_link(item: &Item) -> StoreResult<(KeyId, KeyDigest)> {
    let reader = open(item, LINK_KIND)?;
    let digest = reader.parsed(DIGEST, "a digest", KeyDigest::parse)?;
    Ok((reader.id(ID)?, digest))
}
