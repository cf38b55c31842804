//! Topology: a node's agent reports its units; the reservations whose units changed need review.

use std::collections::{BTreeMap, BTreeSet};

use domain::node::Report;
use domain::{NodeId, ReservationId, UnitId};

use crate::context::Context;
use crate::error::Error;
use crate::nodes::{self, NodeView};
use crate::ports::{ChangeTopology, Clock, Commit, Ids, TopologyChange};
use crate::race::{RACES_MAX, lost};
use crate::terms::{TermStore, pass_all};

/// Takes a report of all units of a node and returns the node as it is then.
///
/// # Errors
/// Not found unless the caller is an operator or of the owner org; the refusals of
/// [`domain::Node::report`]; the store's failures; [`Error::Contended`] if other writers win every
/// race.
pub async fn report(
    store: &(impl TermStore + ChangeTopology),
    clock: &impl Clock,
    ids: &impl Ids,
    context: &Context,
    id: &NodeId,
    topology_gen: u64,
    units: &BTreeMap<UnitId, u16>,
) -> Result<NodeView, Error> {
    for _ in 0..RACES_MAX {
        let found = store.load_node(id).await?;
        let node = found.filter(|node| node.may_manage(context.caller()));
        let node = node.ok_or_else(Error::not_found)?;
        let report = Report {
            topology_gen,
            units: units.clone(),
            stamp: context.stamp(clock.now(), None)?,
        };
        // A term that is over gives its units back before they are looked at.
        if pass_all(store, clock, ids, &node).await? {
            continue;
        }
        let affected: BTreeSet<ReservationId> = node.affected(&report);
        let images = if affected.is_empty() {
            Vec::new()
        } else {
            store.load_reservations(id, &affected).await?
        };
        let landed = node.recent.landed(&report.stamp.write).is_some();
        if !landed {
            let reported = node.report(&report, &images)?;
            let change = TopologyChange {
                node_seen: node.version,
                node: reported.node,
                reviewed: reported.reviewed,
                write: report.stamp.write,
            };
            if images.len() != affected.len()
                || store.change_topology(&change).await? == Commit::Lost
            {
                continue;
            }
        }
        let view = nodes::load(store, id).await?;
        return view.ok_or_else(Error::not_found);
    }
    Err(lost(format_args!("a report of the topology of {id}")))
}
