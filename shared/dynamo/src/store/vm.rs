//! VMs by themselves: read, listed, condemned, counted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use app::StoreError;
use app::ports::{CondemnVm, CountAttempt, ListVms, LoadVms, Page, StoreResult};
use aws_sdk_dynamodb::types::AttributeValue;
use domain::vm::Sentence;
use domain::{OrgId, Vm, VmId, VmStatus};

use super::DynamoStore;
use super::read::{Range, page};
use super::rules;
use super::write::Written;
use crate::expr::{Expression, Finished, absent, any, between, eq, ne};
use crate::item::vm::{
    ATTEMPTS, COUNTED, KIND, SENTENCE, STATUS, STATUS_REASON, decode, encode_sentence,
};
use crate::item::{Item, UPDATED};
use crate::keys::{Key, ORG_INDEX, ORG_PK, PK, Subject, org_pk, vms_after};
use crate::retry::fresh;

/// Places for tokens of counted attempts.
const COUNT_PLACES: u64 = 8;
/// Attempts that this process has counted.
static COUNTS: AtomicU64 = AtomicU64::new(0);

impl LoadVms for DynamoStore {
    async fn load_vm(&self, id: &VmId) -> StoreResult<Option<Vm>> {
        let item = self.get(&Key::vm(id)).await?;
        item.as_ref().map(decode).transpose()
    }

    async fn load_vms(&self, ids: &BTreeSet<VmId>) -> StoreResult<Vec<Vm>> {
        let keys = ids.iter().map(Key::vm).collect();
        let found = self.get_all(keys, true).await?;
        found.values().map(decode).collect()
    }
}

impl ListVms for DynamoStore {
    /// One query of the index of keys and one batch of reads: the index costs a write once in a
    /// VM's life, where one of whole items would cost one with every change.
    async fn list_vms(
        &self,
        org: &OrgId,
        after: Option<&VmId>,
        limit: usize,
    ) -> StoreResult<Page<Vm, VmId>> {
        let mut e = Expression::default();
        let (org_path, vm_path) = (e.path(&[ORG_PK]), e.path(&[PK]));
        let (first, last) = vms_after(after);
        let (own, first, last) = (e.text(org_pk(org)), e.text(first), e.text(last));
        e.require(eq(&org_path, &own));
        e.require(between(&vm_path, &first, &last));
        let range = Range {
            index: Some(ORG_INDEX),
            keys: e.finish()?,
            limit: limit.saturating_add(1),
            forward: true,
        };
        let entries = self.query(&range).await?;
        let ids: Option<Vec<VmId>> = entries.iter().map(vm_id).collect();
        let ids = ids.ok_or_else(|| StoreError::Corrupt("an index entry of no VM".to_owned()))?;
        let ids = page(ids, limit, Clone::clone);
        let keys = ids.items.iter().map(Key::vm).collect();
        let found = self.get_all(keys, false).await?;
        let items: StoreResult<Vec<Vm>> = found.values().map(decode).collect();
        Ok(Page {
            items: items?,
            next: ids.next,
        })
    }
}

fn vm_id(entry: &Item) -> Option<VmId> {
    let Some(AttributeValue::S(pk)) = entry.get(PK) else {
        return None;
    };
    match Subject::parse(pk, "VM")? {
        Subject::Vm(id) => Some(id),
        _ => None,
    }
}

impl CondemnVm for DynamoStore {
    async fn condemn(
        &self,
        id: &VmId,
        sentence: &Sentence,
        reason: &str,
    ) -> StoreResult<Option<Vm>> {
        let expression = condemn(sentence, reason)?;
        match self.update(&Key::vm(id), &expression).await? {
            Written::Done(item) | Written::Refused(Some(item)) => Ok(Some(decode(&item)?)),
            Written::Refused(None) => Ok(None),
        }
    }
}

fn condemn(sentence: &Sentence, reason: &str) -> StoreResult<Finished> {
    let mut e = Expression::default();
    let kind = rules::kind(&mut e, KIND);
    e.require(kind);
    let status = e.path(&[STATUS]);
    let running = e.text(VmStatus::Running.as_str());
    e.require(eq(&status, &running));
    let changes = [
        (STATUS, crate::item::text(VmStatus::Terminating.as_str())),
        (STATUS_REASON, crate::item::text(reason)),
        (SENTENCE, encode_sentence(sentence)),
        (UPDATED, crate::item::text(sentence.at)),
    ];
    for (name, value) in changes {
        let (path, value) = (e.path(&[name]), e.value(value));
        e.set(&path, &value);
    }
    e.finish()
}

impl CountAttempt for DynamoStore {
    async fn count_attempt(&self, id: &VmId) -> StoreResult<()> {
        let mut e = Expression::default();
        let kind = rules::kind(&mut e, KIND);
        e.require(kind);
        // A token of this call, so that a try whose reply was lost is not counted twice. Calls take
        // turns over a few places, so that another one in between does not overwrite it.
        let place = COUNTS.fetch_add(1, Ordering::Relaxed) % COUNT_PLACES;
        let counted = e.path(&[&format!("{COUNTED}{place}")]);
        let token = e.text(format!("{:016x}", fresh()));
        e.require(any(vec![absent(&counted), ne(&counted, &token)]));
        e.set(&counted, &token);
        let (attempts, one) = (e.path(&[ATTEMPTS]), e.number(1));
        e.set(&attempts, &format!("{attempts}+{one}"));
        // A VM that is not there has no attempts to count; a count that landed before is done.
        self.update(&Key::vm(id), &e.finish()?).await?;
        Ok(())
    }
}
