//! Reclaim: takes released units back. One conditional write; the spot VMs on them are condemned by
//! that write alone.

use domain::reservation::{self, Reclaim, Reservation, Victims, victims};
use domain::{Stamp, UnitSet, Version};

use crate::capacity::{Call, UnitsRequest};
use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::ports::{Clock, Ids, Once, ReclaimUnits, Write};
use crate::terms::TermStore;

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
    store: &(impl ReclaimUnits + TermStore),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let mut call = Call::new((store, clock, ids), context, request);
    loop {
        let command = command(&call.request, call.stamp()?);
        let UnitsRequest { node, id, .. } = &call.request;
        let image = match store.reclaim(node, id, &command).await? {
            Write::Done(landed) => {
                return concerned(landed.image, &command.units, landed.version);
            }
            Write::Absent => return Err(Error::not_found()),
            Write::Refused(image) => image,
        };
        let refusal = reservation::reclaim(&image, &command).err();
        call.refused(refusal, image, command.stamp.now).await?;
    }
}

/// As [`reclaim`], with its answer kept for calls that come again: the decision is made on an
/// image, and the effect and the answer are written together if that image still stands.
///
/// # Errors
/// As [`reclaim`]; [`Error::Answered`] if the call has been answered before; [`Error::Contended`]
/// if other writers win every race.
pub async fn reclaim_once(
    store: &(impl TermStore + Once),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: UnitsRequest,
    keep: &Keep<'_, Reclaimed>,
) -> Result<Reclaimed, Error> {
    let decide = |request: &UnitsRequest, stamp: Stamp, image: &Reservation| {
        reservation::reclaim(image, &command(request, stamp))
    };
    let units = request.units.clone();
    let outcome = |after: Reservation| {
        let version = after.version;
        concerned(after, &units, version)
    };
    let call = Call::new((store, clock, ids), context, request);
    call.once(keep, decide, outcome).await
}

/// Says what a reclaim would do now, and does none of it: one read. Only a term that has begun, and
/// is not written as begun, is written so first.
///
/// # Errors
/// As [`reclaim`].
pub async fn dry_run(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let mut call = Call::new((store, clock, ids), context, request);
    loop {
        let image = call.image().await?;
        let command = command(&call.request, call.stamp()?);
        match reservation::reclaim(&image, &command) {
            Ok(_) => {
                let version = image.version;
                return concerned(image, &command.units, version);
            }
            Err(refusal) => {
                call.refused(Some(refusal), image, command.stamp.now)
                    .await?
            }
        }
    }
}

fn command(request: &UnitsRequest, stamp: Stamp) -> Reclaim {
    Reclaim {
        units: request.units.clone(),
        expected: request.expected,
        stamp,
    }
}

fn concerned(image: Reservation, units: &UnitSet, at: Version) -> Result<Reclaimed, Error> {
    match victims(&image, units.as_set(), at) {
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
