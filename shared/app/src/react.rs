//! What follows from a change: condemned VMs are marked and ordered to stop, and the audit trail
//! grows. Each change is judged on its own pair of images, so repeats and any order are harmless.

use std::collections::BTreeMap;
use std::time::Instant;

use domain::audit::events;
use domain::node::Node;
use domain::slot::{Condemned, condemned};
use domain::vm::Sentence;
use domain::{Dying, NodeId, Reservation, ReservationId, Timestamp, Version, VmId, VmStatus};

use crate::error::StoreError;
use crate::ports::{CondemnVm, PutAudit, ReadAudit, SendError, SendOrders, TerminationOrder};
use crate::trail::record;

/// A change of an item that holds units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Of a reservation.
    Reservation {
        /// Before; `None` when it was made.
        old: Option<Box<Reservation>>,
        /// After.
        new: Box<Reservation>,
    },
    /// Of a node.
    Node {
        /// Before; `None` when it was registered.
        old: Option<Box<Node>>,
        /// After.
        new: Box<Node>,
    },
    /// Of anything else: nothing follows.
    Other,
}

/// Why a reaction is not complete. It is to be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReactError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Orders were not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The record before this one is not there yet.
    #[error("audit of {0}: the record before version {1} is not there yet")]
    Waiting(ReservationId, Version),
    /// Another record stands where this one belongs.
    #[error("audit of {0}: another record stands at {1}")]
    Tampered(ReservationId, String),
}

/// What a reaction did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reaction {
    /// The VMs that were condemned or found so, and ordered to stop.
    pub vms: Vec<VmId>,
    /// Termination orders sent.
    pub orders: usize,
    /// Audit records written now; those that were there before do not count.
    pub records: usize,
    /// Whether a gap in the audit trail had to be recorded.
    pub gap: bool,
}

/// Does all that follows from `change`. Doing it again changes nothing.
///
/// # Errors
/// [`ReactError`]; whatever was done before the failure stays done.
pub async fn react(
    store: &(impl CondemnVm + ReadAudit + PutAudit),
    orders: &impl SendOrders,
    now: Timestamp,
    change: &Change,
) -> Result<Reaction, ReactError> {
    let started = Instant::now();
    let mut reaction = Reaction::default();
    let Some(sentences) = sentences(change) else {
        return Ok(reaction);
    };
    let sent = execute(store, orders, &sentences).await;
    let elapsed_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    // Also where no order went out: a record that is given up for that would be lost for good,
    // while the sweep sends orders again.
    if let Change::Reservation { old, new } = change {
        let recorded = record(store, now, events(old.as_deref(), new)).await?;
        reaction.records = recorded.records;
        reaction.gap = recorded.gap;
    }
    let sent = sent?;
    for condemned_at in sent.condemned_at {
        let sent_at = now.plus_ms(elapsed_ms);
        metrics::RECLAIM_TO_COMMAND.observe_ms(sent_at.ms_since(condemned_at));
    }
    reaction.vms = sent.vms;
    reaction.orders = reaction.vms.len();
    Ok(reaction)
}

/// The VMs that a change condemned, with what condemned them.
struct Sentences {
    node: NodeId,
    each: BTreeMap<VmId, Sentence>,
}

/// Those condemned after the change and not before it; `None` if it is none of our concern.
fn sentences(change: &Change) -> Option<Sentences> {
    let (node, before, after, own, version, at) = match change {
        Change::Other => return None,
        Change::Reservation { old, new } => {
            if old.as_ref().is_some_and(|old| new.version <= old.version) {
                return None;
            }
            let before = old.as_ref().map(|old| condemned(&old.slots, old.offer()));
            let after = condemned(&new.slots, new.offer());
            (
                &new.node,
                before,
                after,
                Some(&new.id),
                new.version,
                new.updated_at,
            )
        }
        Change::Node { old, new } => {
            if old.as_ref().is_some_and(|old| new.version <= old.version) {
                return None;
            }
            let before = old.as_ref().map(|old| condemned(&old.slots, old.offer()));
            let after = condemned(&new.slots, new.offer());
            (&new.id, before, after, None, new.version, new.updated_at)
        }
    };
    let before = before.unwrap_or_default();
    let fresh = after.into_iter().filter(|(vm, _)| !before.contains_key(vm));
    let each = fresh
        .map(|(vm, condemned)| {
            let reservation = condemned_by(&condemned, own);
            (
                vm,
                Sentence {
                    reservation,
                    version,
                    at,
                },
            )
        })
        .collect();
    Some(Sentences {
        node: node.clone(),
        each,
    })
}

pub(crate) fn condemned_by(
    condemned: &Condemned,
    own: Option<&ReservationId>,
) -> Option<ReservationId> {
    match &condemned.dying {
        Some(Dying::Evicted(by)) => Some(by.clone()),
        Some(Dying::Stopped) => None,
        None => own.cloned(),
    }
}

/// The sentence shown to the VM's org.
#[must_use]
pub fn status_reason(reservation: Option<&ReservationId>) -> String {
    match reservation {
        Some(id) => format!("its unit was taken back by reservation {id}"),
        None => "told to stop".to_owned(),
    }
}

/// What was sent.
#[derive(Default)]
struct Sent {
    vms: Vec<VmId>,
    /// When those were condemned that a reservation's change condemned, and this very one.
    condemned_at: Vec<Timestamp>,
}

/// Marks each VM as terminating and sends its order. A VM that is gone already, or that nobody
/// knows, gets none.
async fn execute(
    store: &impl CondemnVm,
    orders: &impl SendOrders,
    sentences: &Sentences,
) -> Result<Sent, ReactError> {
    let mut sent = Sent::default();
    let mut due = Vec::new();
    let mut failed = None;
    for (id, sentence) in &sentences.each {
        let reason = status_reason(sentence.reservation.as_ref());
        let marked = match store.condemn(id, sentence, &reason).await {
            Ok(marked) => marked,
            Err(error) => {
                // One that cannot be marked must not keep the others running.
                failed.get_or_insert(error);
                continue;
            }
        };
        match marked {
            None => tracing::warn!(vm_id = %id, "a slot names a VM that does not exist"),
            Some(vm) if vm.status == VmStatus::Terminated => {}
            Some(vm) => {
                if sentence.reservation.is_some() && vm.sentence.as_ref() == Some(sentence) {
                    sent.condemned_at.push(sentence.at);
                }
                sent.vms.push(id.clone());
                due.push(TerminationOrder {
                    vm: id.clone(),
                    node: sentences.node.clone(),
                    reservation: sentence.reservation.clone(),
                    version: sentence.version,
                });
            }
        }
    }
    if !due.is_empty() {
        orders.send_orders(&due).await?;
        metrics::ORDERS_SENT.add(u64::try_from(due.len()).unwrap_or(u64::MAX), []);
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(sent),
    }
}
