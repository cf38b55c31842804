//! The audit trail: appends only.

use app::StoreError;
use app::ports::{Page, PutAudit, ReadAudit, Recorded, StoreResult};
use domain::audit::Record;
use domain::{ReservationId, Version};

use super::DynamoStore;
use super::node::if_absent;
use super::read::{Range, page};
use super::write::Written;
use crate::expr::{Expression, above, below, eq};
use crate::item::audit::{decode, encode, key};
use crate::keys::{PK, SK, audit_pk, audit_version};

impl ReadAudit for DynamoStore {
    async fn last_record_before(
        &self,
        id: &ReservationId,
        version: Version,
    ) -> StoreResult<Option<Record>> {
        let mut e = trail(id);
        let sk = e.path(&[SK]);
        let before = e.text(audit_version(version));
        e.require(below(&sk, &before));
        let range = Range {
            index: None,
            keys: e.finish()?,
            limit: 1,
            forward: false,
        };
        let found = self.query(&range).await?;
        found.first().map(decode).transpose()
    }

    async fn list_records(
        &self,
        id: &ReservationId,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<Page<Record, String>> {
        let mut e = trail(id);
        if let Some(after) = after.filter(|after| !after.is_empty()) {
            let sk = e.path(&[SK]);
            let after = e.text(after);
            e.require(above(&sk, &after));
        }
        let range = Range {
            index: None,
            keys: e.finish()?,
            limit: limit.saturating_add(1),
            forward: true,
        };
        let found = self.query(&range).await?;
        let records: StoreResult<Vec<Record>> = found.iter().map(decode).collect();
        Ok(page(records?, limit, |record| key(record).sk))
    }
}

/// The condition on the partition key of a reservation's records.
fn trail(id: &ReservationId) -> Expression {
    let mut e = Expression::default();
    let pk = e.path(&[PK]);
    let own = e.text(audit_pk(id));
    e.require(eq(&pk, &own));
    e
}

impl PutAudit for DynamoStore {
    async fn put_record(&self, record: &Record) -> StoreResult<Recorded> {
        let condition = if_absent()?;
        match self.put(&encode(record), Some(&condition)).await? {
            Written::Done(_) => Ok(Recorded::Written),
            Written::Refused(None) => Err(StoreError::Conflict),
            Written::Refused(Some(item)) if decode(&item)? == *record => Ok(Recorded::Same),
            Written::Refused(Some(_)) => Ok(Recorded::Different),
        }
    }
}
