//! API keys.

use std::collections::BTreeSet;

use app::Error;
use app::auth::Permission;
use app::grant::{Grant, Role};
use app::keys::KeyRequest;
use app::ports::{Clock, Ids, ListKeys, PutKey, Random, RevokeKey};
use domain::limits::{KEY_LIFE_SECONDS_MAX, KEY_NAME_CHARS_MAX};
use domain::{KeyId, OrgId};
use serde::Deserialize;

use crate::endpoint::Reply;
use crate::handlers::{Shared, misrouted, page};
use crate::number::Whole;
use crate::request::{Call, bad};
use crate::routes::Operation;
use crate::view::{CallerView, KeyView, MadeKeyView};

/// The key to make: with a role, or with permissions one by one.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "CreateKeyRequest"))]
pub(crate) struct CreateBody {
    /// Its name.
    name: String,
    /// What its holder is in the org: stands for permissions.
    role: Option<String>,
    /// What it may do, instead of a role.
    permissions: Option<Vec<String>>,
    /// How long it is good; left out, until it is revoked.
    expires_in_seconds: Option<Whole>,
    /// Whether it belongs to an operator of the platform; operators alone make these.
    platform_operator: Option<bool>,
}

pub(super) async fn handle<S, C, I>(service: Shared<S, C, I>, call: Call) -> Result<Reply, Error>
where
    S: PutKey + ListKeys + RevokeKey,
    C: Clock,
    I: Ids + Random,
{
    let (store, clock) = (&service.store, &service.clock);
    let context = &call.context;
    match call.route.operation {
        Operation::CreateKey => {
            let body: CreateBody = call.json()?;
            let request = key_request(call.id("orgId")?, body)?;
            let made = app::keys::create(store, clock, &service.ids, context, request).await?;
            Reply::new(MadeKeyView::of(&made))
        }
        Operation::ListKeys => {
            let org: OrgId = call.id("orgId")?;
            let limit = call.limit()?;
            let after: Option<KeyId> = call.cursor(&service.cursors)?;
            let found = app::keys::list(store, context, &org, after.as_ref(), limit).await?;
            Reply::new(page(&service.cursors, &call, &found, KeyView::of))
        }
        Operation::RevokeKey => {
            let (org, id) = (call.id("orgId")?, call.id("id")?);
            app::keys::revoke(store, clock, context, &org, &id).await?;
            Ok(Reply::none())
        }
        Operation::GetCaller => Reply::new(CallerView::of(&context.principal)),
        _ => Err(misrouted(&call)),
    }
}

fn key_request(org: OrgId, body: CreateBody) -> Result<KeyRequest, Error> {
    let chars = body.name.chars().count();
    if !(1..=KEY_NAME_CHARS_MAX).contains(&chars) {
        return Err(bad(format!(
            "name has 1 to {KEY_NAME_CHARS_MAX} characters"
        )));
    }
    let life = |seconds: Whole| {
        let text = "expiresInSeconds is a number from 1 to";
        let within = seconds.within(1, KEY_LIFE_SECONDS_MAX);
        within.ok_or_else(|| bad(format!("{text} {KEY_LIFE_SECONDS_MAX}, or leave it out")))
    };
    Ok(KeyRequest {
        org,
        name: body.name,
        grant: grant(body.role.as_deref(), body.permissions.as_deref())?,
        operator: body.platform_operator.unwrap_or(false),
        life_seconds: body.expires_in_seconds.map(life).transpose()?,
    })
}

fn grant(role: Option<&str>, permissions: Option<&[String]>) -> Result<Grant, Error> {
    match (role, permissions) {
        (Some(role), None) => {
            let known = Role::ALL.map(Role::as_str).join(", ");
            let role = Role::parse(role);
            let role = role.ok_or_else(|| bad(format!("role is one of {known}")))?;
            Ok(Grant::Role(role))
        }
        (None, Some(names)) => Ok(Grant::Permissions(permission_set(names)?)),
        _ => Err(bad("send either role or permissions")),
    }
}

fn permission_set(names: &[String]) -> Result<BTreeSet<Permission>, Error> {
    let known = || Permission::ALL.map(Permission::as_str).join(", ");
    if names.is_empty() {
        let text = format!("permissions names none; name some of {}", known());
        return Err(bad(text));
    }
    let mut out = BTreeSet::new();
    for name in names {
        let permission = Permission::parse(name)
            .ok_or_else(|| bad(format!("permissions are some of {}", known())))?;
        if !out.insert(permission) {
            let text = format!("permissions names {name} twice; name each once");
            return Err(bad(text));
        }
    }
    Ok(out)
}
