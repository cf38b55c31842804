//! How a seated VM's life goes on: told to stop, and its stop confirmed.

use std::collections::BTreeSet;

use domain::reservation::place::{evicted_by, seats};
use domain::slot::condemned;
use domain::stamp::Stamp;
use domain::vm::{Sentence, Vm};
use domain::{NodeId, Refusal, ReservationId, Status, Tier, Timestamp, UnitId, VmId, VmStatus};

use crate::auth::Permission;
use crate::context::{Context, system_stamp};
use crate::error::{Error, Internal};
use crate::nodes::{self, NodeView};
use crate::ports::{
    Clock, Commit, Custodian, Ids, LoadNode, LoadReservations, LoadVms, SettleKind, SettleVm,
    Settlement,
};
use crate::race::{RACES_MAX, lost};
use crate::react::status_reason;

/// The ports that settling needs.
pub trait SettleStore: LoadNode + LoadReservations + LoadVms + SettleVm {}
impl<T: LoadNode + LoadReservations + LoadVms + SettleVm> SettleStore for T {}

/// Where a VM sits, as its node and reservations say.
struct Seating {
    seats: Vec<(Custodian, BTreeSet<UnitId>)>,
    condemned: bool,
    evicted_by: Option<ReservationId>,
}

impl Seating {
    /// The reservation that the VM's end is booked on, and the same where it has handed the VM's
    /// units on: its trail still gets the end.
    fn reported_to(&self) -> (Option<ReservationId>, Option<ReservationId>) {
        let holders: Vec<&ReservationId> = self
            .seats
            .iter()
            .filter_map(|(custodian, _)| match custodian {
                Custodian::Reservation(id) => Some(id),
                Custodian::Pool => None,
            })
            .collect();
        let by = self.evicted_by.as_ref();
        let by = by.or_else(|| holders.first().copied()).cloned();
        let note = by.clone().filter(|by| !holders.contains(&by));
        (by, note)
    }
}

fn seating(view: &NodeView, vm: &VmId) -> Seating {
    let mut out = Seating {
        seats: Vec::new(),
        condemned: false,
        evicted_by: None,
    };
    let pool = (Custodian::Pool, &view.node.slots, view.node.offer());
    let held = view
        .holding
        .iter()
        .map(|r| (Custodian::Reservation(r.id.clone()), &r.slots, r.offer()));
    for (custodian, slots, offer) in std::iter::once(pool).chain(held) {
        let Some(units) = seats(slots, vm) else {
            continue;
        };
        out.condemned |= condemned(slots, offer).contains_key(vm);
        out.evicted_by = out.evicted_by.or_else(|| evicted_by(slots, vm));
        out.seats.push((custodian, units));
    }
    out
}

/// Tells a running VM to stop, for its own org, an operator, or a manager of its units. One that is
/// stopping or gone already stays as it is.
///
/// # Errors
/// Not found if the caller may not stop it; the store's failures.
pub async fn stop(
    store: &impl SettleStore,
    clock: &impl Clock,
    context: &Context,
    id: &VmId,
) -> Result<Vm, Error> {
    for _ in 0..RACES_MAX {
        let found = store.load_vm(id).await?;
        let own = found.as_ref().and_then(|vm| right_by_org(vm, context));
        if own.is_none() && !context.principal.may(Permission::ReservationCapacity) {
            return Err(Error::not_found());
        }
        let Some(vm) = found else {
            return Err(unseen(store, None).await?);
        };
        let view = view_of(store, &vm).await?;
        let now = clock.now();
        let Some(why) = own.or_else(|| right_by_capacity(&vm, &view, context, now)) else {
            return Err(unseen(store, Some(&view)).await?);
        };
        if vm.status != VmStatus::Running {
            return Ok(vm);
        }
        let at = seating(&view, id);
        let stamp = context.stamp(now, None)?;
        let version = view.node.version;
        let next = Vm {
            status: VmStatus::Terminating,
            status_reason: Some(why.to_owned()),
            sentence: Some(Sentence {
                reservation: None,
                version,
                at: now,
            }),
            updated_at: now,
            ..vm.clone()
        };
        let change = Settlement {
            kind: SettleKind::Stop,
            vm: next,
            seen: vm.status,
            seats: at.seats,
            note: None,
            stamp,
        };
        if store.settle(&change).await? == Commit::Done {
            return Ok(change.vm);
        }
    }
    Err(lost(format_args!("a change of VM {id}")))
}

/// The refusal of a caller for whom there is no such VM, after the reads that judging one takes:
/// by their number nobody learns whether there is one.
async fn unseen(store: &impl SettleStore, judged: Option<&NodeView>) -> Result<Error, Error> {
    let nothing = || Error::Bug(Internal("a stand-in for an id is not an id".to_owned()));
    let node = NodeId::parse("-").map_err(|_| nothing())?;
    if judged.is_none() {
        store.load_node(&node).await?;
    }
    if judged.is_none_or(|view| view.holding.is_empty()) {
        let reservation = ReservationId::parse("-").map_err(|_| nothing())?;
        store
            .load_reservations(&node, &[reservation].into())
            .await?;
    }
    Ok(Error::not_found())
}

/// Why this caller may stop the VM as its owner or as an operator, in a sentence.
fn right_by_org(vm: &Vm, context: &Context) -> Option<&'static str> {
    let caller = context.caller();
    if !context.principal.may(Permission::VmsWrite) {
        return None;
    }
    if caller.org == vm.org {
        return Some("stopped by its own org");
    }
    caller
        .operator
        .then_some("stopped by an operator of the platform")
}

