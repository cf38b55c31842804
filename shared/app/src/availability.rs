//! What is free to buy, by GPU model and tier.

use std::collections::{BTreeMap, BTreeSet};

use domain::limits::{AVAILABILITY_CUSTODIANS_MAX, AVAILABILITY_MODELS_MAX};
use domain::{GpuModelId, NodeId, Tier, Timestamp, WriteId};

use crate::context::Context;
use crate::error::Error;
use crate::market::Stock;
use crate::ports::{Clock, Custodian, FindMarket, ListModels, LoadCustodians, Page};

/// What is free at one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Free {
    /// Empty units for sale.
    pub units: u32,
    /// Their GPUs.
    pub gpus: u32,
    /// The nodes that they are on.
    pub nodes: u32,
    /// Most GPUs that one VM could have.
    pub largest: u32,
}

/// What is free of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// The model.
    pub model: GpuModelId,
    /// What is free at each tier that was asked for.
    pub free: BTreeMap<Tier, Free>,
    /// The nodes that have any of it.
    pub nodes: u32,
    /// Whether there may be more: not all of the fleet was counted.
    pub at_least: bool,
}

/// What a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// At this tier; `None` for all.
    pub tier: Option<Tier>,
    /// Of this model; `None` for all.
    pub model: Option<GpuModelId>,
}

/// The ports that counting needs.
pub trait MarketStore: ListModels + FindMarket + LoadCustodians {}
impl<T: ListModels + FindMarket + LoadCustodians> MarketStore for T {}

/// Counts what is free, model by model in order of their ids, for anyone who has a key: what a
/// reservation keeps for its own audience is nobody else's, and does not count.
///
/// A page has at most [`AVAILABILITY_MODELS_MAX`] models, and for each of them at most
/// [`AVAILABILITY_CUSTODIANS_MAX`] holders of units are counted. The market's index may lag behind,
/// and everything is read at an instant of its own: the counts are a picture, not a promise.
///
/// # Errors
/// The store's failures.
pub async fn list(
    store: &impl MarketStore,
    clock: &impl Clock,
    context: &Context,
    asked: &Asked,
    after: Option<&GpuModelId>,
    limit: usize,
) -> Result<Page<Availability, GpuModelId>, Error> {
    let now = clock.now();
    let spread = context.stamp(now, None)?.write;
    let models = match &asked.model {
        Some(model) => {
            let known = store.has_model(model).await?;
            Page {
                items: known.then(|| model.clone()).into_iter().collect(),
                next: None,
            }
        }
        None => {
            let limit = limit.min(AVAILABILITY_MODELS_MAX);
            store.list_models(after, limit).await?
        }
    };
    let mut items = Vec::new();
    for model in models.items {
        items.push(count(store, model, asked.tier, &spread, now).await?);
    }
    Ok(Page {
        items,
        next: models.next,
    })
}

async fn count(
    store: &impl MarketStore,
    model: GpuModelId,
    tier: Option<Tier>,
    spread: &WriteId,
    now: Timestamp,
) -> Result<Availability, Error> {
    let mut hints = store
        .find_market(&model, spread, AVAILABILITY_CUSTODIANS_MAX + 1)
        .await?;
    let at_least = hints.len() > AVAILABILITY_CUSTODIANS_MAX;
    hints.truncate(AVAILABILITY_CUSTODIANS_MAX);
    let tiers: Vec<Tier> = Tier::ALL
        .into_iter()
        .filter(|known| tier.is_none_or(|tier| tier == *known))
        .collect();
    let mut tally = Tally {
        free: tiers.iter().map(|tier| (*tier, Free::default())).collect(),
        ..Tally::default()
    };
    let mut pools = BTreeSet::new();
    let mut held = BTreeSet::new();
    for (node, custodian) in hints {
        match custodian {
            Custodian::Pool => pools.insert(node),
            Custodian::Reservation(id) => held.insert((node, id)),
        };
    }
    if !pools.is_empty() {
        for node in store.load_nodes(&pools).await? {
            let stock = Stock::of_pool(&node, now);
            for tier in tiers.iter().filter(|_| node.gpu_model == model) {
                tally.add(*tier, &node.id, &stock);
            }
        }
    }
    if !held.is_empty() && tiers.contains(&Tier::Spot) {
        for reservation in store.load_reservations_of(&held).await? {
            let stock = Stock::of_reservation(&reservation, Tier::Spot, None, now);
            if let Some(stock) = stock.filter(|_| reservation.gpu_model == model) {
                tally.add(Tier::Spot, &reservation.node, &stock);
            }
        }
    }
    Ok(tally.availability(model, at_least))
}

/// Counts so far.
#[derive(Debug, Default)]
struct Tally {
    free: BTreeMap<Tier, Free>,
    nodes: BTreeMap<Tier, BTreeSet<NodeId>>,
}

impl Tally {
    fn add(&mut self, tier: Tier, node: &NodeId, stock: &Stock) {
        if stock.units() == 0 {
            return;
        }
        let free = self.free.entry(tier).or_default();
        free.units += u32::try_from(stock.units()).unwrap_or(u32::MAX);
        free.gpus += stock.gpus(None);
        free.largest = free.largest.max(stock.largest());
        self.nodes.entry(tier).or_default().insert(node.clone());
    }

    fn availability(self, model: GpuModelId, at_least: bool) -> Availability {
        let count = |nodes: usize| u32::try_from(nodes).unwrap_or(u32::MAX);
        let any: BTreeSet<&NodeId> = self.nodes.values().flatten().collect();
        let nodes = count(any.len());
        let with_nodes = self.free.into_iter().map(|(tier, free)| {
            let nodes = self.nodes.get(&tier).map_or(0, BTreeSet::len);
            (
                tier,
                Free {
                    nodes: count(nodes),
                    ..free
                },
            )
        });
        Availability {
            model,
            free: with_nodes.collect(),
            nodes,
            at_least,
        }
    }
}
