//! Terms: a boundary that has come is written by whoever meets it first, a call that needs it or
//! the sweep. Each is one transaction under the versions that were read.

use std::collections::BTreeSet;

use domain::reservation::{Boundary, activate, expire};
use domain::{Node, NodeId, Reservation, ReservationId, Status};

use crate::context::system_stamp;
use crate::error::Error;
use crate::ports::{Clock, Commit, CustodyMove, Ids, LoadNode, LoadReservations, MoveCustody};
use crate::race::{RACES_MAX, lost, node_of};

/// The ports that a term's boundaries need.
pub trait TermStore: LoadNode + LoadReservations + MoveCustody {}
impl<T: LoadNode + LoadReservations + MoveCustody> TermStore for T {}

/// What a boundary has made of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It is active and has its units.
    Activated,
    /// It needs review and has its units: it withholds them.
    Withheld,
    /// It is expired and its units are in the pool.
    Expired,
}

/// What one try came to.
enum Attempt {
    Nothing,
    Passed(Passed, Box<Reservation>),
    Lost,
    /// Others have the units in their hands still.
    Held(BTreeSet<ReservationId>),
}

/// Writes the boundary of a reservation's term that has come, if one has. Returns what it made and
/// the reservation as it is then.
///
/// # Errors
/// The store's failures; [`Error::Contended`] if other writers win every race.
pub async fn pass(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    node: &NodeId,
    id: &ReservationId,
) -> Result<Option<(Passed, Reservation)>, Error> {
    // The last one first: terms that are over make room for the one that begins.
    let mut waiting = vec![id.clone()];
    let mut races = RACES_MAX;
    while let Some(next) = waiting.last().filter(|_| races > 0) {
        match attempt(store, clock, ids, node, next).await? {
            Attempt::Lost => races -= 1,
            Attempt::Held(holders) => {
                races -= 1;
                waiting.extend(holders);
            }
            done => {
                waiting.pop();
                if waiting.is_empty() {
                    return Ok(match done {
                        Attempt::Passed(passed, reservation) => Some((passed, *reservation)),
                        _ => None,
                    });
                }
            }
        }
    }
    Err(lost(format_args!("a boundary of the term of {id}")))
}

async fn attempt(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    node: &NodeId,
    id: &ReservationId,
) -> Result<Attempt, Error> {
    let Some(image) = store.load_reservation(node, id).await? else {
        return Ok(Attempt::Nothing);
    };
    let stamp = system_stamp(ids.uuid(), clock.now())?;
    let Some(boundary) = image.boundary(stamp.now) else {
        return Ok(Attempt::Nothing);
    };
    let pool = node_of(store, node, id).await?;
    if torn(&image, &pool) {
        return Ok(Attempt::Lost);
    }
    let next = match boundary {
        Boundary::End => expire(&image, &pool, &stamp),
        Boundary::Start => match activate(&image, &pool, &stamp) {
            Ok(next) => next,
            Err(holders) => return Ok(Attempt::Held(holders)),
        },
    };
    let Some(after) = next else {
        return Ok(Attempt::Nothing);
    };
    let change = CustodyMove::of((&image, &pool), after, stamp.write);
    match store.move_custody(&change).await? {
        Commit::Lost => Ok(Attempt::Lost),
        Commit::Done => {
            let reservation = Box::new(change.reservation);
            Ok(Attempt::Passed(passed(&reservation), reservation))
        }
    }
}

/// Whether a live reservation and its node were read with a move of its units in between: the two
/// do not go together, and nothing may be made of them.
pub(crate) fn torn(image: &Reservation, pool: &Node) -> bool {
    let booked = pool.bookings.get(&image.id);
    Status::LIVE.contains(&image.status) && booked.map(|b| b.holds) != Some(image.holds())
}

fn passed(reservation: &Reservation) -> Passed {
    match reservation.status {
        Status::Active => Passed::Activated,
        Status::Pending | Status::NeedsReview => Passed::Withheld,
        Status::Expired | Status::Cancelled => Passed::Expired,
    }
}

/// Writes all boundaries of a node's reservations that have come, so that what it has free is free
/// and what it has reserved is reserved. Returns whether there were any: then the node has changed.
///
/// # Errors
/// As [`pass`].
pub async fn pass_all(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    node: &Node,
) -> Result<bool, Error> {
    let due = node.boundaries(clock.now());
    for id in &due {
        pass(store, clock, ids, &node.id, id).await?;
    }
    Ok(!due.is_empty())
}
