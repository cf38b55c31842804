//! Nodes.

use app::StoreError;
use app::ports::{LoadNode, PutNode, StoreResult, Write};
use domain::{Node, NodeId, WriteId};

use super::DynamoStore;
use super::write::Written;
use crate::expr::{Expression, absent};
use crate::item::node::{decode, encode};
use crate::keys::{Key, PK};

impl LoadNode for DynamoStore {
    async fn load_node(&self, id: &NodeId) -> StoreResult<Option<Node>> {
        let item = self.get(&Key::node(id)).await?;
        item.as_ref().map(decode).transpose()
    }
}

impl PutNode for DynamoStore {
    async fn put_node(&self, node: &Node, write: &WriteId) -> StoreResult<Write<(), Node>> {
        let condition = if_absent()?;
        match self.put(&encode(node)?, Some(&condition)).await? {
            Written::Done(_) => Ok(Write::Done(())),
            Written::Refused(None) => Err(StoreError::Conflict),
            Written::Refused(Some(item)) => {
                let there = decode(&item)?;
                match there.recent.landed(write) {
                    Some(_) => Ok(Write::Done(())),
                    None => Ok(Write::Refused(there)),
                }
            }
        }
    }
}

/// The condition that there is no such item.
pub(super) fn if_absent() -> StoreResult<crate::expr::Finished> {
    let mut e = Expression::default();
    let pk = e.path(&[PK]);
    e.require(absent(&pk));
    e.finish()
}
