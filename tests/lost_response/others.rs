//! Nodes, the audit trail, and what follows from a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::Error;
use app::nodes::{self, NodeRequest};
use app::ports::{Custodian, PlaceVm, PutAudit, Recorded};
use app::react::{Change, react};
use domain::audit::{Record, events};
use domain::{Tier, VmId};
use testkit::RecordingOrders;
use testkit::fixtures::{
    self, GPU_MODEL, OWNER_ORG, STRANGER_ORG, id, now, operator, stamp, stranger, unit,
};
use testkit::stage::Stage;

use super::custody::{sold, sold_again};
use super::{Case, told};

pub(super) const PUT_NODE: Case = Case {
    name: "put node",
    operation: "TransactWriteItems",
    before: |_| Box::pin(async {}),
    call: |stage| {
        Box::pin(async move {
            let request = NodeRequest {
                id: id("node-2"),
                owner: id(OWNER_ORG),
                gpu_model: id(GPU_MODEL),
                units: BTreeMap::from([(unit(0), 1), (unit(1), 2)]),
                topology_gen: 1,
            };
            let (store, context) = (stage.store(), stage.context(operator()));
            let view = nodes::put(&store, stage.clock(), &context, request).await?;
            Ok(format!("{:?}", view.node))
        })
    },
    meanwhile: &[told("a unit of it is sold", |stage| {
        Box::pin(async move {
            let mut buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [0]);
            buyer.node = id("node-2");
            let (store, by) = (stage.store(), stamp(stranger(), 0x77));
            let placed = store.place(&buyer, &Custodian::Pool, &by).await;
            assert_eq!(placed, Ok(app::ports::Commit::Done));
        })
    })],
};

/// The first record of the reservation's trail.
async fn first_record(stage: &Stage) -> Record {
    let mut first = events(None, &stage.reservation().await);
    first.remove(0).seal("")
}

pub(super) const PUT_RECORD: Case = Case {
    name: "put record",
    operation: "PutItem",
    before: |_| Box::pin(async {}),
    call: |stage| {
        Box::pin(async move {
            let record = first_record(&stage).await;
            let there = match stage.store().put_record(&record).await? {
                Recorded::Written | Recorded::Same => "there",
                Recorded::Different => "another",
            };
            Ok(there.to_owned())
        })
    },
    meanwhile: &[told("another consumer writes the same record", |stage| {
        Box::pin(async move {
            let record = first_record(&stage).await;
            let there = stage.store().put_record(&record).await;
            assert_eq!(there, Ok(Recorded::Same));
        })
    })],
};

/// Reacts to the reclaim that condemned `vm-s`, as the stream function does.
async fn react_now(stage: Arc<Stage>) -> Result<String, Error> {
    let new = stage.reservation().await;
    let mut old = new.clone();
    old.released.insert(unit(0));
    old.version = new.version.previous().unwrap_or(new.version);
    let change = Change::Reservation {
        old: Some(Box::new(old)),
        new: Box::new(new),
    };
    let orders = RecordingOrders::default();
    // So late that the records before count as lost: there is a gap to be written, too.
    let late = now().plus_ms(3_600_000);
    let reacted = react(&stage.store(), &orders, late, &change).await;
    match reacted {
        Ok(_) => {
            let vms: Vec<VmId> = orders.vms();
            Ok(format!("ordered {vms:?}"))
        }
        Err(app::react::ReactError::Store(error)) => Err(error.into()),
        Err(other) => panic!("{other}"),
    }
}

pub(super) const REACT_AS_IT_CONDEMNS: Case = Case {
    name: "react, as it condemns",
    operation: "UpdateItem",
    before: |stage| {
        Box::pin(async move {
            sold(Arc::clone(&stage)).await;
            stage.reclaim([0]).await;
        })
    },
    call: |stage| Box::pin(react_now(stage)),
    meanwhile: &[told("its org stops it as well", |stage| {
        Box::pin(async move { stage.stop("vm-s").await })
    })],
};

pub(super) const REACT_AS_IT_RECORDS: Case = Case {
    name: "react, as it records",
    operation: "PutItem",
    meanwhile: &[told("the VM is gone and its unit sold again", |stage| {
        Box::pin(async move { sold_again(&stage).await })
    })],
    ..REACT_AS_IT_CONDEMNS
};
