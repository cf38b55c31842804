//! Release: puts units on the spot market. One conditional write.

use domain::reservation::{self, Release, Reservation};
use domain::{NodeId, Refusal, ReservationId, UnitSet, Version};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::ports::{Clock, ReleaseUnits, Write};

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
    store: &impl ReleaseUnits,
    clock: &impl Clock,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reservation, Error> {
    let stamp = context.stamp(clock.now(), request.reason)?;
    let command = Release {
        units: request.units,
        expected: request.expected,
        stamp,
    };
    match store.release(&request.node, &request.id, &command).await? {
        Write::Done(landed) => Ok(landed.image),
        Write::Absent => Err(Error::not_found()),
        Write::Refused(image) => Err(explain(reservation::release(&image, &command).err(), image)),
    }
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
