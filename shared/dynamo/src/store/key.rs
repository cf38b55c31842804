//! API keys.

use app::StoreError;
use app::auth::{ApiKey, KeyDigest};
use app::grant::{Keeper, Role};
use app::ports::{Commit, ListKeys, LoadKey, Page, PutKey, RevokeKey, StoreResult, Write};
use domain::{KeyId, OrgId, Timestamp, WriteId};

use super::DynamoStore;
use super::node::if_absent;
use super::read::page;
use super::rules;
use super::write::{Part, Transacted, Written};
use crate::expr::{Expression, Finished, absent, any, eq, ne};
use crate::item::api_key::{
    CREATED, ID, KIND, OPERATOR, REVOKED, ROLE, decode, decode_link, encode, encode_link,
};
use crate::keys::{Key, PK, keys_after, of_org_pk};

impl LoadKey for DynamoStore {
    async fn load_key(&self, digest: &KeyDigest) -> StoreResult<Option<ApiKey>> {
        let item = self.get(&Key::api_key(digest)).await?;
        item.as_ref().map(decode).transpose()
    }
}

impl PutKey for DynamoStore {
    async fn put_key(&self, digest: &KeyDigest, key: &ApiKey) -> StoreResult<Commit> {
        let parts = vec![
            Part::Put(encode(digest, key), if_new()?),
            Part::Put(encode_link(digest, key), if_absent()?),
        ];
        match self.transact(&write_of(digest)?, parts).await? {
            Transacted::Done => Ok(Commit::Done),
            Transacted::Refused(items) => {
                let there = items.first().and_then(Option::as_ref);
                let there = there.map(decode).transpose()?;
                let own = there.is_some_and(|there| there.id == key.id && there.org == key.org);
                Ok(if own { Commit::Done } else { Commit::Lost })
            }
        }
    }
}

/// No two keys have one digest, so that it names the write as well.
fn write_of(digest: &KeyDigest) -> StoreResult<WriteId> {
    let digits = digest.as_str().get(..WriteId::DIGITS);
    let write = digits.and_then(WriteId::parse);
    write.ok_or_else(|| StoreError::Corrupt("a digest has no digits".to_owned()))
}

/// There is no such key, or one of before keys were listed, which becomes one that is.
fn if_new() -> StoreResult<Finished> {
    let mut e = Expression::default();
    let (pk, created) = (e.path(&[PK]), e.path(&[CREATED]));
    e.require(any(vec![absent(&pk), absent(&created)]));
    e.finish()
}

impl ListKeys for DynamoStore {
    async fn list_keys(
        &self,
        org: &OrgId,
        after: Option<&KeyId>,
        limit: usize,
    ) -> StoreResult<Page<ApiKey, KeyId>> {
        let links = self.within(of_org_pk(org), keys_after(after), limit);
        let links: StoreResult<Vec<(KeyId, KeyDigest)>> =
            links.await?.iter().map(decode_link).collect();
        let links = page(links?, limit, |(id, _)| id.clone());
        let wanted: Vec<Key> = links.items.iter().map(|(_, of)| Key::api_key(of)).collect();
        let count = wanted.len();
        let found = self.get_all(wanted, true).await?;
        if found.len() != count {
            return Err(StoreError::Corrupt(format!("a key of {org} is gone")));
        }
        let items: StoreResult<Vec<ApiKey>> = found.values().map(decode).collect();
        let mut items = items?;
        items.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Page {
            items,
            next: links.next,
        })
    }
}

impl RevokeKey for DynamoStore {
    async fn revoke_key(
        &self,
        org: &OrgId,
        id: &KeyId,
        keeper: Keeper,
        at: Timestamp,
    ) -> StoreResult<Write<ApiKey>> {
        let Some(link) = self.get(&Key::key_link(org, id)).await? else {
            return Ok(Write::Absent);
        };
        let (_, digest) = decode_link(&link)?;
        let key = Key::api_key(&digest);
        match self.update(&key, &revoke(id, keeper, at)?).await? {
            Written::Done(item) => Ok(Write::Done(decode(&item)?)),
            Written::Refused(Some(item)) => Ok(Write::Refused(decode(&item)?)),
            Written::Refused(None) => {
                Err(StoreError::Corrupt(format!("key {id} of {org} is gone")))
            }
        }
    }
}

/// [`Keeper::check`] as one expression.
fn revoke(id: &KeyId, keeper: Keeper, at: Timestamp) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let kind = rules::kind(&mut e, KIND);
    e.require(kind);
    let (there, own) = (e.path(&[ID]), e.text(id.as_str()));
    e.require(eq(&there, &own));
    if keeper != Keeper::Operator {
        let operator = e.path(&[OPERATOR]);
        e.require(absent(&operator));
    }
    if keeper == Keeper::Admin {
        let (role, owner) = (e.path(&[ROLE]), e.text(Role::Owner.as_str()));
        e.require(any(vec![absent(&role), ne(&role, &owner)]));
    }
    let (revoked, at) = (e.path(&[REVOKED]), e.text(at.to_string()));
    // The first instant stays, whoever revokes again.
    e.set(&revoked, &format!("if_not_exists({revoked},{at})"));
    e.finish()
}
