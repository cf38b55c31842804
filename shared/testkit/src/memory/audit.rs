//! The audit trail.

use app::ports::{Page, PutAudit, ReadAudit, Recorded, StoreResult};
use domain::audit::Record;
use domain::{ReservationId, Version};

use super::{MemoryStore, page};

/// The key of a record: of one width in its version, so that texts sort as the chain runs.
fn key(record: &Record) -> String {
    let version = record.event.version.get();
    match &record.event.beside {
        None => format!("{version:020}"),
        Some(vm) => format!("{version:020}#{vm}"),
    }
}

impl ReadAudit for MemoryStore {
    async fn last_record_before(
        &self,
        id: &ReservationId,
        version: Version,
    ) -> StoreResult<Option<Record>> {
        self.read(|world| {
            let chain = world.audit.get(id)?;
            let (_, last) = chain.range(..(version, None)).next_back()?;
            Some(last.clone())
        })
        .await
    }

    async fn list_records(
        &self,
        id: &ReservationId,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<Page<Record, String>> {
        self.read(|world| {
            let chain = world
                .audit
                .get(id)
                .into_iter()
                .flat_map(|chain| chain.values());
            let rest = chain.filter(|record| after.is_none_or(|after| *key(record) > *after));
            page(rest.cloned(), limit, key)
        })
        .await
    }
}

impl PutAudit for MemoryStore {
    async fn put_record(&self, record: &Record) -> StoreResult<Recorded> {
        self.change(|world| {
            let event = &record.event;
            let chain = world.audit.entry(event.reservation.clone()).or_default();
            let place = (event.version, event.beside.clone());
            let answer = match chain.get(&place) {
                None => {
                    chain.insert(place, record.clone());
                    Recorded::Written
                }
                Some(there) if there == record => Recorded::Same,
                Some(_) => Recorded::Different,
            };
            Ok(answer)
        })
        .await
    }
}
