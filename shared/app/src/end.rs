//! End: an operator ends a reservation; its units go back to the pool and workloads keep running.

use domain::reservation::{self, End, Ended, Reservation};
use domain::{NodeId, ReservationId, Version};

use crate::capacity::explain;
use crate::context::Context;
use crate::error::Error;
use crate::idempotency::Keep;
use crate::ports::{Clock, Commit, CustodyMove, MoveCustody, Once};
use crate::race::{RACES_MAX, lost, node_of};
use crate::terms::{TermStore, torn};

/// What an operator asks of a reservation as a whole.
#[derive(Debug, Clone)]
pub struct ChangeRequest {
    /// The node.
    pub node: NodeId,
    /// The reservation.
    pub id: ReservationId,
    /// The version of `If-Match`.
    pub expected: Option<Version>,
    /// Why.
    pub reason: Option<String>,
}

/// Ends a reservation and returns it as it is then. Ending it again changes nothing.
///
/// # Errors
/// The refusals of [`reservation::end`]; the store's failures; [`Error::Contended`] if other
/// writers win every race.
pub async fn end(
    store: &(impl TermStore + Once),
    clock: &impl Clock,
    context: &Context,
    request: &ChangeRequest,
    keep: Option<&Keep<'_, Reservation>>,
) -> Result<Reservation, Error> {
    let ChangeRequest { node, id, .. } = request;
    // To anyone else there is no such reservation, and what an answer costs must not say otherwise.
    if !context.caller().operator {
        return Err(Error::not_found());
    }
    for _ in 0..RACES_MAX {
        let image = store
            .load_reservation(node, id)
            .await?
            .ok_or_else(Error::not_found)?;
        let stamp = context.stamp(clock.now(), request.reason.clone())?;
        // An earlier try of this very call may have landed: then its end is done.
        let expected = if image.recent.landed(&stamp.write).is_some() {
            None
        } else {
            request.expected
        };
        let command = End { expected, stamp };
        let pool = node_of(store, node, id).await?;
        if torn(&image, &pool) {
            continue;
        }
        let after = match reservation::end(&image, &pool, &command) {
            Ok(Ended::Already) => return Ok(image),
            Ok(Ended::Now(after)) => *after,
            Err(refusal) => return Err(explain(Some(refusal), image)),
        };
        let change = CustodyMove::of((&image, &pool), after, command.stamp.write);
        if moved(store, &change, keep).await? {
            return Ok(change.reservation);
        }
    }
    Err(lost(format_args!("ending {id}")))
}

/// Whether the move went through; with the answer to its call, where that is to be kept.
pub(crate) async fn moved(
    store: &(impl MoveCustody + Once),
    change: &CustodyMove,
    keep: Option<&Keep<'_, Reservation>>,
) -> Result<bool, Error> {
    let Some(keep) = keep else {
        return Ok(store.move_custody(change).await? == Commit::Done);
    };
    let kept = keep.kept(&change.reservation, change.reservation.updated_at)?;
    store.move_custody_once(change, &kept).await?.done()
}
