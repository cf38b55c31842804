//! Release: puts units on the spot market. One conditional write.

use domain::reservation::{self, Boundary, Release, Reservation};
use domain::{NodeId, Refusal, ReservationId, Status, Timestamp, UnitSet, Version};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::ports::{Clock, Ids, Once, ReleaseUnits, Replacement, Write};
use crate::race::{RACES_MAX, lost};
use crate::terms::{TermStore, pass};

/// What a caller asks of a release or a reclaim.
#[derive(Debug, Clone)]
pub struct UnitsRequest {
    /// The node.
    pub node: NodeId,
    /// The reservation.
    pub id: ReservationId,
    /// The units.
    pub units: UnitSet,
    /// The version of `If-Match`.
    pub expected: Option<Version>,
    /// Why.
    pub reason: Option<String>,
}

/// Releases units and returns the reservation as it is then.
///
/// # Errors
/// The refusals of [`reservation::release`]; the store's failures.
pub async fn release(
    store: &(impl ReleaseUnits + TermStore),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    mut request: UnitsRequest,
) -> Result<Reservation, Error> {
    let mut begun = false;
    loop {
        let command = command(clock, context, &request)?;
        let image = match store.release(&request.node, &request.id, &command).await? {
            Write::Done(landed) => return Ok(landed.image),
            Write::Absent => return Err(Error::not_found()),
            Write::Refused(image) => image,
        };
        let refusal = reservation::release(&image, &command).err();
        if begun || !awaits_start(refusal.as_ref(), &image, command.stamp.now) {
            return Err(explain(refusal, image));
        }
        begin(store, clock, ids, &mut request).await?;
        begun = true;
    }
}

/// As [`release`], with its answer kept for calls that come again: the decision is made on an
/// image, and the effect and the answer are written together if that image still stands.
///
/// # Errors
/// As [`release`]; [`Error::Answered`] if the call has been answered before; [`Error::Contended`]
/// if other writers win every race.
pub async fn release_once(
    store: &(impl TermStore + Once),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    mut request: UnitsRequest,
    keep: &Keep<'_, Reservation>,
) -> Result<Reservation, Error> {
    let mut begun = false;
    for _ in 0..RACES_MAX {
        let image = store.load_reservation(&request.node, &request.id).await?;
        let image = image.ok_or_else(Error::not_found)?;
        let command = command(clock, context, &request)?;
        let after = match reservation::release(&image, &command) {
            Ok(after) => after,
            Err(refusal) if !begun && awaits_start(Some(&refusal), &image, command.stamp.now) => {
                begin(store, clock, ids, &mut request).await?;
                begun = true;
                continue;
            }
            Err(refusal) => return Err(explain(Some(refusal), image)),
        };
        let kept = keep.kept(&after, command.stamp.now)?;
        let change = Replacement {
            seen: image.version,
            reservation: after,
            write: command.stamp.write,
        };
        if store.replace_once(&change, &kept).await?.done()? {
            return Ok(change.reservation);
        }
    }
    Err(lost(format_args!("a release of {}", request.id)))
}

fn command(
    clock: &impl Clock,
    context: &Context,
    request: &UnitsRequest,
) -> Result<Release, Error> {
    Ok(Release {
        units: request.units.clone(),
        expected: request.expected,
        stamp: context.stamp(clock.now(), request.reason.clone())?,
    })
}

/// Whether a call was refused for no more than that the reservation's term, which has begun, is not
/// written as begun.
pub(crate) fn awaits_start(refusal: Option<&Refusal>, image: &Reservation, now: Timestamp) -> bool {
    let pending = Refusal::ReservationNotActive(Status::Pending);
    refusal == Some(&pending) && image.boundary(now) == Some(Boundary::Start)
}

/// Writes that the term has begun. The version that the caller expects was the one before: the call
/// itself comes next. Where another change came in between, the caller has not seen that.
pub(crate) async fn begin(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    request: &mut UnitsRequest,
) -> Result<(), Error> {
    let passed = pass(store, clock, ids, &request.node, &request.id).await?;
    if let (Some(expected), Some((_, after))) = (&mut request.expected, passed)
        && expected.next() == after.version
    {
        *expected = after.version;
    }
    Ok(())
}

/// Turns the image of a refused write into the refusal it stands for.
pub(crate) fn explain(refusal: Option<Refusal>, image: Reservation) -> Error {
    match refusal {
        Some(refusal @ Refusal::VersionMismatch { .. }) => Error::Refused {
            refusal,
            current: Some(Box::new(image)),
        },
        Some(refusal) => refusal.into(),
        None => Error::Bug(Internal(format!(
            "the store refused a write on reservation {} that the rule allows",
            image.id
        ))),
    }
}
