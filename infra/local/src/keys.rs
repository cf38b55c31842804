//! The API keys of the machine: one for each part that somebody plays.

use std::collections::BTreeMap;
use std::path::Path;

use app::auth::{ApiKey, Permission, SecretKey};
use app::grant::{Grant, Keeper, Role};
use app::ports::{Clock, Commit, ListKeys, PutKey, Random, RevokeKey};
use domain::limits::PAGE_ITEMS_MAX;
use domain::{KeyId, OrgId};

use crate::data::Data;
use crate::failure::{Failure, run, start};
use crate::output::Output;

/// The file with the keys, so that they stay the same over a restart.
const FILE: &str = "keys.json";

/// Somebody with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Runs the platform: may do everything.
    Operator,
    /// Owns the node.
    Owner,
    /// Manages the reservation: releases and reclaims.
    Manager,
    /// Is in the reservation's audience: places VMs on it.
    Audience,
    /// Has no part in the reservation: buys at spot.
    Stranger,
    /// The node's own agent, which starts and stops the processes of VMs.
    Agent,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] = [
        Part::Operator,
        Part::Owner,
        Part::Manager,
        Part::Audience,
        Part::Stranger,
        Part::Agent,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Operator => "operator",
            Part::Owner => "owner",
            Part::Manager => "manager",
            Part::Audience => "audience",
            Part::Stranger => "stranger",
            Part::Agent => "agent",
        }
    }

    /// The org its key belongs to.
    #[must_use]
    pub fn org(self) -> &'static str {
        match self {
            Part::Operator => "relet",
            Part::Owner | Part::Agent => "acme-datacenter",
            Part::Manager => "neocloud",
            Part::Audience => "tenant-labs",
            Part::Stranger => "spot-buyer",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == text)
    }

    fn grant(self) -> Grant {
        match self {
            Part::Operator | Part::Owner => Grant::Role(Role::Owner),
            Part::Manager => Grant::Role(Role::Admin),
            Part::Audience | Part::Stranger => Grant::Role(Role::Member),
            Part::Agent => Grant::Permissions([Permission::NodeAgent].into()),
        }
    }

    /// What the id of each of its keys begins with: no id that the API gives out does.
    fn id_prefix(self) -> String {
        format!("local-{}-", self.name())
    }

    /// The id of its key with this secret: the same again after a start that was cut off.
    fn id(self, secret: &SecretKey) -> Result<KeyId, Failure> {
        let digest = secret.digest();
        let digits = digest.as_str().get(..12).unwrap_or_default();
        let id = format!("{}{digits}", self.id_prefix()).parse();
        id.map_err(|error| start("the local keys", error))
    }

    fn org_id(self) -> Result<OrgId, Failure> {
        let org = self.org().parse();
        org.map_err(|error| start("the local keys", error))
    }

    fn key(self, secret: &SecretKey, clock: &impl Clock) -> Result<ApiKey, Failure> {
        Ok(ApiKey {
            id: self.id(secret)?,
            org: self.org_id()?,
            name: format!("the {} of this machine", self.name()),
            prefix: secret.prefix().to_owned(),
            grant: self.grant(),
            operator: self == Part::Operator,
            created_at: clock.now(),
            expires_at: None,
            revoked_at: None,
        })
    }
}

/// The keys by part.
#[derive(Clone)]
pub struct Keys(BTreeMap<Part, SecretKey>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(…)")
    }
}

impl Keys {
    /// Reads the keys that were made earlier and makes those that are missing or were revoked.
    ///
    /// When it returns, the store has all of them, and every other key that was ever made here for
    /// a part is revoked: whoever takes the file away and starts again has put the old keys out of
    /// use.
    ///
    /// # Errors
    /// [`Failure::Start`] if the file cannot be read or written, or the store refuses.
    pub async fn set_up(
        data: &Data,
        store: &(impl PutKey + ListKeys + RevokeKey),
        clock: &impl Clock,
        fresh: &impl Random,
    ) -> Result<Self, Failure> {
        let kept = read(data)?;
        let mut keys = BTreeMap::new();
        let mut known = BTreeMap::new();
        for part in Part::ALL {
            let made = made_here(store, part).await?;
            let secret = match kept.get(part.name()) {
                Some(text) => SecretKey::parse(text)
                    .ok_or_else(|| unusable(&format!("{} is no key", part.name())))?,
                None => secret(fresh)?,
            };
            let id = part.id(&secret)?;
            let revoked = |key: &ApiKey| key.id == id && key.revoked_at.is_some();
            let secret = match made.iter().any(revoked) {
                true => self::secret(fresh)?,
                false => secret,
            };
            keys.insert(part, secret);
            known.insert(part, made);
        }
        let keys = Self(keys);
        // First the file, then the store: what a start that was cut off has made, the next finds.
        if keys.revealed() != kept {
            let text = serde_json::to_vec_pretty(&keys.revealed());
            let text = text.map_err(|error| unusable(&error))?;
            data.write(FILE, &text).map_err(|error| unusable(&error))?;
        }
        for (part, made) in known {
            keys.store(part, &made, store, clock).await?;
        }
        Ok(keys)
    }

