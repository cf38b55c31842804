//! Reclaim: takes released units back. One conditional write; the spot VMs on them are condemned by
//! that write alone.

use domain::Version;
use domain::reservation::{self, Reclaim, Reservation, Victims, victims};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::ports::{Clock, Ids, Once, ReclaimUnits, Replacement, Write};
use crate::race::{RACES_MAX, lost};
use crate::release::{UnitsRequest, awaits_start, begin, explain};
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
    mut request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let mut begun = false;
    loop {
        let command = command(clock, context, &request)?;
        let image = match store.reclaim(&request.node, &request.id, &command).await? {
            Write::Done(landed) => return concerned(landed.image, &command, landed.version),
            Write::Absent => return Err(Error::not_found()),
            Write::Refused(image) => image,
        };
        let refusal = reservation::reclaim(&image, &command).err();
        if begun || !awaits_start(refusal.as_ref(), &image, command.stamp.now) {
            return Err(explain(refusal, image));
        }
        begin(store, clock, ids, &mut request).await?;
        begun = true;
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
    mut request: UnitsRequest,
    keep: &Keep<'_, Reclaimed>,
) -> Result<Reclaimed, Error> {
    let mut begun = false;
    for _ in 0..RACES_MAX {
        let image = store.load_reservation(&request.node, &request.id).await?;
        let image = image.ok_or_else(Error::not_found)?;
        let command = command(clock, context, &request)?;
        let after = match reservation::reclaim(&image, &command) {
            Ok(after) => after,
            Err(refusal) if !begun && awaits_start(Some(&refusal), &image, command.stamp.now) => {
                begin(store, clock, ids, &mut request).await?;
                begun = true;
                continue;
            }
            Err(refusal) => return Err(explain(Some(refusal), image)),
        };
        let version = after.version;
        let done = concerned(after, &command, version)?;
        let kept = keep.kept(&done, command.stamp.now)?;
        let change = Replacement {
            seen: image.version,
            reservation: done.reservation.clone(),
            write: command.stamp.write,
        };
        if store.replace_once(&change, &kept).await?.done()? {
            return Ok(done);
        }
    }
    Err(lost(format_args!("a reclaim of {}", request.id)))
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
    mut request: UnitsRequest,
) -> Result<Reclaimed, Error> {
    let mut begun = false;
    loop {
        let image = store.load_reservation(&request.node, &request.id).await?;
        let image = image.ok_or_else(Error::not_found)?;
        let command = command(clock, context, &request)?;
        let refusal = reservation::reclaim(&image, &command).err();
        if refusal.is_none() {
            let version = image.version;
            return concerned(image, &command, version);
        }
        if begun || !awaits_start(refusal.as_ref(), &image, command.stamp.now) {
            return Err(explain(refusal, image));
        }
        begin(store, clock, ids, &mut request).await?;
        begun = true;
    }
}

fn command(
    clock: &impl Clock,
    context: &Context,
    request: &UnitsRequest,
) -> Result<Reclaim, Error> {
    Ok(Reclaim {
        units: request.units.clone(),
        expected: request.expected,
        stamp: context.stamp(clock.now(), request.reason.clone())?,
    })
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
