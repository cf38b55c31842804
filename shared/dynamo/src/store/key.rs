//! API keys.

use app::auth::{ApiKey, KeyDigest};
use app::ports::{LoadKey, PutKey, StoreResult};

use super::DynamoStore;
use crate::item::api_key::{decode, encode};
use crate::keys::Key;

impl LoadKey for DynamoStore {
    async fn load_key(&self, digest: &KeyDigest) -> StoreResult<Option<ApiKey>> {
        let item = self.get(&Key::api_key(digest)).await?;
        item.as_ref().map(decode).transpose()
    }
}

impl PutKey for DynamoStore {
    /// The only write without a condition: it is for setting a platform up, where the last word
    /// holds whatever stood there.
    async fn put_key(&self, digest: &KeyDigest, key: &ApiKey) -> StoreResult<()> {
        self.put(&encode(digest, key), None).await?;
        Ok(())
    }
}
