//! VMs: placed by tier, read, listed.

use std::collections::BTreeSet;

use domain::limits::{MARKET_NODES_SETTLED_MAX, PLACEMENT_TRIES_MAX};
use domain::stamp::Stamp;
use domain::vm::Vm;
use domain::{
    GpuModelId, NodeId, OrgId, Refusal, ReservationId, Tier, Timestamp, UnitId, UnitSet, VmId,
    VmStatus,
};

use crate::context::Context;
use crate::error::{Error, Internal};
use crate::idempotency::Keep;
use crate::market::{Search, Stock};
use crate::nodes::{self, NodeView};
use crate::ports::{
    Clock, Commit, Custodian, FindMarket, Ids, ListVms, LoadCustodians, LoadVms, Once, Page,
    PlaceVm,
};
use crate::terms::{TermStore, pass_all};

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
pub trait PlaceStore: TermStore + LoadCustodians + FindMarket + PlaceVm + Once {}
impl<T: TermStore + LoadCustodians + FindMarket + PlaceVm + Once> PlaceStore for T {}

/// Places a VM on units that are free and for sale at its tier, all in the hands of one custodian:
/// a VM never spans nodes.
///
/// A candidate that is lost to another buyer is followed by the next, at most
/// [`PLACEMENT_TRIES_MAX`] in all. By model it looks at the nodes that
/// [`domain::limits::MARKET_HINTS_MAX`] hints of the market name, a few at a time.
///
/// # Errors
/// [`Refusal::InsufficientCapacity`] if nothing fits, saying what would; not found for a
/// reservation the caller may not see; the store's failures.
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
    let mut tries = PLACEMENT_TRIES_MAX;
    let mut settled = 0;
    let mut shortage = Shortage::default();
    let mut candidates = Candidates::of(store, clock, context, &request).await?;
    while let Some(views) = candidates.next(store, &request).await? {
        for view in views {
            let mut next = Some(view);
            while let Some(view) = next {
                let due = !view.node.boundaries(clock.now()).is_empty();
                let view = match due && settled < MARKET_NODES_SETTLED_MAX {
                    true => {
                        settled += 1;
                        present(store, clock, ids, view).await?
                    }
                    false => view,
                };
                let now = clock.now();
                let Some(choice) = choose(&view, &request, now) else {
                    shortage.note(&view, &request, now);
                    break;
                };
                if tries == 0 {
                    return Err(Refusal::InsufficientCapacity(outrun(&request)).into());
                }
                tries -= 1;
                let vm = assemble(&id, &view, &request, &choice, now);
                let stamp = context.stamp(now, None)?;
                if seat(store, &vm, &choice.custodian, &stamp, keep).await? {
                    return Ok(vm);
                }
                // The same node again after a lost race: what it has free has changed.
                next = nodes::load(store, &view.node.id).await?;
            }
        }
    }
    let text = shortage.text(&request, candidates.cut_short());
    Err(Refusal::InsufficientCapacity(text).into())
}

/// Whether the VM got its units; with the answer that is to be kept, where one is.
async fn seat(
    store: &impl PlaceStore,
    vm: &Vm,
    custodian: &Custodian,
    stamp: &Stamp,
    keep: Option<&Keep<'_, Vm>>,
) -> Result<bool, Error> {
    match keep {
        None => Ok(store.place(vm, custodian, stamp).await? == Commit::Done),
        Some(keep) => {
            let kept = keep.kept(vm, stamp.now)?;
            let placed = store.place_once(vm, custodian, stamp, &kept);
            placed.await?.done()
        }
    }
}

/// The node as its reservations' terms have it now.
async fn present(
    store: &impl PlaceStore,
    clock: &impl Clock,
    ids: &impl Ids,
    view: NodeView,
) -> Result<NodeView, Error> {
    pass_all(store, clock, ids, &view.node).await?;
    let again = nodes::load(store, &view.node.id).await?;
    Ok(again.unwrap_or(view))
}

/// The nodes to look at.
enum Candidates {
    /// Those that the caller named, until they have been looked at.
    Named(Vec<NodeView>),
    /// Those that the market names.
    Market(Search),
}

impl Candidates {
    async fn of(
        store: &impl PlaceStore,
        clock: &impl Clock,
        context: &Context,
        request: &VmRequest,
    ) -> Result<Self, Error> {
        let node = match &request.place {
            Place::Node(node, _) => node,
            Place::Reservation(node, id) => {
                let found = store.load_reservation(node, id).await?;
                if !found.is_some_and(|r| r.relation(context.caller()).may_see()) {
                    return Err(Error::not_found());
                }
                node
            }
            Place::Model(model) => {
                let spread = context.stamp(clock.now(), None)?.write;
                return Ok(Self::Market(Search::new(store, model, &spread).await?));
            }
        };
        let view = nodes::load(store, node).await?;
        Ok(Self::Named(view.into_iter().collect()))
    }

