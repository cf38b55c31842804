//! Nodes.

use app::StoreError;
use app::ports::{LoadNode, PutNode, StoreResult, Write};
use domain::{Node, NodeId, WriteId};

use super::DynamoStore;
use super::write::{Part, Transacted};
use crate::expr::{Expression, absent};
use crate::item::link;
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
        let links = [
            Key::node_link(None, &node.id),
            Key::node_link(Some(&node.owner), &node.id),
        ];
        let mut parts = vec![Part::Put(encode(node)?, if_absent()?)];
        for key in links {
            parts.push(Part::Put(link::encode(&key), always()?));
        }
        // The link to its model is most often there, and would be in the way of other
        // registrations of the same model.
        let model = Key::model(&node.gpu_model);
        if self.get(&model).await?.is_none() {
            parts.push(Part::Put(link::encode(&model), always()?));
        }
        match self.transact(write, parts).await? {
            Transacted::Done => Ok(Write::Done(())),
            Transacted::Refused(items) => {
                let there = items.into_iter().next().flatten();
                let there = decode(&there.ok_or(StoreError::Conflict)?)?;
                match there.recent.landed(write) {
                    Some(_) => Ok(Write::Done(())),
                    None => Ok(Write::Refused(there)),
                }
            }
        }
    }
}

/// No condition.
pub(super) fn always() -> StoreResult<crate::expr::Finished> {
    Expression::default().finish()
}

/// The condition that there is no such item.
pub(super) fn if_absent() -> StoreResult<crate::expr::Finished> {
    let mut e = Expression::default();
    let pk = e.path(&[PK]);
    e.require(absent(&pk));
    e.finish()
}
