//! The market: who may have units of a model to sell.

use app::ports::{Custodian, FindMarket, StoreResult};
use aws_sdk_dynamodb::types::AttributeValue;
use domain::{GpuModelId, NodeId, WriteId};

use super::DynamoStore;
use super::read::Range;
use crate::expr::{Expression, eq};
use crate::item::Item;
use crate::keys::{
    MARKET_INDEX, MARKET_PK, MARKET_SHARDS, PK, SK, Subject, market_shard_pk, shard,
};

impl FindMarket for DynamoStore {
    /// Reads shard after shard from one that `spread` picks, in a direction that it picks too,
    /// until there are enough.
    async fn find_market(
        &self,
        model: &GpuModelId,
        spread: &WriteId,
        limit: usize,
    ) -> StoreResult<Vec<(NodeId, Custodian)>> {
        let start = shard(spread.as_str(), 2 * MARKET_SHARDS);
        let mut hints = Vec::new();
        for step in 0..MARKET_SHARDS {
            if hints.len() >= limit {
                break;
            }
            let mut e = Expression::default();
            let path = e.path(&[MARKET_PK]);
            let value = e.text(market_shard_pk(model, (start + step) % MARKET_SHARDS));
            e.require(eq(&path, &value));
            let range = Range {
                index: Some(MARKET_INDEX),
                keys: e.finish()?,
                limit: limit - hints.len(),
                forward: start < MARKET_SHARDS,
            };
            hints.extend(self.query(&range).await?.iter().filter_map(hint));
        }
        Ok(hints)
    }
}

/// What an index entry points to. One that points to nothing is no hint.
fn hint(entry: &Item) -> Option<(NodeId, Custodian)> {
    let (Some(AttributeValue::S(pk)), Some(AttributeValue::S(sk))) = (entry.get(PK), entry.get(SK))
    else {
        return None;
    };
    match Subject::parse(pk, sk)? {
        Subject::Node(node) => Some((node, Custodian::Pool)),
        Subject::Reservation(node, id) => Some((node, Custodian::Reservation(id))),
        Subject::Vm(_)
        | Subject::ApiKey(_)
        | Subject::KeyLink(..)
        | Subject::Kept(..)
        | Subject::Audit(..)
        | Subject::NodeLink(..)
        | Subject::ReservationLink(..)
        | Subject::Model(_) => None,
    }
}
