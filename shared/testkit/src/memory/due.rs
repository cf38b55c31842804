//! What is due, and when to look again.

use app::ports::{Commit, Due, FindDue, LookAgain, StoreResult, Subject};
use domain::{Timestamp, Version};

use super::MemoryStore;

impl FindDue for MemoryStore {
    async fn find_due(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<Due>> {
        self.read(|world| {
            let nodes = world
                .nodes
                .values()
                .map(|node| (node.due_at, Subject::Node(node.id.clone())));
            let reservations = world.reservations.values().map(|reservation| {
                let (node, id) = (reservation.node.clone(), reservation.id.clone());
                (reservation.due_at, Subject::Reservation(node, id))
            });
            let mut found: Vec<Due> = nodes
                .chain(reservations)
                .filter_map(|(at, subject)| Some(Due { at: at?, subject }))
                .filter(|due| due.at <= now)
                .collect();
            found.sort();
            found.truncate(limit);
            found
        })
    }
}

impl LookAgain for MemoryStore {
    async fn look_again(
        &self,
        subject: &Subject,
        seen: Version,
        at: Option<Timestamp>,
    ) -> StoreResult<Commit> {
        self.change(|world| {
            let place = match subject {
                Subject::Node(id) => {
                    let node = world.nodes.get_mut(id);
                    node.map(|node| (node.version, &mut node.due_at))
                }
                Subject::Reservation(node, id) => {
                    let found = world.reservations.get_mut(&(node.clone(), id.clone()));
                    found.map(|reservation| (reservation.version, &mut reservation.due_at))
                }
            };
            match place.filter(|(version, _)| *version == seen) {
                Some((_, due_at)) => {
                    *due_at = at;
                    Ok(Commit::Done)
                }
                None => Ok(Commit::Lost),
            }
        })
    }
}
