//! The first request of a process: a cheap read of what is not there, so that name, TLS and
//! credentials are behind it when the first call comes.

use app::ports::StoreResult;

use super::DynamoStore;
use super::read::Range;
use crate::expr::{Expression, eq};
use crate::keys::{Key, PK};

/// What is touched: a function reads where its role lets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// API keys, by `GetItem`: every function that answers HTTP calls reads them.
    Keys,
    /// VMs, by `GetItem`.
    Vms,
    /// Audit trails, by `Query`.
    Trails,
}

impl DynamoStore {
    /// Makes one read of what is not there, and so opens the connection.
    ///
    /// # Errors
    /// [`app::StoreError`] if the table does not answer. The store is no worse for it.
    pub async fn touch(&self, what: Touch) -> StoreResult<()> {
        let nothing = Key::nothing(match what {
            Touch::Keys => "KEY",
            Touch::Vms => "VM",
            Touch::Trails => "AUDIT",
        });
        if what != Touch::Trails {
            return self.get(&nothing).await.map(drop);
        }
        let mut e = Expression::default();
        let pk = e.path(&[PK]);
        let none = e.text(nothing.pk);
        e.require(eq(&pk, &none));
        let range = Range {
            index: None,
            keys: e.finish()?,
            limit: 1,
            forward: true,
        };
        self.query(&range).await.map(drop)
    }
}
