//! Reads of items: one, many, and ranges.

use std::collections::BTreeMap;

use app::StoreError;
use app::ports::{Page, StoreResult};
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};

use super::DynamoStore;
use crate::error::{copied, store_error};
use crate::expr::{Expression, Finished, between, eq};
use crate::item::Item;
use crate::keys::{Key, PK, SK};
use crate::retry::{Trouble, bounded};

/// Most items of one batch: the store's bound.
const BATCH_MAX: usize = 100;

/// A range of an index or of the table.
#[derive(Debug)]
pub(super) struct Range {
    /// The index; `None` is the table itself, which is read strongly consistent.
    pub(super) index: Option<&'static str>,
    /// Which keys.
    pub(super) keys: Finished,
    /// At most so many items.
    pub(super) limit: usize,
    /// Whether from the first key to the last.
    pub(super) forward: bool,
}

impl DynamoStore {
    /// Reads an item, strongly consistent.
    pub(super) async fn get(&self, key: &Key) -> StoreResult<Option<Item>> {
        let reply = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(key.pk.clone()))
            .key(SK, AttributeValue::S(key.sk.clone()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| store_error(&error))?;
        Ok(reply.item().map(copied))
    }

    /// Reads those of the items that exist, by their keys.
    pub(super) async fn get_all(
        &self,
        keys: Vec<Key>,
        consistent: bool,
    ) -> StoreResult<BTreeMap<Key, Item>> {
        let mut found = BTreeMap::new();
        for keys in keys.chunks(BATCH_MAX) {
            let wanted = self.batch(keys, consistent)?;
            let items = bounded(|| self.get_batch(wanted.clone())).await?;
            for item in items {
                let text = |name: &str| match item.get(name) {
                    Some(AttributeValue::S(text)) => text.clone(),
                    _ => String::new(),
                };
                let key = Key {
                    pk: text(PK),
                    sk: text(SK),
                };
                found.insert(key, item);
            }
        }
        Ok(found)
    }

    fn batch(&self, keys: &[Key], consistent: bool) -> StoreResult<KeysAndAttributes> {
        let mut wanted = KeysAndAttributes::builder().consistent_read(consistent);
        for key in keys {
            let pair = [(PK, &key.pk), (SK, &key.sk)];
            let pair = pair.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.clone())));
            wanted = wanted.keys(pair.into_iter().collect());
        }
        wanted
            .build()
            .map_err(|error| StoreError::Corrupt(format!("a batch could not be built: {error}")))
    }

    /// One batch whole, or another try: what the store left out counts as throttled.
    async fn get_batch(&self, wanted: KeysAndAttributes) -> Result<Vec<Item>, Trouble> {
        let reply = self
            .client
            .batch_get_item()
            .request_items(&self.table, wanted)
            .send()
            .await
            .map_err(|error| store_error(&error))?;
        if reply
            .unprocessed_keys()
            .is_some_and(|left| !left.is_empty())
        {
            return Err(Trouble::Again(StoreError::Throttled));
        }
        let tables = reply.responses().into_iter().flatten();
        Ok(tables
            .flat_map(|(_, items)| items.iter().map(copied))
            .collect())
    }

    /// Reads a range, over as many replies as it takes: one holds no more than 1 MB.
    pub(super) async fn query(&self, range: &Range) -> StoreResult<Vec<Item>> {
        let mut items = Vec::new();
        let mut from = None;
        loop {
            let reply = self
                .query_from(range, range.limit - items.len(), from)
                .await?;
            items.extend(reply.items().iter().map(copied));
            from = reply.last_evaluated_key().map(copied);
            if from.is_none() || items.len() >= range.limit {
                return Ok(items);
            }
        }
    }

    /// At most `limit` items of a partition of the table from `first` to `last`, and one more.
    pub(super) async fn within(
        &self,
        pk: String,
        (first, last): (String, String),
        limit: usize,
    ) -> StoreResult<Vec<Item>> {
        let mut e = Expression::default();
        let (pk_path, sk_path) = (e.path(&[PK]), e.path(&[SK]));
        let (pk, first, last) = (e.text(pk), e.text(first), e.text(last));
        e.require(eq(&pk_path, &pk));
        e.require(between(&sk_path, &first, &last));
        let range = Range {
            index: None,
            keys: e.finish()?,
            limit: limit.saturating_add(1),
            forward: true,
        };
        self.query(&range).await
    }

    async fn query_from(
        &self,
        range: &Range,
        limit: usize,
        from: Option<Item>,
    ) -> StoreResult<QueryOutput> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX).max(1);
        let keys = &range.keys;
        let names = keys.names.iter().map(|(a, n)| (a.clone(), n.clone()));
        let values = keys.values.iter().map(|(a, v)| (a.clone(), v.clone()));
        self.client
            .query()
            .table_name(&self.table)
            .set_index_name(range.index.map(str::to_owned))
            .consistent_read(range.index.is_none())
            .set_key_condition_expression(keys.condition.clone())
            .set_expression_attribute_names(Some(names.collect()))
            .set_expression_attribute_values(Some(values.collect()))
            .set_exclusive_start_key(from.map(|from| from.into_iter().collect()))
            .limit(limit)
            .scan_index_forward(range.forward)
            .send()
            .await
            .map_err(|error| store_error(&error))
    }
}

/// A page out of one item more than it may have, if there are that many.
pub(super) fn page<T, K>(mut items: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Page<T, K> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(key);
    Page { items, next }
}
