//! VMs: placed by tier, read, listed.

use std::collections::BTreeSet;

use domain::slot::Slots;
use domain::vm::Vm;
use domain::{
    GpuModelId, NodeId, OrgId, Refusal, Reservation, ReservationId, Status, Tier, Timestamp,
    UnitId, UnitSet, VmId, VmStatus,
};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::nodes::{self, NodeView};
use crate::ports::{
    Clock, Commit, Custodian, FindMarket, Ids, ListVms, LoadVms, Once, Page, PlaceVm,
};
use crate::terms::{TermStore, pass_all};

/// Nodes that a purchase by model looks at before it gives up.
const MARKET_NODES_MAX: usize = 16;

/// Hints that a purchase by model asks the market index for.
const MARKET_HINTS_MAX: usize = 64;

/// Which units a VM is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Exactly these.
    Units(UnitSet),
    /// Any that have exactly this many GPUs together.
    Gpus(u32),
}

/// Where a VM is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this node, if its GPUs are of the model, where one is named.
    Node(NodeId, Option<GpuModelId>),
    /// On this reservation's units.
    Reservation(NodeId, ReservationId),
    /// On any node of this model.
    Model(GpuModelId),
}

/// What a caller asks of a new VM.
#[derive(Debug, Clone)]
pub struct VmRequest {
    /// Whose it is to be.
    pub org: OrgId,
    /// Its name.
    pub name: String,
    /// What it is bought as.
    pub tier: Tier,
    /// Which units.
    pub wanted: Wanted,
    /// Where.
    pub place: Place,
}

/// The ports that placing needs.
pub trait PlaceStore: TermStore + FindMarket + PlaceVm + Once {}
impl<T: TermStore + FindMarket + PlaceVm + Once> PlaceStore for T {}

/// Places a VM on units that are free and for sale at its tier.
///
/// A candidate that is lost to another buyer is followed by the next, at most
/// [`domain::limits::PLACEMENT_TRIES_MAX`] in all.
///
/// # Errors
/// [`Refusal::InsufficientCapacity`] if nothing fits; not found for a reservation the caller may
/// not see; the store's failures.
pub async fn create(
    store: &impl PlaceStore,
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    request: VmRequest,
    keep: Option<&Keep<'_, Vm>>,
) -> Result<Vm, Error> {
    context.principal.of_org(&request.org)?;
    let id = VmId::parse(&ids.uuid())
        .map_err(|_| Error::Bug(Internal("a fresh id is not an id".to_owned())))?;
    let mut tries = domain::limits::PLACEMENT_TRIES_MAX;
    let mut nodes = nodes_for(store, clock, context, &request).await?;
    while let Some(node) = nodes.pop() {
        // The same node again after a lost race: what it has free has changed.
        while tries > 0 {
            let now = clock.now();
            let Some(view) = present(store, clock, ids, &node).await? else {
                break;
            };
            let Some(choice) = choose(&view, &request, now) else {
                break;
            };
            tries -= 1;
            let vm = assemble(&id, &view, &request, &choice, now);
            let stamp = context.stamp(now, None)?;
            let placed = match keep {
                None => store.place(&vm, &choice.custodian, &stamp).await? == Commit::Done,
                Some(keep) => {
                    let kept = keep.kept(&vm, now)?;
                    let placed = store.place_once(&vm, &choice.custodian, &stamp, &kept);
                    placed.await?.done()?
                }
            };
            if placed {
                return Ok(vm);
            }
        }
    }
    Err(Refusal::InsufficientCapacity(shortage(&request)).into())
}

/// A node as its reservations' terms have it now.
async fn present(
    store: &impl PlaceStore,
    clock: &impl Clock,
    ids: &impl Ids,
    node: &NodeId,
) -> Result<Option<NodeView>, Error> {
    let view = nodes::load(store, node).await?;
    match &view {
        Some(there) if pass_all(store, clock, ids, &there.node).await? => {
            Ok(nodes::load(store, node).await?)
        }
        _ => Ok(view),
    }
}

