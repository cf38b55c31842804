//! What is for sale: which empty units a custodian sells at a tier, and what can be made of them.

use std::collections::{BTreeMap, BTreeSet};

use domain::limits::{
    MARKET_HINTS_MAX, MARKET_NODES_AT_ONCE, MARKET_RESERVATIONS_AT_ONCE, UNITS_PER_REQUEST_MAX,
};
use domain::slot::Slots;
use domain::{
    GpuModelId, Node, NodeId, OrgId, Reservation, ReservationId, Status, Tier, Timestamp, UnitId,
    WriteId,
};

use crate::nodes::NodeView;
use crate::ports::{Custodian, FindMarket, LoadCustodians, StoreResult};

/// Empty units of one custodian that are for sale, with the GPUs of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stock(Vec<(UnitId, u32)>);

impl Stock {
    /// What a node's pool sells at any tier: empty units that the machine still has, apart from
    /// those that a booking claims whose term has come.
    pub(crate) fn of_pool(node: &Node, now: Timestamp) -> Self {
        let waiting = node.bookings.values().filter(|booking| !booking.holds);
        let due = waiting.filter(|booking| booking.term.contains(now));
        let claimed: BTreeSet<&UnitId> = due.flat_map(|booking| &booking.units).collect();
        let here = |unit: &UnitId| node.units.contains_key(unit);
        Self::of(&node.slots, |unit| here(unit) && !claimed.contains(unit))
    }

    /// What a reservation sells: released units at spot, to anyone; the others to its audience, at
    /// other tiers. `None` if it sells the buyer nothing whatever is empty.
    pub(crate) fn of_reservation(
        reservation: &Reservation,
        tier: Tier,
        buyer: Option<&OrgId>,
        now: Timestamp,
    ) -> Option<Self> {
        let spot = tier == Tier::Spot;
        let active = reservation.status_at(now) == Status::Active;
        let invited = buyer.is_some_and(|buyer| reservation.audience.contains(buyer));
        (active && (spot || invited)).then(|| {
            Self::of(&reservation.slots, |unit| {
                reservation.released.contains(unit) == spot
            })
        })
    }

    fn of(slots: &Slots, sellable: impl Fn(&UnitId) -> bool) -> Self {
        let empty = slots
            .iter()
            .filter(|(unit, slot)| slot.occupant.is_none() && sellable(unit));
        Self(
            empty
                .map(|(unit, slot)| (unit.clone(), u32::from(slot.gpus)))
                .collect(),
        )
    }

    /// How many units there are.
    pub(crate) fn units(&self) -> usize {
        self.0.len()
    }

    /// How many GPUs they have together, all of them or those in `only`.
    pub(crate) fn gpus(&self, only: Option<&BTreeSet<UnitId>>) -> u32 {
        let counted = self
            .0
            .iter()
            .filter(|(unit, _)| only.is_none_or(|only| only.contains(unit)));
        counted.map(|(_, gpus)| gpus).sum()
    }

    /// Whether all of these are among them.
    pub(crate) fn has_all(&self, units: &BTreeSet<UnitId>) -> bool {
        let here: BTreeSet<&UnitId> = self.0.iter().map(|(unit, _)| unit).collect();
        units.iter().all(|unit| here.contains(unit))
    }

    /// Most GPUs that one VM can have of them: it takes [`UNITS_PER_REQUEST_MAX`] units at most.
    pub(crate) fn largest(&self) -> u32 {
        let mut sizes: Vec<u32> = self.0.iter().map(|(_, gpus)| *gpus).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.iter().take(UNITS_PER_REQUEST_MAX).sum()
    }

