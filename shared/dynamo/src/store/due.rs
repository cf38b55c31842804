//! What is due: found by the index, set by version.

use app::ports::{Commit, Due, FindDue, LookAgain, StoreResult, Subject};
use domain::{Timestamp, Version};

use super::DynamoStore;
use super::read::Range;
use super::rules;
use super::write::Written;
use crate::expr::{Expression, Finished, at_most, eq};
use crate::item::{Item, Reader, node, reservation};
use crate::keys::{self, DUE_AT, DUE_INDEX, DUE_PK, DUE_SHARDS, Key, PK, SK, due_pk, due_shard_pk};

impl FindDue for DynamoStore {
    /// One query for each shard of the index of keys, whatever else the table holds.
    async fn find_due(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<Due>> {
        let mut found = Vec::new();
        for shard in 0..DUE_SHARDS {
            let mut e = Expression::default();
            let (partition, at) = (e.path(&[DUE_PK]), e.path(&[DUE_AT]));
            let (own, now) = (e.text(due_shard_pk(shard)), e.text(now.to_string()));
            e.require(eq(&partition, &own));
            e.require(at_most(&at, &now));
            let range = Range {
                index: Some(DUE_INDEX),
                keys: e.finish()?,
                limit,
                forward: true,
            };
            for entry in self.query(&range).await? {
                // One that nobody can read must not hide the others.
                match due(&entry) {
                    Ok(due) => found.push(due),
                    Err(cause) => tracing::error!(%cause, "an index entry is unreadable"),
                }
            }
        }
        found.sort();
        found.truncate(limit);
        Ok(found)
    }
}

/// What an entry of the index points to.
fn due(entry: &Item) -> StoreResult<Due> {
    let reader = Reader::new("an entry of the index of what is due".to_owned(), entry);
    let subject = match keys::Subject::parse(&reader.text(PK)?, &reader.text(SK)?) {
        Some(keys::Subject::Node(node)) => Subject::Node(node),
        Some(keys::Subject::Reservation(node, id)) => Subject::Reservation(node, id),
        _ => return Err(reader.corrupt(PK, "a node's or a reservation's")),
    };
    Ok(Due {
        at: reader.time(DUE_AT)?,
        subject,
    })
}

impl LookAgain for DynamoStore {
    async fn look_again(
        &self,
        subject: &Subject,
        seen: Version,
        at: Option<Timestamp>,
    ) -> StoreResult<Commit> {
        let (key, expression) = look_again(subject, seen, at)?;
        match self.update(&key, &expression).await? {
            Written::Done(_) => Ok(Commit::Done),
            Written::Refused(_) => Ok(Commit::Lost),
        }
    }
}

fn look_again(
    subject: &Subject,
    seen: Version,
    at: Option<Timestamp>,
) -> StoreResult<(Key, Finished)> {
    let (key, kind, id) = match subject {
        Subject::Node(id) => (Key::node(id), node::KIND, id.as_str()),
        Subject::Reservation(node, id) => {
            let key = Key::reservation(node, id);
            (key, reservation::KIND, id.as_str())
        }
    };
    let mut e = Expression::default();
    let kind = rules::kind(&mut e, kind);
    let version = rules::at_version(&mut e, seen);
    e.require(kind);
    e.require(version);
    let (partition, due_at) = (e.path(&[DUE_PK]), e.path(&[DUE_AT]));
    match at {
        Some(at) => {
            let (own, at) = (e.text(due_pk(id)), e.text(at.to_string()));
            e.set(&partition, &own);
            e.set(&due_at, &at);
        }
        None => {
            e.remove(&partition);
            e.remove(&due_at);
        }
    }
    Ok((key, e.finish()?))
}
