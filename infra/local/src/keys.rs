//! The API keys of the machine: one for each part that somebody plays.

use std::collections::BTreeMap;

use app::auth::{ApiKey, Permission, SecretKey};
use app::ports::PutKey;

use crate::data::Data;
use crate::failure::{Failure, start};

/// The file with the keys, so that they stay the same over a restart.
pub(crate) const FILE: &str = "keys.json";

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

    fn permissions(self) -> &'static [Permission] {
        const VMS: [Permission; 2] = [Permission::VmsRead, Permission::VmsWrite];
        match self {
            Part::Operator | Part::Owner => &Permission::ALL,
            Part::Manager => &[
                Permission::ReservationCapacity,
                Permission::VmsRead,
                Permission::VmsWrite,
            ],
            Part::Audience | Part::Stranger => &VMS,
            Part::Agent => &[Permission::NodeAgent],
        }
    }

    fn key(self) -> Result<ApiKey, Failure> {
        let bad = |error| start("the local keys", error);
        Ok(ApiKey {
            id: format!("key-{}", self.name()).parse().map_err(bad)?,
            org: self.org().parse().map_err(bad)?,
            permissions: self.permissions().iter().copied().collect(),
            operator: self == Part::Operator,
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
    /// Reads the keys that were made earlier, makes those that are missing, and puts all of them
    /// into the store, where a first start that was cut off may have left some out.
    ///
    /// # Errors
    /// [`Failure::Start`] if the file cannot be read or written, or the store refuses.
    pub async fn set_up(data: &Data, store: &impl PutKey) -> Result<Self, Failure> {
        let keys = Self::read_or_make(data)?;
        for (part, secret) in &keys.0 {
            let stored = store.put_key(&secret.digest(), &part.key()?).await;
            stored.map_err(|error| start("cannot store the keys", error))?;
        }
        Ok(keys)
    }

    fn read_or_make(data: &Data) -> Result<Self, Failure> {
        let bad = |error: &dyn std::fmt::Display| start(&format!("cannot use {FILE}"), error);
        let kept = data.read(FILE).map_err(|error| bad(&error))?;
        let kept: BTreeMap<String, String> = match &kept {
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| bad(&error))?,
            None => BTreeMap::new(),
        };
        let mut keys = BTreeMap::new();
        for part in Part::ALL {
            let secret = match kept.get(part.name()) {
                Some(text) => SecretKey::parse(text)
                    .ok_or_else(|| bad(&format!("{} is no key", part.name())))?,
                None => SecretKey::from_random(&random()?),
            };
            keys.insert(part, secret);
        }
        let keys = Self(keys);
        if keys.revealed() != kept {
            let text = serde_json::to_vec_pretty(&keys.revealed()).map_err(|error| bad(&error))?;
            data.write(FILE, &text).map_err(|error| bad(&error))?;
        }
        Ok(keys)
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

/// Bytes of the system's random source.
///
/// # Errors
/// [`Failure::Start`] if it has none.
pub(crate) fn random() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| start("no random numbers", error))?;
    Ok(bytes)
}