fn shortage(request: &VmRequest) -> String {
    let tier = request.tier.as_str();
    match &request.wanted {
        Wanted::Units(units) => {
            let names: Vec<&str> = units.iter().map(UnitId::as_str).collect();
            format!(
                "not all of these are free and for sale at tier={tier}: {}",
                names.join(", ")
            )
        }
        Wanted::Gpus(count) => {
            // A model is looked for on some nodes, not on all of them.
            let nodes = match &request.place {
                Place::Model(_) => " were found; ask again, or name a node",
                Place::Node(..) | Place::Reservation(..) => "",
            };
            format!("no free units of {count} GPUs for sale at tier={tier}{nodes}")
        }
    }
}

/// The nodes to look at, the first one last.
async fn nodes_for(
    store: &impl PlaceStore,
    clock: &impl Clock,
    context: &Context,
    request: &VmRequest,
) -> Result<Vec<NodeId>, Error> {
    match &request.place {
        Place::Node(node, _) => Ok(vec![node.clone()]),
        Place::Reservation(node, id) => {
            let found = store.load_reservation(node, id).await?;
            let visible = found.is_some_and(|r| r.relation(context.caller()).may_see());
            if visible {
                Ok(vec![node.clone()])
            } else {
                Err(Error::not_found())
            }
        }
        Place::Model(model) => {
            let spread = context.stamp(clock.now(), None)?.write;
            let hints = store.find_market(model, &spread, MARKET_HINTS_MAX).await?;
            let mut seen = BTreeSet::new();
            let mut nodes: Vec<NodeId> = hints
                .into_iter()
                .map(|(node, _)| node)
                .filter(|node| seen.insert(node.clone()))
                .take(MARKET_NODES_MAX)
                .collect();
            nodes.reverse();
            Ok(nodes)
        }
    }
}

/// Units that a VM could have.
struct Choice {
    custodian: Custodian,
    units: BTreeSet<UnitId>,
    gpus: u32,
}

/// The first custodian of the node that has what is wanted: reservations before the pool.
fn choose(view: &NodeView, request: &VmRequest, now: Timestamp) -> Option<Choice> {
    if let Place::Node(_, Some(model)) | Place::Model(model) = &request.place
        && view.node.gpu_model != *model
    {
        return None;
    }
    let reserved = view.holding.iter().filter_map(|r| {
        let custodian = Custodian::Reservation(r.id.clone());
        Some((custodian, for_sale(r, request, now)?))
    });
    let here = |unit: &UnitId| view.node.units.contains_key(unit);
    let pool = (Custodian::Pool, empty_units(&view.node.slots, here));
    reserved
        .chain([pool])
        .filter(|(custodian, _)| asked_for(custodian, request))
        .find_map(|(custodian, free)| {
            let units = pick(&free, &request.wanted)?;
            let gpus = free
                .iter()
                .filter(|(u, _)| units.contains(u))
                .map(|(_, g)| *g)
                .sum();
            Some(Choice {
                custodian,
                units,
                gpus,
            })
        })
}

fn asked_for(custodian: &Custodian, request: &VmRequest) -> bool {
    match (&request.place, custodian) {
        (Place::Reservation(_, asked), Custodian::Reservation(id)) => asked == id,
        (Place::Reservation(..), Custodian::Pool) => false,
        (Place::Node(..) | Place::Model(_), _) => true,
    }
}

/// The units of a reservation that the request may have; `None` if it may have none whatever is
/// free.
fn for_sale(
    reservation: &Reservation,
    request: &VmRequest,
    now: Timestamp,
) -> Option<Vec<(UnitId, u32)>> {
    let spot = request.tier == Tier::Spot;
    let active = reservation.status_at(now) == Status::Active;
    (active && (spot || reservation.audience.contains(&request.org))).then(|| {
        empty_units(&reservation.slots, |unit| {
            reservation.released.contains(unit) == spot
        })
    })
}

fn empty_units(slots: &Slots, sellable: impl Fn(&UnitId) -> bool) -> Vec<(UnitId, u32)> {
    slots
        .iter()
        .filter(|(unit, slot)| slot.occupant.is_none() && sellable(unit))
        .map(|(unit, slot)| (unit.clone(), u32::from(slot.gpus)))
        .collect()
}

