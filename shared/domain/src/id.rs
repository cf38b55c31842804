//! Ids: one type for each kind of thing, so that a node's id cannot stand where a VM's is meant.

use serde::{Deserialize, Serialize};

use crate::limits::ID_CHARS_MAX;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to {ID_CHARS_MAX} characters of A-Z a-z 0-9 . _ : - and this one does not")]
pub struct BadId;

fn check(text: &str) -> Result<(), BadId> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    if text.is_empty() || text.len() > ID_CHARS_MAX || !text.bytes().all(legal) {
        return Err(BadId);
    }
    Ok(())
}

macro_rules! id {
    ($(#[doc = $doc:literal] $name:ident),+ $(,)?) => {$(
        #[doc = $doc]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes a text as this kind of id.
            ///
            /// # Errors
            /// [`BadId`] unless it has 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check(text)?;
                Ok(Self(text.to_owned()))
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::parse(text)
            }
        }
    )+};
}

id! {
    /// A machine with GPUs.
    NodeId,
    /// A reservation of units of one node.
    ReservationId,
    /// The indivisible allocation primitive of a node: one IOMMU group, one or more GPUs.
    UnitId,
    /// A virtual machine.
    VmId,
    /// An organisation: a tenant, a node owner, a buyer.
    OrgId,
    /// An API key, by its public id (never the secret).
    KeyId,
    /// A GPU model, such as `h100-sxm`.
    GpuModelId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_at_its_limits_and_refused_past_them() {
        assert!(UnitId::parse("a").is_ok());
        assert!(UnitId::parse(&"a".repeat(ID_CHARS_MAX)).is_ok());
        assert!(UnitId::parse("A-z.0_9:x").is_ok());
        for bad in [
            "",
            "a b",
            "a#b",
            "ü",
            "a/b",
            "a\n",
            &"a".repeat(ID_CHARS_MAX + 1),
        ] {
            assert_eq!(UnitId::parse(bad), Err(BadId), "{bad:?}");
        }
    }
}