    async fn next(
        &mut self,
        store: &impl PlaceStore,
        request: &VmRequest,
    ) -> Result<Option<Vec<NodeView>>, Error> {
        match self {
            Self::Named(views) if views.is_empty() => Ok(None),
            Self::Named(views) => Ok(Some(std::mem::take(views))),
            Self::Market(search) => Ok(search.next(store, request.tier).await?),
        }
    }

    fn cut_short(&self) -> bool {
        match self {
            Self::Named(_) => false,
            Self::Market(search) => search.cut_short,
        }
    }
}

/// What the nodes that were looked at could have given in place of what was asked for.
#[derive(Debug, Default)]
struct Shortage {
    largest: u32,
    below: Option<u32>,
    above: Option<u32>,
}

impl Shortage {
    fn note(&mut self, view: &NodeView, request: &VmRequest, now: Timestamp) {
        let Wanted::Gpus(count) = request.wanted else {
            return;
        };
        for (_, stock) in stocks(view, request, now) {
            let [below, above] = stock.nearest(count);
            self.largest = self.largest.max(stock.largest());
            self.below = self.below.max(below);
            self.above = [self.above, above].into_iter().flatten().min();
        }
    }

    fn text(&self, request: &VmRequest, cut_short: bool) -> String {
        let tier = request.tier.as_str();
        let count = match &request.wanted {
            Wanted::Units(units) => {
                let names: Vec<&str> = units.iter().map(UnitId::as_str).collect();
                let names = names.join(", ");
                return format!("not all of these are free and for sale at tier={tier}: {names}");
            }
            Wanted::Gpus(count) => count,
        };
        let nearest: Vec<String> = [self.below, self.above]
            .into_iter()
            .flatten()
            .map(|count| count.to_string())
            .collect();
        let free = match self.largest {
            0 => "nothing is free there".to_owned(),
            largest => format!(
                "largest free: {largest} GPUs; nearest that fits: {}",
                nearest.join(" or ")
            ),
        };
        let more = match cut_short {
            true => "; there are more nodes than were looked at: ask again, or name one",
            false => "",
        };
        format!("no free units of {count} GPUs on one node for sale at tier={tier}; {free}{more}")
    }
}

/// There was enough, and others were faster.
fn outrun(request: &VmRequest) -> String {
    let tier = request.tier.as_str();
    format!(
        "others bought the units that were found at tier={tier}, {PLACEMENT_TRIES_MAX} times over; \
         ask again"
    )
}

/// Units that a VM could have.
struct Choice {
    custodian: Custodian,
    units: BTreeSet<UnitId>,
    gpus: u32,
}

/// The first custodian of the node that has what is wanted: reservations before the pool.
fn choose(view: &NodeView, request: &VmRequest, now: Timestamp) -> Option<Choice> {
    stocks(view, request, now).find_map(|(custodian, stock)| {
        let units = match &request.wanted {
            Wanted::Units(units) => stock
                .has_all(units.as_set())
                .then(|| units.as_set().clone())?,
            Wanted::Gpus(count) => stock.add_up(*count)?,
        };
        Some(Choice {
            custodian,
            gpus: stock.gpus(Some(&units)),
            units,
        })
    })
}

/// What each custodian of the node would sell for this request: reservations before the pool.
fn stocks(
    view: &NodeView,
    request: &VmRequest,
    now: Timestamp,
) -> impl Iterator<Item = (Custodian, Stock)> {
    let fits = match &request.place {
        Place::Node(_, Some(model)) | Place::Model(model) => view.node.gpu_model == *model,
        Place::Node(_, None) | Place::Reservation(..) => true,
    };
    let reserved = view.holding.iter().filter_map(move |r| {
        let custodian = Custodian::Reservation(r.id.clone());
        let stock = Stock::of_reservation(r, request.tier, Some(&request.org), now)?;
        Some((custodian, stock))
    });
    let pool = (Custodian::Pool, Stock::of_pool(&view.node, now));
    reserved
        .chain([pool])
        .filter(move |(custodian, _)| fits && asked_for(custodian, request))
}

fn asked_for(custodian: &Custodian, request: &VmRequest) -> bool {
    match (&request.place, custodian) {
        (Place::Reservation(_, asked), Custodian::Reservation(id)) => asked == id,
        (Place::Reservation(..), Custodian::Pool) => false,
        (Place::Node(..) | Place::Model(_), _) => true,
    }
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
