//! What a key may do: its permissions, or a role that stands for some, and which keys its holder
//! may make and revoke.

use std::collections::BTreeSet;

use domain::OrgId;

use crate::auth::{Permission, Principal};
use crate::error::Error;

/// What somebody is in an org.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May do everything of the org, with all of its keys.
    Owner,
    /// May do the same, but for owners' keys.
    Admin,
    /// Runs workloads.
    Member,
    /// Looks on.
    Viewer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Owner, Role::Admin, Role::Member, Role::Viewer];

    /// The roles whose keys may make, list and revoke keys of their org.
    pub const KEEPERS: &[Role] = &[Role::Owner, Role::Admin];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Admin => "admin",
            Role::Member => "member",
            Role::Viewer => "viewer",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// What it stands for.
    #[must_use]
    pub fn permissions(self) -> &'static [Permission] {
        match self {
            Role::Owner | Role::Admin => &Permission::ALL,
            Role::Member => &[Permission::VmsRead, Permission::VmsWrite],
            Role::Viewer => &[Permission::VmsRead],
        }
    }
}

/// What a key was given: a role, or permissions one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Whatever the role stands for.
    Role(Role),
    /// Exactly these.
    Permissions(BTreeSet<Permission>),
}

impl Grant {
    /// The role, if it is one.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Grant::Role(role) => Some(*role),
            Grant::Permissions(_) => None,
        }
    }

    /// What it comes to.
    #[must_use]
    pub fn permissions(&self) -> BTreeSet<Permission> {
        match self {
            Grant::Role(role) => role.permissions().iter().copied().collect(),
            Grant::Permissions(permissions) => permissions.clone(),
        }
    }
}

/// Who makes, lists and revokes an org's keys. Whoever may make a key may revoke one like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// An operator of the platform: every key.
    Operator,
    /// An owner of the org: all but operators' keys.
    Owner,
    /// An admin of the org: all but operators' and owners' keys.
    Admin,
}

impl Keeper {
    /// What this caller is to the keys of the org.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for another org's, and without a role of [`Role::KEEPERS`].
    pub fn of(principal: &Principal, org: &OrgId) -> Result<Self, Error> {
        principal.of_org(org)?;
        if principal.caller.operator {
            return Ok(Keeper::Operator);
        }
        match principal.role {
            Some(Role::Owner) => Ok(Keeper::Owner),
            Some(Role::Admin) => Ok(Keeper::Admin),
            Some(Role::Member | Role::Viewer) | None => Err(Error::Forbidden(LACKS_ROLE)),
        }
    }

    /// Whether a key like this is one for the keeper to make and revoke.
    ///
    /// # Errors
    /// [`Error::Forbidden`] says who could.
    pub fn check(self, operator: bool, role: Option<Role>) -> Result<(), Error> {
        match (self, operator, role) {
            (Keeper::Operator, ..) => Ok(()),
            (Keeper::Owner | Keeper::Admin, true, _) => Err(Error::Forbidden(
                "only an operator may make or revoke an operator's key",
            )),
            (Keeper::Admin, false, Some(Role::Owner)) => Err(Error::Forbidden(
                "only an owner of the org or an operator may make or revoke an owner's key",
            )),
            (Keeper::Owner | Keeper::Admin, false, _) => Ok(()),
        }
    }
}

/// The refusal of whoever has no role that keeps keys.
pub const LACKS_ROLE: &str = "keys are for an owner or admin of the org, by role, or an operator";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_no_others() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        for text in ["", "Owner", "owner ", "operator"] {
            assert_eq!(Role::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_role_holds_all_that_the_next_one_does() {
        for pair in Role::ALL.windows(2) {
            let of = |role: Role| Grant::Role(role).permissions();
            assert!(of(pair[0]).is_superset(&of(pair[1])), "{pair:?}");
        }
    }
}