    /// A subset whose GPUs add up to exactly `count`, of as few units as there can be.
    pub(crate) fn add_up(&self, count: u32) -> Option<BTreeSet<UnitId>> {
        let fewest = self.fewest(count);
        let mut left = usize::try_from(count).ok()?;
        let units = (*fewest.last()?.get(left)?)?;
        if !(1..=UNITS_PER_REQUEST_MAX).contains(&usize::from(units)) {
            return None;
        }
        let mut out = BTreeSet::new();
        for (place, (unit, gpus)) in self.0.iter().enumerate().rev() {
            // Taken where it makes it with fewer units than those before it do by themselves.
            if fewest[place + 1][left] != fewest[place][left] {
                out.insert(unit.clone());
                left -= usize::try_from(*gpus).ok()?;
            }
        }
        Some(out)
    }

    /// The counts next to `count`, below and above, that one VM could have.
    pub(crate) fn nearest(&self, count: u32) -> [Option<u32>; 2] {
        let largest = self.largest();
        let fewest = self.fewest(largest);
        let reachable = |sum: &u32| {
            let sum = usize::try_from(*sum).unwrap_or(usize::MAX);
            let units = fewest
                .last()
                .and_then(|row| row.get(sum).copied().flatten());
            units.is_some_and(|units| usize::from(units) <= UNITS_PER_REQUEST_MAX)
        };
        let mut below = (1..count.min(largest.saturating_add(1))).rev();
        let mut above = count.saturating_add(1)..=largest;
        [below.find(reachable), above.find(reachable)]
    }

    /// For each number of units from the front, none first, and each sum up to `count`: the fewest
    /// of those units that have so many GPUs together.
    fn fewest(&self, count: u32) -> Vec<Vec<Option<u16>>> {
        // More than all of them together is out of reach; nothing need be kept for it.
        let count = count.min(self.gpus(None).saturating_add(1));
        let size = usize::try_from(count).unwrap_or(0);
        let mut row = vec![None; size + 1];
        row[0] = Some(0);
        let mut rows = vec![row];
        for (_, gpus) in &self.0 {
            let gpus = usize::try_from(*gpus).unwrap_or(usize::MAX);
            let before = rows.last().cloned().unwrap_or_default();
            let with = |sum: usize| {
                let rest = sum.checked_sub(gpus)?;
                before[rest].map(|units: u16| units + 1)
            };
            let better = |sum: usize| match (before[sum], with(sum)) {
                (Some(without), Some(with)) => Some(without.min(with)),
                (without, with) => without.or(with),
            };
            let row = (0..=size).map(better).collect();
            rows.push(row);
        }
        rows
    }
}

/// The nodes of a model that the market's index hints at, read a few at a time.
#[derive(Debug)]
pub(crate) struct Search {
    /// Still to be looked at, the next one last.
    left: Vec<NodeId>,
    /// Reservations that have had units on the market.
    hinted: BTreeSet<(NodeId, ReservationId)>,
    /// Whether there may be nodes that it never looks at.
    pub(crate) cut_short: bool,
}

impl Search {
    /// Asks the index. Different callers look at different nodes first.
    pub(crate) async fn new(
        store: &impl FindMarket,
        model: &GpuModelId,
        spread: &WriteId,
    ) -> StoreResult<Self> {
        // One more than is looked at, to know whether there are more.
        let hints = store.find_market(model, spread, MARKET_HINTS_MAX + 1);
        let mut hints = hints.await?;
        let cut_short = hints.len() > MARKET_HINTS_MAX;
        hints.truncate(MARKET_HINTS_MAX);
        let mut seen = BTreeSet::new();
        let mut left: Vec<NodeId> = hints
            .iter()
            .map(|(node, _)| node.clone())
            .filter(|node| seen.insert(node.clone()))
            .collect();
        left.reverse();
        let hinted = hints.into_iter().filter_map(|(node, custodian)| {
            let Custodian::Reservation(id) = custodian else {
                return None;
            };
            Some((node, id))
        });
        Ok(Self {
            left,
            hinted: hinted.collect(),
            cut_short,
        })
    }

