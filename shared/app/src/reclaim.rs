//! Reclaim: takes released units back. One conditional write; the spot VMs on them are condemned by
//! that write alone.

use domain::Version;
use domain::reservation::{self, Reclaim, Reservation, Victims, victims};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::ports::{Clock, LoadReservations, ReclaimUnits, Write};
use crate::release::{UnitsRequest, explain};

/// A reclaim that was done, or that would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// The reservation after it; on a dry run as it is.
    pub reservation: Reservation,
    /// The VMs it concerns.
    pub victims: Victims,
}

/// Reclaims units: condemns the spot VMs on them and leaves the others running.
///
/// # Errors
/// The refusals of [`reservation::reclaim`]; the store's failures. [`Error::Unavailable`] also
/// where the reply to the write was lost and the list of victims with it: the reclaim itself has
/// landed.
pub async fn reclaim(
    store: &impl ReclaimUnits,
    clock: &impl Clock,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let stamp = context.stamp(clock.now(), request.reason)?;
    let command = Reclaim {
        units: request.units,
        expected: request.expected,
        stamp,
    };
    match store.reclaim(&request.node, &request.id, &command).await? {
        Write::Done(landed) => concerned(landed.image, &command, landed.version),
        Write::Absent => Err(Error::not_found()),
        Write::Refused(image) => Err(explain(reservation::reclaim(&image, &command).err(), image)),
    }
}

/// Says what a reclaim would do now, and changes nothing: one read.
///
/// # Errors
/// As [`reclaim`].
pub async fn dry_run(
    store: &impl LoadReservations,
    clock: &impl Clock,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let image = store.load_reservation(&request.node, &request.id).await?;
    let image = image.ok_or_else(Error::not_found)?;
    let stamp = context.stamp(clock.now(), request.reason)?;
    let command = Reclaim {
        units: request.units,
        expected: request.expected,
        stamp,
    };
    if let Err(refusal) = reservation::reclaim(&image, &command) {
        return Err(explain(Some(refusal), image));
    }
    let version = image.version;
    concerned(image, &command, version)
}

fn concerned(image: Reservation, command: &Reclaim, at: Version) -> Result<Reclaimed, Error> {
    match victims(&image, command.units.as_set(), at) {
        Some(victims) => Ok(Reclaimed {
            reservation: image,
            victims,
        }),
        None => Err(Error::Unavailable(Internal(format!(
            "the reclaim of {} landed as version {at}, but its reply was lost and the units \
             changed hands since",
            image.id
        )))),
    }
}
