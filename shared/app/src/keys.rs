//! API keys: made, listed, revoked.

use domain::{KeyId, OrgId};

use crate::auth::{ApiKey, SecretKey};
use crate::context::Context;
use crate::error::{Error, Internal};
use crate::grant::{Grant, Keeper};
use crate::ports::{Clock, Commit, Ids, ListKeys, Page, PutKey, Random, RevokeKey, Write};

/// What a caller asks of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    /// Whose it is to be.
    pub org: OrgId,
    /// Its name.
    pub name: String,
    /// What it is to be allowed.
    pub grant: Grant,
    /// Whether it is to belong to an operator of the platform.
    pub operator: bool,
    /// How long it is to be good, in seconds; `None` until it is revoked.
    pub life_seconds: Option<u32>,
}

/// A key that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeKey {
    /// The key.
    pub key: ApiKey,
    /// Its secret, which nobody can find out again.
    pub secret: SecretKey,
}

/// Makes a key that the caller may make.
///
/// # Errors
/// [`Error::Forbidden`] by the rules of [`Keeper`]; the store's failures.
pub async fn create(
    store: &impl PutKey,
    clock: &impl Clock,
    fresh: &(impl Ids + Random),
    context: &Context,
    request: KeyRequest,
) -> Result<MadeKey, Error> {
    let keeper = Keeper::of(&context.principal, &request.org)?;
    keeper.check(request.operator, request.grant.role())?;
    make(store, clock, fresh, request).await
}

/// Makes a key without asking by whose right: for whoever may write to the store itself.
///
/// # Errors
/// The store's failures.
pub async fn make(
    store: &impl PutKey,
    clock: &impl Clock,
    fresh: &(impl Ids + Random),
    request: KeyRequest,
) -> Result<MadeKey, Error> {
    let bug = |text: &str| Error::Bug(Internal(text.to_owned()));
    let id = fresh.uuid().parse();
    let id: KeyId = id.map_err(|_| bug("a fresh id is not an id"))?;
    let secret = SecretKey::from_random(&fresh.random()?);
    let now = clock.now();
    let life = request.life_seconds.map(|s| i64::from(s) * 1_000);
    let key = ApiKey {
        id,
        org: request.org,
        name: request.name,
        prefix: secret.prefix().to_owned(),
        grant: request.grant,
        operator: request.operator,
        created_at: now,
        expires_at: life.map(|ms| now.plus_ms(ms)),
        revoked_at: None,
    };
    match store.put_key(&secret.digest(), &key).await? {
        Commit::Done => Ok(MadeKey { key, secret }),
        Commit::Lost => Err(bug("a fresh key is there already")),
    }
}

/// Lists an org's keys in the order they were made in.
///
/// # Errors
/// [`Error::Forbidden`] by the rules of [`Keeper`]; the store's failures.
pub async fn list(
    store: &impl ListKeys,
    context: &Context,
    org: &OrgId,
    after: Option<&KeyId>,
    limit: usize,
) -> Result<Page<ApiKey, KeyId>, Error> {
    Keeper::of(&context.principal, org)?;
    Ok(store.list_keys(org, after, limit).await?)
}

/// Revokes a key, which may be the caller's own. One that is revoked stays as it is.
///
/// # Errors
/// [`Error::Forbidden`] by the rules of [`Keeper`]; not found if the org has no such key; the
/// store's failures.
pub async fn revoke(
    store: &impl RevokeKey,
    clock: &impl Clock,
    context: &Context,
    org: &OrgId,
    id: &KeyId,
) -> Result<ApiKey, Error> {
    let keeper = Keeper::of(&context.principal, org)?;
    match store.revoke_key(org, id, keeper, clock.now()).await? {
        Write::Done(key) => Ok(key),
        Write::Absent => Err(Error::not_found()),
        Write::Refused(key) => {
            keeper.check(key.operator, key.grant.role())?;
            let text = format!("revoking key {id} was refused without a reason");
            Err(Error::Bug(Internal(text)))
        }
    }
}
