//! Release: puts units on the spot market. One conditional write.

use domain::Stamp;
use domain::reservation::{self, Release, Reservation};

use crate::capacity::{Call, UnitsRequest};
use crate::context::Context;
use crate::error::Error;
use crate::idempotency::Keep;
use crate::ports::{Clock, Ids, Once, ReleaseUnits, Write};
use crate::terms::TermStore;

/// Releases units and returns the reservation as it is then.
///
/// # Errors
/// The refusals of [`reservation::release`]; the store's failures.
pub async fn release(
    store: &(impl ReleaseUnits + TermStore),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: UnitsRequest,
) -> Result<Reservation, Error> {
    let mut call = Call::new((store, clock, ids), context, request);
    loop {
        let command = command(&call.request, call.stamp()?);
        let UnitsRequest { node, id, .. } = &call.request;
        let image = match store.release(node, id, &command).await? {
            Write::Done(landed) => return Ok(landed.image),
            Write::Absent => return Err(Error::not_found()),
            Write::Refused(image) => image,
        };
        let refusal = reservation::release(&image, &command).err();
        call.refused(refusal, image, command.stamp.now).await?;
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
    request: UnitsRequest,
    keep: &Keep<'_, Reservation>,
) -> Result<Reservation, Error> {
    let decide = |request: &UnitsRequest, stamp: Stamp, image: &Reservation| {
        reservation::release(image, &command(request, stamp))
    };
    let call = Call::new((store, clock, ids), context, request);
    call.once(keep, decide, Ok).await
}

fn command(request: &UnitsRequest, stamp: Stamp) -> Release {
    Release {
        units: request.units.clone(),
        expected: request.expected,
        stamp,
    }
}