    /// The next few nodes with those of their reservations that may sell at this tier; `None` at
    /// the end.
    pub(crate) async fn next(
        &mut self,
        store: &impl LoadCustodians,
        tier: Tier,
    ) -> StoreResult<Option<Vec<NodeView>>> {
        let from = self.left.len().saturating_sub(MARKET_NODES_AT_ONCE);
        let next = self.left.split_off(from);
        if next.is_empty() {
            return Ok(None);
        }
        let nodes = store.load_nodes(&next.iter().cloned().collect()).await?;
        let holding = nodes.iter().flat_map(|node| {
            let ids = node.holding().map(|id| (node.id.clone(), id.clone()));
            // A reservation that never released anything sells nothing at spot.
            ids.filter(|pair| tier != Tier::Spot || self.hinted.contains(pair))
        });
        let wanted: BTreeSet<_> = holding.take(MARKET_RESERVATIONS_AT_ONCE).collect();
        let mut held: BTreeMap<NodeId, Vec<Reservation>> = BTreeMap::new();
        if !wanted.is_empty() {
            for reservation in store.load_reservations_of(&wanted).await? {
                let here = held.entry(reservation.node.clone()).or_default();
                here.push(reservation);
            }
        }
        let mut nodes: BTreeMap<NodeId, Node> = nodes
            .into_iter()
            .map(|node| (node.id.clone(), node))
            .collect();
        let views = next.iter().rev().filter_map(|id| {
            Some(NodeView {
                node: nodes.remove(id)?,
                holding: held.remove(id).unwrap_or_default(),
            })
        });
        Ok(Some(views.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(sizes: &[u32]) -> Stock {
        let named = sizes.iter().enumerate();
        let units = named.map(|(i, gpus)| (UnitId::parse(&format!("u{i:03}")).unwrap(), *gpus));
        Stock(units.collect())
    }

    fn sum(sizes: &[u32], count: u32) -> Option<u32> {
        let stock = stock(sizes);
        let units = stock.add_up(count)?;
        Some(stock.gpus(Some(&units)))
    }

    #[test]
    fn units_are_found_whenever_some_add_up() {
        assert_eq!(sum(&[1, 1, 1], 2), Some(2));
        let first = "the largest first would miss this";
        assert_eq!(sum(&[3, 2, 2], 4), Some(4), "{first}");
        assert_eq!(sum(&[4, 4], 6), None);
        assert_eq!(sum(&[4, 4], 2_048), None);
        assert_eq!(sum(&[1], 0), None);
        assert_eq!(sum(&[], 1), None);
    }

    #[test]
    fn fewer_units_are_preferred_and_no_vm_has_more_than_a_call_may_name() {
        assert_eq!(stock(&[1, 1, 1, 1, 4]).add_up(4).unwrap().len(), 1);
        assert_eq!(stock(&[4, 1, 1, 1, 1]).add_up(4).unwrap().len(), 1);
        let many = stock(&[1; 128]);
        assert_eq!(many.add_up(32).unwrap().len(), 32);
        assert_eq!(many.add_up(33), None);
        assert_eq!(many.largest(), 32);
        assert_eq!(many.nearest(33), [Some(32), None]);
    }

    #[test]
    fn the_counts_next_to_the_one_asked_for_can_be_had() {
        assert_eq!(stock(&[4, 4]).nearest(6), [Some(4), Some(8)]);
        assert_eq!(stock(&[4, 4]).nearest(9), [Some(8), None]);
        assert_eq!(stock(&[4, 4]).nearest(1), [None, Some(4)]);
        assert_eq!(stock(&[4, 2]).nearest(4), [Some(2), Some(6)]);
        assert_eq!(stock(&[]).nearest(1), [None, None]);
        for sizes in [&[3, 5, 7][..], &[2, 2, 9], &[64; 40]] {
            let stock = stock(sizes);
            for count in 1..30 {
                for near in stock.nearest(count).into_iter().flatten() {
                    assert!(stock.add_up(near).is_some(), "{sizes:?}: {near}");
                }
            }
        }
    }
}
