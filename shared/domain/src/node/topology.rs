//! Topology: a node's agent reports which units there are, and what follows for those who have
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{ReservationId, UnitId};
use crate::limits::TOPOLOGY_GEN_JUMP_MAX;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reservation::Reservation;
use crate::reservation::review::review;
use crate::slot::Slot;
use crate::stamp::Stamp;

/// A report of all units of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which report this is: higher than the one before.
    pub topology_gen: u64,
    /// All units with the number of GPUs of each.
    pub units: BTreeMap<UnitId, u16>,
    /// Who, when.
    pub stamp: Stamp,
}

/// What a report makes of a node and its reservations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The node after it.
    pub node: Node,
    /// The reservations that need review because of it.
    pub reviewed: Vec<Reservation>,
}

impl Node {
    /// The live reservations with units that the report changes: gone, back again, or of another
    /// size.
    #[must_use]
    pub fn affected(&self, report: &Report) -> BTreeSet<ReservationId> {
        let changed = self.differences(report);
        let bookings = self.bookings.iter();
        bookings
            .filter(|(_, booking)| !booking.units.is_disjoint(&changed))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn differences(&self, report: &Report) -> BTreeSet<UnitId> {
        let all = self.units.keys().chain(report.units.keys());
        all.filter(|unit| self.units.get(*unit) != report.units.get(*unit))
            .cloned()
            .collect()
    }

    /// Takes the report: units that appear join the pool, those that vanish leave it with the last
    /// VM on them, and every reservation whose units changed needs review.
    ///
    /// `affected` are the reservations of [`Node::affected`].
    ///
    /// # Errors
    /// [`Refusal::StaleTopology`] unless it is newer than the one before;
    /// [`Refusal::LimitReached`] if it is further ahead than a count of reports can be.
    pub fn report(&self, report: &Report, affected: &[Reservation]) -> Result<Reported, Refusal> {
        if report.topology_gen <= self.topology_gen {
            return Err(Refusal::StaleTopology(self.topology_gen));
        }
        let latest = self.topology_gen.saturating_add(TOPOLOGY_GEN_JUMP_MAX);
        if report.topology_gen > latest {
            return Err(Refusal::LimitReached(format!(
                "topologyGen counts reports; after {} it is at most {latest}",
                self.topology_gen
            )));
        }
        let changed = self.differences(report);
        let mut node = self.changed(&report.stamp);
        node.topology_gen = report.topology_gen;
        node.units = report.units.clone();
        let held: BTreeSet<UnitId> = self.held().cloned().collect();
        for (unit, gpus) in report
            .units
            .iter()
            .filter(|(unit, _)| !held.contains(*unit))
        {
            let slot = node.slots.entry(unit.clone());
            slot.or_insert_with(|| Slot::empty(*gpus)).gpus = *gpus;
        }
        node.slots
            .retain(|unit, slot| node.units.contains_key(unit) || slot.occupant.is_some());
        node.due_at = node.next_due();
        let reviewed = affected
            .iter()
            .map(|reservation| {
                let units = reservation.units.as_set().intersection(&changed);
                review(reservation, &node, &units.cloned().collect(), &report.stamp)
            })
            .collect();
        Ok(Reported { node, reviewed })
    }
}
