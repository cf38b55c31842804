//! Release: puts units on the spot market. One conditional write.

use domain::reservation::{self, Boundary, Release, Reservation};
use domain::{NodeId, Refusal, ReservationId, Status, Timestamp, UnitSet, Version};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::ports::{Clock, Ids, ReleaseUnits, Write};
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
        let stamp = context.stamp(clock.now(), request.reason.clone())?;
        let command = Release {
            units: request.units.clone(),
            expected: request.expected,
            stamp,
        };
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

/// Whether a call was refused for no more than that the reservation's term, which has begun, is not
/// written as begun.
pub(crate) fn awaits_start(refusal: Option<&Refusal>, image: &Reservation, now: Timestamp) -> bool {
    let pending = Refusal::ReservationNotActive(Status::Pending);
    refusal == Some(&pending) && image.boundary(now) == Some(Boundary::Start)
}

/// Writes that the term has begun. The version that the caller expects was the one before: the call
/// itself comes next.
pub(crate) async fn begin(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    request: &mut UnitsRequest,
) -> Result<(), Error> {
    let passed = pass(store, clock, ids, &request.node, &request.id).await?;
    if let (Some(expected), Some((_, after))) = (&mut request.expected, passed) {
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
