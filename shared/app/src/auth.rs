//! API keys: what one may do, and who stands behind a call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use domain::{Caller, KeyId, OrgId, Timestamp};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::grant::{Grant, Role};
use crate::ports::{Clock, LoadKey, StoreResult};

/// Something a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Make, release, reclaim and end reservations.
    ReservationCapacity,
    /// Read the org's VMs.
    VmsRead,
    /// Place and stop the org's VMs.
    VmsWrite,
    /// Speak for the agent of the org's nodes.
    NodeAgent,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Permission; 4] = [
        Permission::ReservationCapacity,
        Permission::VmsRead,
        Permission::VmsWrite,
        Permission::NodeAgent,
    ];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Permission::ReservationCapacity => "reservation.capacity",
            Permission::VmsRead => "vms:read",
            Permission::VmsWrite => "vms:write",
            Permission::NodeAgent => "node.agent",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.as_str() == text)
    }
}

/// An API key as stored: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public id.
    pub id: KeyId,
    /// The org it belongs to.
    pub org: OrgId,
    /// What it is called.
    pub name: String,
    /// The first characters of its secret, by which its holder knows it again.
    pub prefix: String,
    /// What it may do.
    pub grant: Grant,
    /// Whether it belongs to an operator of the platform.
    pub operator: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; `None` never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// Who stands behind a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The holder of the key.
    pub caller: Caller,
    /// What the key may do.
    pub permissions: BTreeSet<Permission>,
    /// The role that says so, unless it has its permissions one by one.
    pub role: Option<Role>,
    /// From when on the key is refused; `None` never.
    pub expires_at: Option<Timestamp>,
}

impl Principal {
    /// Whether the key may do this.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Checks that the path's org is the caller's own, unless an operator calls.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for another org.
    pub fn of_org(&self, org: &OrgId) -> Result<(), Error> {
        if self.caller.operator || self.caller.org == *org {
            return Ok(());
        }
        Err(Error::Forbidden(
            "this key belongs to another org than the path names",
        ))
    }
}

/// SHA-256 of a key's secret, in lower-case hexadecimal: all that is stored of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyDigest(String);

impl KeyDigest {
    /// Takes the digits; `None` if they are not those of a digest.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 64 && text.bytes().all(digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The secret of an API key. Its `Debug` shows no more than what kind of key it is.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(String);

impl SecretKey {
    /// Characters after `or_`: 32 random ones and 6 of checksum.
    const BODY_CHARS: usize = 38;
    const CHECKSUM_CHARS: usize = 6;
    /// Characters that may be shown: `or_` and the first 6. The 26 after them cannot be guessed.
    const PREFIX_CHARS: usize = 9;
    /// Most characters of a legacy key, prefix included.
    const LEGACY_CHARS_MAX: usize = 128;

    /// Makes a key out of 32 random bytes: `or_`, 32 characters of base 62, 6 of checksum.
    ///
    /// Every character is as likely as any other. The bytes are stretched, since some of them are
    /// passed over: 256 is no multiple of 62.
    #[must_use]
    pub fn from_random(random: &[u8; 32]) -> Self {
        let random_chars = Self::BODY_CHARS - Self::CHECKSUM_CHARS;
        let body: String = stretched(random)
            .filter_map(letter)
            .take(random_chars)
            .collect();
        let sum = checksum(&body);
        Self(format!("or_{body}{sum}"))
    }

    /// Takes the value of an `Authorization` header.
    ///
    /// Keys of today carry a checksum, so that a typing error is refused before any read. Keys of
    /// the older form, `vl_…`, have none.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] if it is not a bearer token in the form of a key.
    pub fn from_header(value: Option<&str>) -> Result<Self, Error> {
        let (scheme, token) = value
            .and_then(|v| v.split_once(' '))
            .ok_or(Error::Unauthorized)?;
        let token = token.trim_start_matches(' ');
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Error::Unauthorized);
        }
        Self::parse(token).ok_or(Error::Unauthorized)
    }

    /// Takes the text of a key; `None` if it does not have the form of one.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
        let sound = match (token.strip_prefix("or_"), token.strip_prefix("vl_")) {
            (Some(body), _) if word(body) && body.len() == Self::BODY_CHARS => {
                let (random, sum) = body.split_at(Self::BODY_CHARS - Self::CHECKSUM_CHARS);
                checksum(random) == sum
            }
            (_, Some(body)) => {
                let url_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                (16..=Self::LEGACY_CHARS_MAX).contains(&token.len()) && body.bytes().all(url_safe)
            }
            _ => false,
        };
        sound.then(|| Self(token.to_owned()))
    }

    /// The digest it is stored under.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(hex(&Sha256::digest(self.0.as_bytes())))
    }

    /// The part of it that may be shown again and again.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.0.get(..Self::PREFIX_CHARS).unwrap_or_default()
    }

    /// The secret itself, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}…", &self.0[..3])
    }
}

/// Bytes without end that the 32 determine, and that look as random.
fn stretched(random: &[u8; 32]) -> impl Iterator<Item = u8> {
    let block = move |count: u64| {
        let hash = Sha256::new().chain_update(random);
        hash.chain_update(count.to_be_bytes()).finalize()
    };
    (0..).flat_map(block)
}

/// The character that a random byte stands for; `None` for the last bytes, which would make some
/// characters likelier than others.
fn letter(byte: u8) -> Option<char> {
    const WHOLE_ROUNDS: u8 = 62 * 4;
    (byte < WHOLE_ROUNDS).then(|| char::from(BASE62[usize::from(byte % 62)]))
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}

