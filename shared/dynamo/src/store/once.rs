//! Writes that keep the answer to their call: the same transactions with one part more, which asks
//! that there is no answer yet.

use app::idempotency::{IdempotencyKey, KEPT_MS, Kept, OnceCommit};
use app::ports::{Commit, Custodian, CustodyMove, Once, Replacement, StoreResult};
use domain::{OrgId, Stamp, Vm, WriteId};

use super::DynamoStore;
use super::place;
use super::reservation::{landed, move_parts, seen};
use super::write::{Part, Transacted};
use crate::expr::{Expression, absent, any, at_most};
use crate::item::{Item, kept, reservation};
use crate::keys::{Key, PK};
use crate::retry::stand_aside;

impl Once for DynamoStore {
    async fn load_kept(&self, org: &OrgId, key: &IdempotencyKey) -> StoreResult<Option<Kept>> {
        let item = self.get(&Key::kept(org, key)).await?;
        item.as_ref().map(kept::decode).transpose()
    }

    async fn replace_once(&self, change: &Replacement, kept: &Kept) -> StoreResult<OnceCommit> {
        let condition = seen(reservation::KIND, Some(change.seen), &change.write)?;
        let part = Part::Put(reservation::encode(&change.reservation)?, condition);
        let own = |items: &[Option<&Item>]| {
            let there = items.first().copied().flatten();
            landed(None, there, &change.write)
        };
        self.once(kept, &change.write, vec![part], own).await
    }

    async fn move_custody_once(
        &self,
        change: &CustodyMove,
        kept: &Kept,
    ) -> StoreResult<OnceCommit> {
        let own = |items: &[Option<&Item>]| {
            let [node, reservation] = [0, 1].map(|place| items.get(place).copied().flatten());
            landed(node, reservation, &change.write)
        };
        self.once(kept, &change.write, move_parts(change)?, own)
            .await
    }

    async fn place_once(
        &self,
        vm: &Vm,
        custodian: &Custodian,
        stamp: &Stamp,
        kept: &Kept,
    ) -> StoreResult<OnceCommit> {
        if vm.units.is_empty() {
            return Ok(OnceCommit::Lost);
        }
        let own = |items: &[Option<&Item>]| place::landed(custodian, items, &stamp.write);
        let parts = place::parts(vm, custodian, stamp)?;
        self.once(kept, &stamp.write, parts, own).await
    }
}

impl DynamoStore {
    /// Writes the parts and the answer, or nothing; `own` says whether the parts' items show that
    /// this write has landed before.
    async fn once(
        &self,
        kept: &Kept,
        write: &WriteId,
        mut parts: Vec<Part>,
        own: impl Fn(&[Option<&Item>]) -> StoreResult<Commit>,
    ) -> StoreResult<OnceCommit> {
        let mut e = Expression::default();
        let (pk, expires) = (e.path(&[PK]), e.path(&[kept::EXPIRES]));
        let now = e.text(kept.expires_at.plus_ms(-KEPT_MS).to_string());
        e.require(any(vec![absent(&pk), at_most(&expires, &now)]));
        parts.push(Part::Put(kept::encode(kept, write), e.finish()?));
        let items = match self.transact(write, parts).await? {
            Transacted::Done => return Ok(OnceCommit::Done),
            Transacted::Refused(items) => items,
        };
        let items: Vec<Option<&Item>> = items.iter().map(Option::as_ref).collect();
        let Some((answer, items)) = items.split_last() else {
            return Ok(OnceCommit::Lost);
        };
        match answer {
            Some(there) if kept::written_by(there, write) => Ok(OnceCommit::Done),
            Some(_) => Ok(OnceCommit::Answered),
            None if own(items)? == Commit::Done => Ok(OnceCommit::Done),
            None => {
                stand_aside().await;
                Ok(OnceCommit::Lost)
            }
        }
    }
}
