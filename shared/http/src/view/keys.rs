//! API keys, and who calls.

use std::collections::BTreeSet;

use app::auth::{ApiKey, Permission, Principal};
use app::grant::Role;
use app::keys::MadeKey;
use serde::Serialize;

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "ApiKey"))]
pub struct KeyView {
    /// Its public id.
    pub id: String,
    /// The org that it belongs to.
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// The first characters of its secret, to tell keys apart.
    pub key_prefix: String,
    /// Its role, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// What it may do.
    pub permissions: Vec<&'static str>,
    /// Whether it belongs to an operator of the platform.
    pub platform_operator: bool,
    /// When it was made.
    pub created_at: String,
    /// From when on it is refused; absent if that is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was revoked, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

impl KeyView {
    /// The key.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            organization_id: key.org.to_string(),
            name: key.name.clone(),
            key_prefix: key.prefix.clone(),
            role: key.grant.role().map(Role::as_str),
            permissions: names(&key.grant.permissions()),
            platform_operator: key.operator,
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}

/// The names of permissions, in order.
fn names(permissions: &BTreeSet<Permission>) -> Vec<&'static str> {
    let mut names: Vec<&str> = permissions.iter().map(|p| p.as_str()).collect();
    names.sort_unstable();
    names
}

/// A key that was just made, with its secret, which is shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "NewApiKey"))]
pub struct MadeKeyView {
    /// The key.
    #[serde(flatten)]
    pub shown: KeyView,
    /// Its secret.
    pub key: String,
}

/// Without the secret.
impl std::fmt::Debug for MadeKeyView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKeyView")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

impl MadeKeyView {
    /// The key with its secret.
    #[must_use]
    pub fn of(made: &MadeKey) -> Self {
        Self {
            shown: KeyView::of(&made.key),
            key: made.secret.reveal().to_owned(),
        }
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Caller"))]
pub struct CallerView {
    /// The org that the key belongs to.
    pub organization_id: String,
    /// The key's public id.
    pub key_id: String,
    /// The key's role, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// What the key may do.
    pub permissions: Vec<&'static str>,
    /// Whether the key belongs to an operator of the platform.
    pub platform_operator: bool,
    /// From when on the key is refused; absent if that is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl CallerView {
    /// The holder of the key that was sent.
    #[must_use]
    pub fn of(principal: &Principal) -> Self {
        Self {
            organization_id: principal.caller.org.to_string(),
            key_id: principal.caller.key.to_string(),
            role: principal.role.map(Role::as_str),
            permissions: names(&principal.permissions),
            platform_operator: principal.caller.operator,
            expires_at: principal.expires_at.map(|at| at.to_string()),
        }
    }
}
