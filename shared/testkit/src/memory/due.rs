//! What is due, and when to look again.

use app::ports::{Commit, Due, FindDue, LookAgain, StoreResult, Subject};
use domain::{Node, Reservation, Timestamp, Version};

use super::MemoryStore;

impl FindDue for MemoryStore {
    async fn find_due(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<Due>> {
        self.read(|held| {
            let due = held.due.iter().take_while(|due| due.at <= now);
            due.take(limit).cloned().collect()
        })
        .await
    }
}

impl LookAgain for MemoryStore {
    async fn look_again(
        &self,
        subject: &Subject,
        seen: Version,
        at: Option<Timestamp>,
    ) -> StoreResult<Commit> {
        self.change(|held| {
            let done = match subject {
                Subject::Node(id) => {
                    let found = held.nodes.get(id).filter(|node| node.version == seen);
                    let next = found.cloned().map(|node| Node { due_at: at, ..node });
                    next.map(|next| held.put_node(next))
                }
                Subject::Reservation(node, id) => {
                    let found = held.reservation(node, id).filter(|r| r.version == seen);
                    let next = found.cloned().map(|r| Reservation { due_at: at, ..r });
                    next.map(|next| held.put_reservation(next))
                }
            };
            Ok(done.map_or(Commit::Lost, |()| Commit::Done))
        })
        .await
    }
}