/// Six characters of base 62 out of the first four bytes of SHA-256.
fn checksum(body: &str) -> String {
    let digest = Sha256::digest(body.as_bytes());
    let mut number = digest
        .iter()
        .take(4)
        .fold(0_u32, |n, byte| (n << 8) | u32::from(*byte));
    let mut out = [b'0'; SecretKey::CHECKSUM_CHARS];
    for place in out.iter_mut().rev() {
        *place = BASE62[(number % 62) as usize];
        number /= 62;
    }
    out.iter().map(|byte| char::from(*byte)).collect()
}

/// Finds out who calls.
///
/// # Errors
/// [`Error::Unauthorized`] for a key that is missing, malformed, unknown, expired or revoked: one
/// answer for all of them.
pub async fn authenticate(
    keys: &impl LoadKey,
    header: Option<&str>,
    now: Timestamp,
) -> Result<Principal, Error> {
    let digest = SecretKey::from_header(header)?.digest();
    let key = keys.load_key(&digest).await?.ok_or(Error::Unauthorized)?;
    let expired = key.expires_at.is_some_and(|at| at <= now);
    if expired || key.revoked_at.is_some() {
        return Err(Error::Unauthorized);
    }
    let caller = Caller {
        org: key.org,
        key: key.id,
        operator: key.operator,
    };
    Ok(Principal {
        caller,
        permissions: key.grant.permissions(),
        role: key.grant.role(),
        expires_at: key.expires_at,
    })
}

/// Keeps keys for a few seconds, so that a busy caller costs no read. A revoked key may go on that
/// long where the cache has it.
#[derive(Debug)]
pub struct KeyCache<S, C> {
    store: S,
    clock: C,
    ttl_ms: i64,
    kept: Mutex<BTreeMap<KeyDigest, (Timestamp, ApiKey)>>,
}

impl<S, C> KeyCache<S, C> {
    /// Longest time that a key may be kept, in milliseconds.
    pub const TTL_MS_MAX: i64 = 5_000;
    /// Most keys that are kept.
    const KEYS_MAX: usize = 1_024;

    /// A cache in front of `store` that keeps keys for `ttl_ms`, at most [`Self::TTL_MS_MAX`]; 0
    /// keeps none.
    pub fn new(store: S, clock: C, ttl_ms: i64) -> Self {
        let ttl_ms = ttl_ms.clamp(0, Self::TTL_MS_MAX);
        Self {
            store,
            clock,
            ttl_ms,
            kept: Mutex::new(BTreeMap::new()),
        }
    }
}

impl<S: LoadKey, C: Clock> LoadKey for KeyCache<S, C> {
    async fn load_key(&self, digest: &KeyDigest) -> StoreResult<Option<ApiKey>> {
        let now = self.clock.now();
        let hit = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(digest)
                .filter(|(until, _)| now < *until)
                .map(|(_, key)| key.clone())
        };
        if hit.is_some() {
            return Ok(hit);
        }
        let key = self.store.load_key(digest).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(digest);
        if let Some(key) = key.as_ref().filter(|_| self.ttl_ms > 0) {
            if kept.len() >= Self::KEYS_MAX {
                kept.clear();
            }
            kept.insert(digest.clone(), (now.plus_ms(self.ttl_ms), key.clone()));
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_key_is_taken_and_a_mistyped_one_is_not() {
        let key = SecretKey::from_random(&[7; 32]);
        assert_eq!(key.reveal().len(), 41);
        assert_eq!(SecretKey::parse(key.reveal()).as_ref(), Some(&key));
        let mut typed: Vec<char> = key.reveal().chars().collect();
        typed[10] = if typed[10] == 'x' { 'y' } else { 'x' };
        assert_eq!(SecretKey::parse(&typed.iter().collect::<String>()), None);
        assert_eq!(format!("{key:?}"), "or_…");
    }

    #[test]
    fn every_character_of_a_secret_is_as_likely_as_any_other() {
        let mut count: BTreeMap<char, usize> = BTreeMap::new();
        for letter in (0..=u8::MAX).filter_map(letter) {
            *count.entry(letter).or_default() += 1;
        }
        assert_eq!(count.len(), 62);
        assert!(count.values().all(|count| *count == 4), "{count:?}");
    }

    #[test]
    fn a_secret_follows_from_its_random_bytes_and_from_each_of_them() {
        let secret = SecretKey::from_random(&[255; 32]);
        assert_eq!(secret, SecretKey::from_random(&[255; 32]));
        assert_eq!(secret.prefix(), &secret.reveal()[..9]);
        for place in 0..32 {
            let mut other = [255; 32];
            other[place] = 254;
            let other = SecretKey::from_random(&other);
            assert_ne!(other.prefix(), secret.prefix(), "{place}");
        }
    }

    #[test]
    fn a_digest_is_read_back_and_nothing_else_is_one() {
        let digest = SecretKey::from_random(&[7; 32]).digest();
        assert_eq!(KeyDigest::parse(digest.as_str()), Some(digest.clone()));
        let upper = digest.as_str().to_uppercase();
        for bad in ["", "ab", &*upper, &digest.as_str()[1..], &"g".repeat(64)] {
            assert_eq!(KeyDigest::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn headers_that_are_no_bearer_key_are_unauthorized() {
        let key = SecretKey::from_random(&[9; 32]);
        let good = format!("bearer {}", key.reveal());
        assert!(SecretKey::from_header(Some(&good)).is_ok());
        assert!(SecretKey::from_header(Some("Bearer vl_legacy-key-0001")).is_ok());
        let basic = format!("Basic {}", key.reveal());
        for bad in [
            None,
            Some(""),
            Some("Bearer"),
            Some("Bearer or_short"),
            Some("Bearer vl_"),
            Some(&*basic),
        ] {
            assert_eq!(
                SecretKey::from_header(bad),
                Err(Error::Unauthorized),
                "{bad:?}"
            );
        }
    }
}
