//! Boundaries of terms, reports of topology, reviews, and stops that are overdue.

use std::sync::Arc;

use app::end::ChangeRequest;
use app::reservations::ReserveRequest;
use app::sweep::{Rules, sweep};
use app::terms::pass;
use app::{reservations, topology};
use domain::{ReservationId, Tier, Timestamp};
use testkit::RecordingOrders;
use testkit::fixtures::{
    self, AUDIENCE_ORG, MANAGER_ORG, NODE, RESERVATION, STRANGER_ORG, id, now, operator, owner,
    unit, unit_set,
};
use testkit::stage::{Stage, UNITS};

use super::{Case, told};

/// How far ahead the terms of these cases begin or end, in milliseconds.
const AHEAD_MS: i64 = 60_000;

/// Has the owner reserve the last two units for this term, on which a spot VM sits.
async fn book(stage: &Stage, starts: Option<Timestamp>, ends: Option<Timestamp>) {
    let there = fixtures::vm("vm-p", Tier::Spot, STRANGER_ORG, [4]);
    assert!(stage.seat_in_pool(&there).await);
    let request = ReserveRequest {
        node: id(NODE),
        units: unit_set([4, 5]),
        audience: [id(AUDIENCE_ORG)].into(),
        managers: [id(MANAGER_ORG)].into(),
        starts,
        ends,
        contract_ref: None,
        reason: None,
    };
    let (store, context) = (stage.store(), stage.context(owner()));
    let (clock, ids) = (stage.clock(), stage.ids());
    let made = reservations::create(&store, clock, ids, &context, request, None).await;
    assert!(made.is_ok(), "{made:?}");
    stage.clock().advance_ms(AHEAD_MS);
}

/// The id of the reservation that is not the stage's own.
async fn booked(stage: &Stage) -> ReservationId {
    let node = stage.node().await;
    let mut ids = node.bookings.into_keys();
    let found = ids.find(|there| there.as_str() != RESERVATION);
    found.unwrap_or_else(|| unreachable!("it was booked"))
}

async fn passed(stage: Arc<Stage>) -> Result<String, app::Error> {
    let reservation = booked(&stage).await;
    let (store, clock, ids) = (stage.store(), stage.clock(), stage.ids());
    let passed = pass(&store, clock, ids, &id(NODE), &reservation).await?;
    Ok(format!("{passed:?}"))
}

pub(super) const BEGIN: Case = Case {
    name: "begin of a term",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move { book(&stage, Some(now().plus_ms(AHEAD_MS)), None).await })
    },
    call: |stage| Box::pin(passed(stage)),
    meanwhile: &[
        told("the condemned VM is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-p").await })
        }),
        told("the other reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
    ],
};

pub(super) const EXPIRE: Case = Case {
    name: "end of a term",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move { book(&stage, None, Some(now().plus_ms(AHEAD_MS))).await })
    },
    call: |stage| Box::pin(passed(stage)),
    meanwhile: &[
        told("a unit is sold in the pool", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [5]);
                assert!(stage.seat_in_pool(&buyer).await);
            })
        }),
        told("the units are reserved again", |stage| {
            Box::pin(async move { stage.reserve("res-2", [4, 5]).await })
        }),
    ],
};

/// Reports the node's topology without its first unit, or with all of them.
async fn report(stage: &Stage, topology_gen: u64, first: usize) -> Result<String, app::Error> {
    let units = (first..UNITS).map(|number| (unit(number), 1)).collect();
    let (store, context) = (stage.store(), stage.context(owner()));
    let (clock, ids) = (stage.clock(), stage.ids());
    let node = id(NODE);
    let told = topology::report(&store, clock, ids, &context, &node, topology_gen, &units).await?;
    Ok(format!("{}", told.node.topology_gen))
}

pub(super) const TOPOLOGY: Case = Case {
    name: "topology",
    operation: "TransactWriteItems",
    before: |stage| Box::pin(async move { stage.release([1]).await }),
    call: |stage| Box::pin(async move { report(&stage, 2, 1).await }),
    meanwhile: &[told("a unit is sold in the pool", |stage| {
        Box::pin(async move {
            let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [5]);
            assert!(stage.seat_in_pool(&buyer).await);
        })
    })],
};

pub(super) const REAFFIRM: Case = Case {
    name: "re-affirm",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move {
            stage.release([1]).await;
            for (topology_gen, first) in [(2, 1), (3, 0)] {
                let done = report(&stage, topology_gen, first).await;
                assert!(done.is_ok(), "{done:?}");
            }
        })
    },
    call: |stage| {
        Box::pin(async move {
            let request = ChangeRequest {
                node: id(NODE),
                id: id(RESERVATION),
                expected: Some(stage.reservation().await.version),
                reason: None,
            };
            let (store, context) = (stage.store(), stage.context(operator()));
            let (clock, ids) = (stage.clock(), stage.ids());
            let done = reservations::reaffirm(&store, clock, ids, &context, &request, None);
            let done = done.await?;
            Ok(format!("{:?} {:?}", done.status, done.released))
        })
    },
    meanwhile: &[
        told("a unit of it is sold", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [1]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        told("units are reclaimed", |stage| {
            Box::pin(async move {
                stage.reclaim([1]).await;
            })
        }),
    ],
};

pub(super) const STUCK: Case = Case {
    name: "an overdue stop",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move {
            stage.release([0]).await;
            let spot = fixtures::vm("vm-s", Tier::Spot, STRANGER_ORG, [0]);
            assert!(stage.seat(&spot).await);
            stage.reclaim([0]).await;
            stage.condemn("vm-s").await;
            stage.clock().advance_ms(Rules::default().stuck_after_ms);
        })
    },
    call: |stage| {
        Box::pin(async move {
            let (store, orders) = (stage.store(), RecordingOrders::default());
            let (clock, ids) = (stage.clock(), stage.ids());
            let swept = sweep(&store, &orders, clock, ids, &Rules::default()).await?;
            assert_eq!(
                (swept.draining, swept.stuck, orders.sent().len()),
                (1, 1, 1)
            );
            match swept.failed {
                0 => Ok("noted".to_owned()),
                _ => Err(app::Error::Unavailable(app::error::Internal(
                    "it failed".to_owned(),
                ))),
            }
        })
    },
    meanwhile: &[told("it is gone at last", |stage| {
        Box::pin(async move { stage.confirm("vm-s").await })
    })],
};
