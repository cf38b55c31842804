//! Races: what was decided on an image is written only if the image still stands. Whoever lost to
//! another writer reads again and decides anew, a bounded number of times.

use domain::{Node, NodeId, ReservationId};

use crate::error::{Error, Internal};
use crate::ports::LoadNode;

/// How often a change that lost a race is tried again from fresh state.
pub(crate) const RACES_MAX: usize = 8;

/// The failure of a change that other writers never let through.
pub(crate) fn lost(what: impl std::fmt::Display) -> Error {
    Error::Contended(Internal(format!("{what} lost {RACES_MAX} races")))
}

/// The node that a reservation is on.
///
/// # Errors
/// The store's failures; [`Error::Bug`] if it is not there.
pub(crate) async fn node_of(
    store: &impl LoadNode,
    node: &NodeId,
    id: &ReservationId,
) -> Result<Node, Error> {
    let found = store.load_node(node).await?;
    found.ok_or_else(|| Error::Bug(Internal(format!("reservation {id} has no node {node}"))))
}
