//! Writes that keep the answer to their call.

use app::StoreError;
use app::idempotency::{IdempotencyKey, KEPT_MS, Kept, OnceCommit};
use app::ports::{Commit, Custodian, CustodyMove, Once, Replacement, StoreResult};
use domain::{OrgId, Stamp, Vm, WriteId};

use super::{Held, MemoryStore, sound_reservation};

impl Held {
    /// Does `write` and keeps the answer, unless there is one that counts.
    fn once(
        &mut self,
        kept: &Kept,
        write: &WriteId,
        change: impl FnOnce(&mut Held) -> StoreResult<Commit>,
    ) -> StoreResult<OnceCommit> {
        let place = (kept.call.org.clone(), kept.call.key.clone());
        let now = kept.expires_at.plus_ms(-KEPT_MS);
        match self.kept.get(&place) {
            Some((_, by)) if by == write => return Ok(OnceCommit::Done),
            Some((there, _)) if now < there.expires_at => return Ok(OnceCommit::Answered),
            Some(_) | None => {}
        }
        match change(self)? {
            Commit::Lost => Ok(OnceCommit::Lost),
            Commit::Done => {
                self.kept.insert(place, (kept.clone(), write.clone()));
                Ok(OnceCommit::Done)
            }
        }
    }

    fn replace(&mut self, change: &Replacement) -> Result<Commit, StoreError> {
        let next = &change.reservation;
        sound_reservation(next)?;
        let Some(present) = self.reservation(&next.node, &next.id) else {
            return Ok(Commit::Lost);
        };
        if present.recent.landed(&change.write).is_some() {
            return Ok(Commit::Done);
        }
        if present.version != change.seen {
            return Ok(Commit::Lost);
        }
        self.put_reservation(next.clone());
        Ok(Commit::Done)
    }
}

impl Once for MemoryStore {
    async fn load_kept(&self, org: &OrgId, key: &IdempotencyKey) -> StoreResult<Option<Kept>> {
        let place = (org.clone(), key.clone());
        self.read(|world| world.kept.get(&place).map(|(kept, _)| kept.clone()))
            .await
    }

    async fn replace_once(&self, change: &Replacement, kept: &Kept) -> StoreResult<OnceCommit> {
        self.change(|world| world.once(kept, &change.write, |world| world.replace(change)))
            .await
    }

    async fn move_custody_once(
        &self,
        change: &CustodyMove,
        kept: &Kept,
    ) -> StoreResult<OnceCommit> {
        self.change(|world| world.once(kept, &change.write, |world| world.move_custody(change)))
            .await
    }

    async fn place_once(
        &self,
        vm: &Vm,
        custodian: &Custodian,
        stamp: &Stamp,
        kept: &Kept,
    ) -> StoreResult<OnceCommit> {
        self.change(|world| {
            world.once(kept, &stamp.write, |world| {
                world.place(vm, custodian, stamp)
            })
        })
        .await
    }
}
