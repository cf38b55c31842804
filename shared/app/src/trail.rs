//! The audit trail: records added one behind the other, and explicit gaps where some are lost.

use domain::audit::{Event, EventType, gap, lost_tail};
use domain::limits::AUDIT_LOST_AFTER_MS;
use domain::{Reservation, Timestamp, Version};

use crate::ports::{PutAudit, ReadAudit, Recorded};
use crate::react::ReactError;

/// How long a record waits for the one before it before that one counts as lost, in milliseconds.
/// Events of one item come in order, so one that is still missing then was given up for good.
/// Shorter than what drives the function goes on trying one record: else this one would be given up
/// as well before the gap is told, and so would all after it.
pub const PREDECESSOR_WAIT_MS: i64 = 5_000;

/// What adding the records of a version came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Added {
    /// Records written now; those that were there before do not count.
    pub(crate) records: usize,
    /// Whether a gap had to be written.
    pub(crate) gap: bool,
}

/// Adds the records of one version behind those of the version before. One that has been told as
/// lost stays so: the chain has gone on without it.
pub(crate) async fn record(
    store: &(impl ReadAudit + PutAudit),
    now: Timestamp,
    records: Vec<Event>,
) -> Result<Added, ReactError> {
    let mut added = Added::default();
    let Some(first) = records.first() else {
        return Ok(added);
    };
    let Some(mut prev_hash) = predecessor(store, now, first, &mut added).await? else {
        return Ok(added);
    };
    for event in records {
        let sealed = event.seal(&prev_hash);
        match store.put_record(&sealed).await? {
            Recorded::Written => {
                added.records += 1;
                let event = &sealed.event;
                if event.event == EventType::VmCondemned && event.beside.is_some() {
                    metrics::EVICTIONS.increment();
                }
            }
            Recorded::Same => {}
            Recorded::Different => {
                let event = sealed.event;
                if told_as_lost(store, &event).await? {
                    return Ok(added);
                }
                metrics::AUDIT_TAMPERED.increment();
                return Err(ReactError::Tampered(event.reservation.clone(), event.id()));
            }
        }
        prev_hash = sealed.hash;
    }
    Ok(added)
}

/// The hash to link the first record of a version to; `None` if that version has been told as lost.
/// Waits, by failing, for a record that is on its way; puts an explicit gap in the place of one
/// that will never come.
async fn predecessor(
    store: &(impl ReadAudit + PutAudit),
    now: Timestamp,
    first: &Event,
    added: &mut Added,
) -> Result<Option<String>, ReactError> {
    let Some(due) = first.version.previous() else {
        return Ok(Some(String::new()));
    };
    let last = store
        .last_record_before(&first.reservation, first.version)
        .await?;
    let hash = last
        .as_ref()
        .map(|record| record.hash.clone())
        .unwrap_or_default();
    if last.is_some_and(|record| record.event.version == due) {
        return Ok(Some(hash));
    }
    if told_as_lost(store, first).await? {
        return Ok(None);
    }
    let waiting = || ReactError::Waiting(first.reservation.clone(), first.version);
    if first.at.plus_ms(PREDECESSOR_WAIT_MS) > now {
        return Err(waiting());
    }
    let sealed = gap(first, due).seal(&hash);
    if store.put_record(&sealed).await? == Recorded::Different {
        // Another consumer filled the place in the meantime: look again.
        return Err(waiting());
    }
    metrics::AUDIT_GAPS.increment();
    tracing::error!(reservation_id = %first.reservation, version = due.get(), "audit gap");
    added.gap = true;
    Ok(Some(sealed.hash))
}

/// Whether the chain has gone on past this event without it: a gap stands at its version, or
/// records of later ones are there.
async fn told_as_lost(store: &impl ReadAudit, event: &Event) -> Result<bool, ReactError> {
    let last = store
        .last_record_before(&event.reservation, Version::LAST)
        .await?;
    let told = last.is_some_and(|last| {
        let later = last.event.version > event.version;
        let gap = last.event.event == EventType::Gap;
        later || (gap && last.event.version == event.version)
    });
    if told {
        let (reservation_id, version) = (&event.reservation, event.version.get());
        tracing::error!(%reservation_id, version, "a record came after it was told as lost");
    }
    Ok(told)
}

/// How a trail ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With the version that the reservation is at.
    Complete,
    /// Before it; the rest may be on its way until this instant.
    Late(Timestamp),
    /// With a gap that was put there now: the rest is lost.
    Gap,
}

/// Looks whether a trail has come to the version that its reservation is at, and tells the rest as
/// lost once it cannot come any more.
pub(crate) async fn close_tail(
    store: &(impl ReadAudit + PutAudit),
    now: Timestamp,
    reservation: &Reservation,
) -> Result<Tail, ReactError> {
    let last = store
        .last_record_before(&reservation.id, Version::LAST)
        .await?;
    let at = last.as_ref().map(|record| record.event.version);
    let lost = lost_tail(reservation).filter(|_| at < Some(reservation.version));
    let Some(lost) = lost else {
        return Ok(Tail::Complete);
    };
    let until = reservation.updated_at.plus_ms(AUDIT_LOST_AFTER_MS);
    if now < until {
        return Ok(Tail::Late(until));
    }
    let hash = last.map(|record| record.hash).unwrap_or_default();
    // Whatever else stands there by now is the record itself, come at the last moment.
    if store.put_record(&lost.seal(&hash)).await? == Recorded::Different {
        return Ok(Tail::Complete);
    }
    metrics::AUDIT_GAPS.increment();
    let version = reservation.version.get();
    tracing::error!(reservation_id = %reservation.id, version, "audit gap");
    Ok(Tail::Gap)
}
