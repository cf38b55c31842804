//! Cursors of lists: opaque, bound to their list, and refused if anybody changed them.

use app::Error;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of the seal that a cursor starts with.
const SEAL_BYTES: usize = 16;

/// The secret that cursors are sealed with.
#[derive(Clone)]
pub struct CursorKey(Hmac<Sha256>);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey")
    }
}

impl CursorKey {
    /// A key made of this secret.
    ///
    /// # Errors
    /// A secret of no bytes is refused.
    pub fn new(secret: &[u8]) -> Result<Self, EmptySecret> {
        if secret.is_empty() {
            return Err(EmptySecret);
        }
        Hmac::new_from_slice(secret)
            .map(Self)
            .map_err(|_| EmptySecret)
    }

    fn mac(&self, list: &str, key: &str) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&list.len().to_be_bytes());
        mac.update(list.as_bytes());
        mac.update(key.as_bytes());
        mac
    }

    /// The cursor that continues `list` after `key`.
    #[must_use]
    pub fn encode(&self, list: &str, key: &str) -> String {
        let mut bytes = self.mac(list, key).finalize().into_bytes()[..SEAL_BYTES].to_vec();
        bytes.extend_from_slice(key.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The key that a cursor of `list` continues after.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for anything that this list did not hand out.
    pub fn decode(&self, list: &str, cursor: &str) -> Result<String, Error> {
        let bad = || {
            Error::BadRequest("cursor is not one that this list handed out; start without".into())
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad())?;
        let (seal, key) = bytes.split_at_checked(SEAL_BYTES).ok_or_else(bad)?;
        let key = str::from_utf8(key).map_err(|_| bad())?;
        self.mac(list, key)
            .verify_truncated_left(seal)
            .map_err(|_| bad())?;
        Ok(key.to_owned())
    }
}

/// A secret of no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor secret is empty")]
pub struct EmptySecret;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_on_in_its_own_list_and_nowhere_else() {
        let key = CursorKey::new(b"secret").unwrap();
        let cursor = key.encode("vms of a", "vm-1");
        assert_eq!(key.decode("vms of a", &cursor), Ok("vm-1".to_owned()));
        assert!(key.decode("vms of b", &cursor).is_err());
        assert!(
            CursorKey::new(b"other")
                .unwrap()
                .decode("vms of a", &cursor)
                .is_err()
        );
    }

    #[test]
    fn a_cursor_changed_in_any_place_is_refused() {
        let key = CursorKey::new(b"secret").unwrap();
        let cursor = key.encode("list", "after-this");
        for place in 0..cursor.len() {
            let mut forged: Vec<char> = cursor.chars().collect();
            forged[place] = if forged[place] == 'A' { 'B' } else { 'A' };
            let forged: String = forged.into_iter().collect();
            assert!(key.decode("list", &forged).is_err(), "{forged}");
        }
        assert!(key.decode("list", "").is_err());
    }
}
