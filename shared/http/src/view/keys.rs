//! API keys, and who calls.

use std::collections::BTreeSet;

use app::auth::{ApiKey, Permission, Principal};
use app::grant::Role;
use app::keys::MadeKey;
use serde::Serialize;

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the API contract")]
pub struct KeyView {
    pub id: String,
    pub organization_id: String,
    pub name: String,
    pub key_prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub permissions: Vec<&'static str>,
    pub platform_operator: bool,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
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

/// A key that was just made, with its secret, which is shown here and never again: not in `Debug`
/// either.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct MadeKeyView {
    /// The key.
    #[serde(flatten)]
    pub shown: KeyView,
    /// Its secret.
    pub key: String,
}

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
#[expect(missing_docs, reason = "the fields are those of the API contract")]
pub struct CallerView {
    pub organization_id: String,
    pub key_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub permissions: Vec<&'static str>,
    pub platform_operator: bool,
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