    /// Puts the key of a part into the store and revokes those that were made for it before.
    async fn store(
        &self,
        part: Part,
        made: &[ApiKey],
        store: &(impl PutKey + RevokeKey),
        clock: &impl Clock,
    ) -> Result<(), Failure> {
        let Some(secret) = self.0.get(&part) else {
            return Ok(());
        };
        let failed = |error: &dyn std::fmt::Display| start("cannot store the keys", error);
        let key = part.key(secret, clock)?;
        let put = store.put_key(&secret.digest(), &key).await;
        if put.map_err(|error| failed(&error))? == Commit::Lost {
            let text = format!("another key has the secret of the {}", part.name());
            return Err(failed(&text));
        }
        let others = made.iter().filter(|other| other.id != key.id);
        for old in others.filter(|other| other.revoked_at.is_none()) {
            let now = clock.now();
            let revoked = store.revoke_key(&key.org, &old.id, Keeper::Operator, now);
            revoked.await.map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// The key of a part.
    #[must_use]
    pub fn of(&self, part: Part) -> &str {
        self.0.get(&part).map_or("", SecretKey::reveal)
    }

    /// The keys by the names of their parts.
    #[must_use]
    pub fn revealed(&self) -> BTreeMap<String, String> {
        let each = self.0.iter();
        each.map(|(part, secret)| (part.name().to_owned(), secret.reveal().to_owned()))
            .collect()
    }
}

/// Prints the key of a part, alone on its line.
///
/// # Errors
/// [`Failure::Start`] if there is none in the folder, [`Failure::Run`] if it cannot be printed.
pub fn print(folder: &Path, part: Part, output: &mut Output) -> Result<(), Failure> {
    let key = kept_in(folder, part, "start `relet` there first")?;
    let printed = output.needed(key);
    printed.map_err(|error| run("cannot print the key", error))
}

/// The key of a part, of the platform that keeps its data in this folder.
///
/// # Errors
/// [`Failure::Start`] if there is no such file, or it does not have the part; `instead` says what
/// the caller can do.
pub(crate) fn kept_in(folder: &Path, part: Part, instead: &str) -> Result<String, Failure> {
    let file = folder.join(FILE);
    let missing = |why: String| {
        let why = format!("{why}; {instead}, or name the folder with --data");
        start(&format!("no key: {}", file.display()), why)
    };
    let bytes = std::fs::read(&file).map_err(|error| missing(error.to_string()))?;
    let keys: BTreeMap<String, String> =
        serde_json::from_slice(&bytes).map_err(|error| missing(error.to_string()))?;
    let key = keys.get(part.name()).cloned();
    key.ok_or_else(|| missing(format!("it has no {}", part.name())))
}

/// The keys that were made earlier, by the names of their parts.
fn read(data: &Data) -> Result<BTreeMap<String, String>, Failure> {
    match &data.read(FILE).map_err(|error| unusable(&error))? {
        Some(bytes) => serde_json::from_slice(bytes).map_err(|error| unusable(&error)),
        None => Ok(BTreeMap::new()),
    }
}

fn unusable(error: &dyn std::fmt::Display) -> Failure {
    start(&format!("cannot use {FILE}"), error)
}

fn secret(fresh: &impl Random) -> Result<SecretKey, Failure> {
    let random = fresh.random();
    let random = random.map_err(|error| start("cannot make a key", error))?;
    Ok(SecretKey::from_random(&random))
}

/// The keys in the store that were ever made here for a part.
async fn made_here(store: &impl ListKeys, part: Part) -> Result<Vec<ApiKey>, Failure> {
    let (org, prefix) = (part.org_id()?, part.id_prefix());
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_keys(&org, after.as_ref(), PAGE_ITEMS_MAX).await;
        let page = page.map_err(|error| start("cannot read the keys", error))?;
        let here = |key: &ApiKey| key.id.as_str().starts_with(&prefix);
        found.extend(page.items.into_iter().filter(here));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::auth::authenticate;
    use domain::Timestamp;
    use testkit::{MemoryStore, SeededIds, TestClock};

    async fn set_up(data: &Data, store: &MemoryStore, fresh: &SeededIds) -> Keys {
        let clock = TestClock::default();
        Keys::set_up(data, store, &clock, fresh).await.unwrap()
    }

    /// Whether a text is the key of somebody at this instant.
    async fn works(store: &MemoryStore, key: &str, now: Timestamp) -> bool {
        let header = format!("Bearer {key}");
        authenticate(store, Some(&header), now).await.is_ok()
    }

    async fn all_work(store: &MemoryStore, keys: &Keys) -> Vec<bool> {
        let mut out = Vec::new();
        for part in Part::ALL {
            out.push(works(store, keys.of(part), testkit::fixtures::now()).await);
        }
        out
    }

    #[tokio::test]
    async fn keys_stay_the_same_over_a_restart_and_change_nothing() {
        let (data, store, fresh) = (Data::memory(), MemoryStore::default(), SeededIds::new(1));
        let first = set_up(&data, &store, &fresh).await;
        assert_eq!(all_work(&store, &first).await, [true; 6]);
        let world = store.world();
        let second = set_up(&data, &store, &fresh).await;
        assert_eq!(first.revealed(), second.revealed());
        assert!(store.world() == world);
    }

    #[tokio::test]
    async fn without_the_file_there_are_new_keys_and_the_old_ones_are_revoked() {
        let (data, store, fresh) = (Data::memory(), MemoryStore::default(), SeededIds::new(1));
        let first = set_up(&data, &store, &fresh).await;
        data.remove(FILE).unwrap();
        let second = set_up(&data, &store, &fresh).await;
        assert_eq!(all_work(&store, &first).await, [false; 6]);
        assert_eq!(all_work(&store, &second).await, [true; 6]);
        assert_eq!(
            store.world().keys.len(),
            12,
            "the old ones are still listed"
        );
    }

    #[tokio::test]
    async fn a_key_that_was_revoked_is_made_anew() {
        let (data, store, fresh) = (Data::memory(), MemoryStore::default(), SeededIds::new(1));
        let first = set_up(&data, &store, &fresh).await;
        let part = Part::Agent;
        let secret = SecretKey::parse(first.of(part)).unwrap();
        let (org, id) = (part.org_id().unwrap(), part.id(&secret).unwrap());
        let now = testkit::fixtures::now();
        let revoked = store.revoke_key(&org, &id, Keeper::Operator, now).await;
        assert!(revoked.is_ok());
        let second = set_up(&data, &store, &fresh).await;
        for part in Part::ALL {
            let same = first.of(part) == second.of(part);
            assert_eq!(same, part != Part::Agent, "{part:?}");
        }
        assert_eq!(all_work(&store, &second).await, [true; 6]);
    }

    #[tokio::test]
    async fn whatever_call_of_the_store_fails_the_next_start_mends_it() {
        for place in 0..24 {
            let (data, store, fresh) = (Data::memory(), MemoryStore::default(), SeededIds::new(1));
            let first = set_up(&data, &store, &fresh).await;
            data.remove(FILE).unwrap();
            let broken = app::StoreError::Unavailable("cut off".to_owned());
            let mut faults = vec![testkit::Fault::Pass; place];
            faults.push(testkit::Fault::After(broken));
            store.inject(&faults);
            let clock = TestClock::default();
            let failed = Keys::set_up(&data, &store, &clock, &fresh).await;
            assert_eq!(failed.is_err(), place < 18, "{place}");
            store.inject(&[]);
            let last = set_up(&data, &store, &fresh).await;
            assert_eq!(all_work(&store, &first).await, [false; 6], "{place}");
            assert_eq!(all_work(&store, &last).await, [true; 6], "{place}");
            let world = store.world();
            let alive = world.keys.values().filter(|key| key.revoked_at.is_none());
            assert_eq!(alive.count(), 6, "{place}: and no more than those");
        }
    }

    #[test]
    fn what_holds_keys_does_not_show_them() {
        let secret = SecretKey::from_random(&[7; 32]);
        let keys = Keys(BTreeMap::from([(Part::Owner, secret.clone())]));
        assert!(!format!("{keys:?}").contains(&secret.reveal()[4..]));
    }
}
