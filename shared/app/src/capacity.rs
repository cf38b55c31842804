//! What release and reclaim share: the request, the begin of a term that a call meets, and the form
//! of a call whose answer is kept.

use domain::reservation::{Boundary, Reservation};
use domain::{NodeId, Refusal, ReservationId, Stamp, Status, Timestamp, UnitSet, Version};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::ports::{Clock, Ids, Once, Replacement};
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

/// A call of one of the verbs on its way.
pub(crate) struct Call<'a, S, C, I> {
    store: &'a S,
    clock: &'a C,
    ids: &'a I,
    context: &'a Context,
    /// What is asked.
    pub(crate) request: UnitsRequest,
    /// Whether it has met the begin of the reservation's term: there is only one.
    begun: bool,
}

impl<'a, S, C, I> Call<'a, S, C, I>
where
    S: TermStore,
    C: Clock,
    I: Ids,
{
    /// A call that has not been tried yet.
    pub(crate) fn new(
        (store, clock, ids): (&'a S, &'a C, &'a I),
        context: &'a Context,
        request: UnitsRequest,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            context,
            request,
            begun: false,
        }
    }

    /// The stamp of the next try.
    ///
    /// # Errors
    /// Those of [`Context::stamp`].
    pub(crate) fn stamp(&self) -> Result<Stamp, Error> {
        let reason = self.request.reason.clone();
        self.context.stamp(self.clock.now(), reason)
    }

    /// The reservation as it is.
    ///
    /// # Errors
    /// Not found if there is none; the store's failures.
    pub(crate) async fn image(&self) -> Result<Reservation, Error> {
        let UnitsRequest { node, id, .. } = &self.request;
        let found = self.store.load_reservation(node, id).await?;
        found.ok_or_else(Error::not_found)
    }

    /// Gets over a refusal for no more than that the reservation's term, which has begun, is not
    /// written as begun: it is then, and the call may be tried again.
    ///
    /// # Errors
    /// What any other refusal at `now` of this image means; the store's failures.
    pub(crate) async fn refused(
        &mut self,
        refusal: Option<Refusal>,
        image: Reservation,
        now: Timestamp,
    ) -> Result<(), Error> {
        let pending = Refusal::ReservationNotActive(Status::Pending);
        let awaits_start = refusal == Some(pending) && image.boundary(now) == Some(Boundary::Start);
        if self.begun || !awaits_start {
            return Err(explain(refusal, image));
        }
        let UnitsRequest {
            node, id, expected, ..
        } = &mut self.request;
        begin(self.store, self.clock, self.ids, (node, id), expected).await?;
        self.begun = true;
        Ok(())
    }

    /// Makes the call with its answer kept for calls that come again: `decide` says what becomes of
    /// an image, `outcome` what the caller hears of that, and effect and answer are written
    /// together if the image still stands.
    ///
    /// # Errors
    /// What a refusal means; [`Error::Answered`] if the call has been answered before;
    /// [`Error::Contended`] if other writers win every race.
    pub(crate) async fn once<T>(
        mut self,
        keep: &Keep<'_, T>,
        decide: impl Fn(&UnitsRequest, Stamp, &Reservation) -> Result<Reservation, Refusal> + Send,
        outcome: impl Fn(Reservation) -> Result<T, Error> + Send,
    ) -> Result<T, Error>
    where
        S: Once,
        T: Send,
    {
        for _ in 0..RACES_MAX {
            let image = self.image().await?;
            let stamp = self.stamp()?;
            let (now, write) = (stamp.now, stamp.write.clone());
            let after = match decide(&self.request, stamp, &image) {
                Ok(after) => after,
                Err(refusal) => {
                    self.refused(Some(refusal), image, now).await?;
                    continue;
                }
            };
            let done = outcome(after.clone())?;
            let kept = keep.kept(&done, now)?;
            let change = Replacement {
                seen: image.version,
                reservation: after,
                write,
            };
            if self.store.replace_once(&change, &kept).await?.done()? {
                return Ok(done);
            }
        }
        Err(lost(format_args!("a change of {}", self.request.id)))
    }
}

/// Writes that the term has begun. The version that the caller expects was the one before: the call
/// itself comes next. Where another change came in between, the caller has not seen that.
pub(crate) async fn begin(
    store: &impl TermStore,
    clock: &impl Clock,
    ids: &impl Ids,
    (node, id): (&NodeId, &ReservationId),
    expected: &mut Option<Version>,
) -> Result<(), Error> {
    let passed = pass(store, clock, ids, node, id).await?;
    if let (Some(expected), Some((_, after))) = (expected, passed)
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
