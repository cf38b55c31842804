//! Writes of items: one under a condition, and several in one transaction.

use std::future::Future;

use app::StoreError;
use app::ports::StoreResult;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use domain::WriteId;

use super::DynamoStore;
use crate::error::{copied, refused_parts, refused_put, refused_update, trouble};
use crate::expr::Finished;
use crate::item::Item;
use crate::keys::{Key, PK, SK};
use crate::retry::{bounded, fresh};

/// Most parts of one transaction: the store's bound.
pub(super) const PARTS_MAX: usize = 100;

/// What a conditional write of one item came to.
#[derive(Debug)]
pub(super) enum Written {
    /// The condition held; this is the item after an update, nothing after a put.
    Done(Item),
    /// It did not hold; this is the item as it stood, if there is one.
    Refused(Option<Item>),
}

/// What a transaction came to.
#[derive(Debug)]
pub(super) enum Transacted {
    /// All conditions held.
    Done,
    /// One did not; these are the items of those that did not, where there are any.
    Refused(Vec<Option<Item>>),
}

/// One part of a transaction.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Writes a whole item.
    Put(Item, Finished),
    /// Updates an item.
    Update(Key, Finished),
}

impl DynamoStore {
    /// Updates an item if the condition holds.
    pub(super) async fn update(&self, key: &Key, expression: &Finished) -> StoreResult<Written> {
        bounded(|| async {
            let request = self
                .client
                .update_item()
                .table_name(&self.table)
                .key(PK, AttributeValue::S(key.pk.clone()))
                .key(SK, AttributeValue::S(key.sk.clone()))
                .set_condition_expression(expression.condition.clone())
                .set_update_expression(expression.update.clone())
                .set_expression_attribute_names(names(expression))
                .set_expression_attribute_values(values(expression))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            match request.send().await {
                Ok(reply) => {
                    let item = reply.attributes().map(copied);
                    Ok(Written::Done(item.unwrap_or_default()))
                }
                Err(error) => match refused_update(&error) {
                    Some(item) => Ok(Written::Refused(item)),
                    None => Err(trouble(&error)),
                },
            }
        })
        .await
    }

    /// Writes an item, if the condition holds where there is one.
    pub(super) async fn put(
        &self,
        item: &Item,
        condition: Option<&Finished>,
    ) -> StoreResult<Written> {
        bounded(|| async {
            let attributes = item.iter().map(|(name, v)| (name.clone(), v.clone()));
            let request = self
                .client
                .put_item()
                .table_name(&self.table)
                .set_item(Some(attributes.collect()))
                .set_condition_expression(condition.and_then(|c| c.condition.clone()))
                .set_expression_attribute_names(condition.and_then(names))
                .set_expression_attribute_values(condition.and_then(values))
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            match request.send().await {
                Ok(_) => Ok(Written::Done(Item::new())),
                Err(error) => match refused_put(&error) {
                    Some(item) => Ok(Written::Refused(item)),
                    None => Err(trouble(&error)),
                },
            }
        })
        .await
    }

    /// Writes all parts or none.
    ///
    /// The store knows a repeated request by its token for some minutes, so that a reply lost
    /// between the SDK's tries does no harm; past that time the conditions must tell.
    pub(super) async fn transact(
        &self,
        write: &WriteId,
        parts: Vec<Part>,
    ) -> StoreResult<Transacted> {
        if parts.len() > PARTS_MAX {
            let text = format!(
                "a transaction of {} parts is over the store's bound",
                parts.len()
            );
            return Err(StoreError::Corrupt(text));
        }
        let parts: Result<Vec<_>, BuildError> =
            parts.into_iter().map(|part| self.built(part)).collect();
        let parts = parts.map_err(|error| {
            StoreError::Corrupt(format!("a transaction could not be built: {error}"))
        })?;
        let token = format!("{}-{:016x}", write.as_str(), fresh());
        bounded(|| self.transact_once(&token, &parts)).await
    }

    fn transact_once(
        &self,
        token: &str,
        parts: &[TransactWriteItem],
    ) -> impl Future<Output = Result<Transacted, crate::retry::Trouble>> + Send {
        let request = self
            .client
            .transact_write_items()
            .client_request_token(token)
            .set_transact_items(Some(parts.to_vec()));
        async move {
            match request.send().await {
                Ok(_) => Ok(Transacted::Done),
                Err(error) => refused_parts(&error).map(Transacted::Refused),
            }
        }
    }

    fn built(&self, part: Part) -> Result<TransactWriteItem, BuildError> {
        let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
        let item = TransactWriteItem::builder();
        let item = match part {
            Part::Put(attributes, condition) => {
                let put = Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(attributes.into_iter().collect()))
                    .set_condition_expression(condition.condition.clone())
                    .set_expression_attribute_names(names(&condition))
                    .set_expression_attribute_values(values(&condition))
                    .return_values_on_condition_check_failure(all_old)
                    .build()?;
                item.put(put)
            }
            Part::Update(key, expression) => {
                let update = Update::builder()
                    .table_name(&self.table)
                    .key(PK, AttributeValue::S(key.pk))
                    .key(SK, AttributeValue::S(key.sk))
                    .set_condition_expression(expression.condition.clone())
                    .set_update_expression(expression.update.clone())
                    .set_expression_attribute_names(names(&expression))
                    .set_expression_attribute_values(values(&expression))
                    .return_values_on_condition_check_failure(all_old)
                    .build()?;
                item.update(update)
            }
        };
        Ok(item.build())
    }
}

/// Aliases of names as the SDK takes them: none at all rather than an empty map.
fn names<M: FromIterator<(String, String)>>(expression: &Finished) -> Option<M> {
    let names = expression.names.iter();
    (!expression.names.is_empty()).then(|| {
        names
            .map(|(alias, name)| (alias.clone(), name.clone()))
            .collect()
    })
}

/// Aliases of values as the SDK takes them: none at all rather than an empty map.
fn values<M: FromIterator<(String, AttributeValue)>>(expression: &Finished) -> Option<M> {
    let values = expression.values.iter();
    (!expression.values.is_empty()).then(|| {
        values
            .map(|(alias, value)| (alias.clone(), value.clone()))
            .collect()
    })
}