/// Why this caller may stop the VM for the sake of the capacity under it, in a sentence.
///
/// A managing org may stop spot VMs on its units. The node's owner may do so as well, and may stop
/// any VM on units that no reservation holds: workloads that outlive an ended reservation are the
/// owner's to terminate. What a tenant placed on reserved units is nobody's but the tenant's.
fn right_by_capacity(
    vm: &Vm,
    view: &NodeView,
    context: &Context,
    now: Timestamp,
) -> Option<&'static str> {
    let org = &context.caller().org;
    let mut under = view
        .holding
        .iter()
        .filter(|r| seats(&r.slots, &vm.id).is_some())
        .peekable();
    let in_pool = under.peek().is_none();
    let spot = vm.tier == Tier::Spot;
    if *org == view.node.owner && (spot || in_pool) {
        return Some("stopped by the owner of its node");
    }
    let manages = under.any(|r| r.managers.contains(org) && r.status_at(now) == Status::Active);
    (spot && manages).then_some("stopped by an org that manages its units")
}

/// Confirms that a VM's machine has stopped it, for the node's agent: its units are free from then
/// on. Confirming again changes nothing.
///
/// # Errors
/// Not found unless the caller is an operator or of the node's owner org and the VM is the node's;
/// [`Refusal::VmNotCondemned`] for a VM that nobody told to stop.
pub async fn confirm(
    store: &impl SettleStore,
    clock: &impl Clock,
    context: &Context,
    node: &NodeId,
    id: &VmId,
) -> Result<Vm, Error> {
    let found = store.load_node(node).await?;
    let known = found.is_some_and(|node| node.may_manage(context.caller()));
    if !known {
        return Err(Error::not_found());
    }
    let vm = store.load_vm(id).await?.filter(|vm| vm.node == *node);
    vm.ok_or_else(Error::not_found)?;
    let stamp = context.stamp(clock.now(), None)?;
    confirm_gone(store, id, &stamp).await
}

/// Confirms a stop on behalf of the platform.
///
/// # Errors
/// Not found if there never was such a VM; [`Refusal::VmNotCondemned`] for one that nobody told to
/// stop; the store's failures.
pub async fn confirm_as_system(
    store: &impl SettleStore,
    clock: &impl Clock,
    ids: &impl Ids,
    id: &VmId,
) -> Result<Vm, Error> {
    let stamp = system_stamp(ids.uuid(), clock.now())?;
    confirm_gone(store, id, &stamp).await
}

/// Writes a confirmed stop: the VM is terminated, all its seats are free.
async fn confirm_gone(store: &impl SettleStore, id: &VmId, stamp: &Stamp) -> Result<Vm, Error> {
    for _ in 0..RACES_MAX {
        let vm = store.load_vm(id).await?.ok_or_else(Error::not_found)?;
        if vm.status == VmStatus::Terminated {
            return Ok(vm);
        }
        let view = view_of(store, &vm).await?;
        let at = seating(&view, id);
        if vm.status == VmStatus::Running && !at.condemned {
            return Err(Refusal::VmNotCondemned(id.clone()).into());
        }
        let (by, note) = at.reported_to();
        let why = vm
            .status_reason
            .clone()
            .or_else(|| Some(status_reason(by.as_ref())));
        let next = Vm {
            status: VmStatus::Terminated,
            status_reason: why,
            updated_at: stamp.now,
            ..vm.clone()
        };
        let change = Settlement {
            kind: SettleKind::Confirm,
            vm: next,
            seen: vm.status,
            seats: at.seats,
            note,
            stamp: stamp.clone(),
        };
        if store.settle(&change).await? == Commit::Done {
            timed(&change.vm);
            return Ok(change.vm);
        }
    }
    Err(lost(format_args!("a change of VM {id}")))
}

/// Notes that the stop of a condemned VM is overdue: on the VM, and in the audit trails of those
/// whose units it sits on and of the reservation that condemned it. Whatever became of it in the
/// meantime stays.
///
/// # Errors
/// The store's failures; [`Error::Contended`] if other writers win every race.
pub(crate) async fn mark_stuck(
    store: &impl SettleStore,
    clock: &impl Clock,
    ids: &impl Ids,
    id: &VmId,
) -> Result<(), Error> {
    for _ in 0..RACES_MAX {
        let found = store.load_vm(id).await?;
        let overdue = |vm: &Vm| vm.status == VmStatus::Terminating && vm.stuck_at.is_none();
        let Some(vm) = found.filter(overdue) else {
            return Ok(());
        };
        let view = view_of(store, &vm).await?;
        let at = seating(&view, id);
        let stamp = system_stamp(ids.uuid(), clock.now())?;
        let (_, note) = at.reported_to();
        let next = Vm {
            stuck_at: Some(stamp.now),
            updated_at: stamp.now,
            ..vm.clone()
        };
        let change = Settlement {
            kind: SettleKind::Stuck,
            vm: next,
            seen: vm.status,
            seats: at.seats,
            note,
            stamp,
        };
        if store.settle(&change).await? == Commit::Done {
            return Ok(());
        }
    }
    Err(lost(format_args!("a change of VM {id}")))
}

/// How long it took to get a VM off that a reservation had condemned. One that its machine has
/// stopped before anybody marked it has no sentence, and is left out.
fn timed(vm: &Vm) {
    let sentence = vm.sentence.as_ref();
    if let Some(sentence) = sentence.filter(|sentence| sentence.reservation.is_some()) {
        metrics::RECLAIM_TO_CONFIRMED.observe_ms(vm.updated_at.ms_since(sentence.at));
    }
}

async fn view_of(store: &impl SettleStore, vm: &Vm) -> Result<NodeView, Error> {
    nodes::load(store, &vm.node)
        .await?
        .ok_or_else(|| Error::Bug(Internal(format!("VM {} has no node {}", vm.id, vm.node))))
}