/// The units to take out of the free ones: those named, or the first that add up.
fn pick(free: &[(UnitId, u32)], wanted: &Wanted) -> Option<BTreeSet<UnitId>> {
    match wanted {
        Wanted::Units(units) => {
            let all = units
                .iter()
                .all(|unit| free.iter().any(|(there, _)| there == unit));
            all.then(|| units.as_set().clone())
        }
        Wanted::Gpus(count) => add_up(free, *count),
    }
}

/// A subset whose GPUs add up to exactly `count`, of as few units as an in-order search finds.
fn add_up(free: &[(UnitId, u32)], count: u32) -> Option<BTreeSet<UnitId>> {
    let size = usize::try_from(count).ok()?;
    let mut ways: Vec<Option<Vec<usize>>> = vec![None; size + 1];
    ways[0] = Some(Vec::new());
    for (place, (_, gpus)) in free.iter().enumerate() {
        let gpus = usize::try_from(*gpus).ok()?;
        for sum in (gpus..=size).rev() {
            let shorter = ways[sum - gpus].as_ref().map(|way| way.len() + 1);
            let now = ways[sum].as_ref().map_or(usize::MAX, Vec::len);
            if shorter.is_some_and(|len| len < now) {
                let mut way = ways[sum - gpus].clone().unwrap_or_default();
                way.push(place);
                ways[sum] = Some(way);
            }
        }
    }
    let way = ways.pop().flatten().filter(|way| !way.is_empty())?;
    Some(way.into_iter().map(|place| free[place].0.clone()).collect())
}

fn assemble(
    id: &VmId,
    view: &NodeView,
    request: &VmRequest,
    choice: &Choice,
    now: Timestamp,
) -> Vm {
    Vm {
        id: id.clone(),
        org: request.org.clone(),
        name: request.name.clone(),
        status: VmStatus::Running,
        status_reason: None,
        tier: request.tier,
        gpu_model: view.node.gpu_model.clone(),
        gpu_count: choice.gpus,
        node: view.node.id.clone(),
        units: choice.units.clone(),
        reservation: match &choice.custodian {
            Custodian::Pool => None,
            Custodian::Reservation(id) => Some(id.clone()),
        },
        sentence: None,
        attempts: 0,
        stuck_at: None,
        created_at: now,
        updated_at: now,
    }
}

/// Reads a VM.
///
/// # Errors
/// Not found unless the caller is an operator or of the VM's org.
pub async fn get(store: &impl LoadVms, context: &Context, id: &VmId) -> Result<Vm, Error> {
    let caller = context.caller();
    let found = store.load_vm(id).await?;
    found
        .filter(|vm| caller.operator || caller.org == vm.org)
        .ok_or_else(Error::not_found)
}

/// Lists an org's VMs in the order they were placed in.
///
/// # Errors
/// [`Error::Forbidden`] for another org's; the store's failures.
pub async fn list(
    store: &impl ListVms,
    context: &Context,
    org: &OrgId,
    after: Option<&VmId>,
    limit: usize,
) -> Result<Page<Vm, VmId>, Error> {
    context.principal.of_org(org)?;
    Ok(store.list_vms(org, after, limit).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(sizes: &[u32]) -> Vec<(UnitId, u32)> {
        let named = sizes.iter().enumerate();
        named
            .map(|(i, gpus)| (UnitId::parse(&format!("u{i}")).unwrap(), *gpus))
            .collect()
    }

    fn sum(sizes: &[u32], count: u32) -> Option<u32> {
        let free = free(sizes);
        let units = add_up(&free, count)?;
        Some(
            free.iter()
                .filter(|(unit, _)| units.contains(unit))
                .map(|(_, gpus)| gpus)
                .sum(),
        )
    }

    #[test]
    fn units_are_found_whenever_some_add_up() {
        assert_eq!(sum(&[1, 1, 1], 2), Some(2));
        assert_eq!(
            sum(&[3, 2, 2], 4),
            Some(4),
            "the largest first would miss this"
        );
        assert_eq!(sum(&[4, 4], 6), None);
        assert_eq!(sum(&[1], 0), None);
        assert_eq!(sum(&[], 1), None);
    }

    #[test]
    fn fewer_units_are_preferred() {
        let units = add_up(&free(&[1, 1, 1, 1, 4]), 4).unwrap();
        assert_eq!(units.len(), 1);
    }
}
