//! Release, reclaim, end, and a new reservation.

use std::sync::Arc;

use app::Error;
use app::capacity::UnitsRequest;
use app::end::ChangeRequest;
use app::ports::LoadReservations as _;
use app::reservations::ReserveRequest;
use app::{end, reclaim, release, reservations};
use domain::{Tier, Version};
use testkit::fixtures::{
    self, AUDIENCE_ORG, MANAGER_ORG, NODE, RESERVATION, STRANGER_ORG, id, manager, operator, owner,
    unit_set,
};
use testkit::stage::Stage;

use super::{Case, told, untold};

/// Sells released unit 0 to a stranger; unit 1 stays empty, a tenant sits on unit 2.
pub(super) async fn sold(stage: Arc<Stage>) {
    stage.release([0, 1]).await;
    assert!(
        stage
            .seat(&fixtures::vm("vm-s", Tier::Spot, STRANGER_ORG, [0]))
            .await
    );
    let tenant = fixtures::vm("vm-t", Tier::Community, AUDIENCE_ORG, [2]);
    assert!(stage.seat(&tenant).await);
}

/// The victim is gone, and its unit sold to another.
pub(super) async fn sold_again(stage: &Stage) {
    stage.confirm("vm-s").await;
    stage.release([0]).await;
    assert!(
        stage
            .seat(&fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [0]))
            .await
    );
}

fn request(numbers: impl IntoIterator<Item = usize>, expected: Option<Version>) -> UnitsRequest {
    UnitsRequest {
        node: id(NODE),
        id: id(RESERVATION),
        units: unit_set(numbers),
        expected,
        reason: Some("hush: for a test".to_owned()),
    }
}

async fn release_now(stage: Arc<Stage>, expected: Option<Version>) -> Result<String, Error> {
    let (context, request) = (stage.context(manager()), request([0, 1], expected));
    let done = release::release(
        &stage.store(),
        stage.clock(),
        stage.ids(),
        &context,
        request,
    )
    .await?;
    assert!(done.version > Version::FIRST, "the answer has the change");
    Ok("released".to_owned())
}

pub(super) const RELEASE: Case = Case {
    name: "release",
    operation: "UpdateItem",
    before: |_| Box::pin(async {}),
    call: |stage| Box::pin(release_now(stage, None)),
    meanwhile: &[
        told("a unit is sold", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-s", Tier::Spot, STRANGER_ORG, [0]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        told("they are reclaimed", |stage| {
            Box::pin(async move {
                stage.reclaim([0, 1]).await;
            })
        }),
        told("one is sold and reclaimed", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-s", Tier::Spot, STRANGER_ORG, [0]);
                assert!(stage.seat(&buyer).await);
                stage.reclaim([0]).await;
            })
        }),
        told("the reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
    ],
};

pub(super) const RELEASE_OF_A_VERSION: Case = Case {
    name: "release of a version",
    call: |stage| Box::pin(release_now(stage, Some(Version::FIRST))),
    ..RELEASE
};

async fn reclaim_now(stage: Arc<Stage>, expected: Option<Version>) -> Result<String, Error> {
    let (context, request) = (stage.context(manager()), request([0, 1, 2], expected));
    let done = reclaim::reclaim(
        &stage.store(),
        stage.clock(),
        stage.ids(),
        &context,
        request,
    )
    .await?;
    Ok(format!("{:?}", done.victims))
}

pub(super) const RECLAIM: Case = Case {
    name: "reclaim",
    operation: "UpdateItem",
    before: |stage| Box::pin(sold(stage)),
    call: |stage| Box::pin(reclaim_now(stage, None)),
    meanwhile: &[
        told("another unit is released", |stage| {
            Box::pin(async move { stage.release([3]).await })
        }),
        told("the victim is stopped by its org", |stage| {
            Box::pin(async move { stage.stop("vm-s").await })
        }),
        told("the victim is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
        told("the victim is gone and its unit sold again", |stage| {
            Box::pin(async move { sold_again(&stage).await })
        }),
        told("the empty unit is released and sold", |stage| {
            Box::pin(async move {
                stage.release([1]).await;
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [1]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        untold("two VMs have come and gone on a unit", |stage| {
            Box::pin(async move {
                sold_again(&stage).await;
                stage.reclaim([0]).await;
                stage.confirm("vm-u").await;
            })
        }),
        untold("the reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
    ],
};

pub(super) const RECLAIM_OF_A_VERSION: Case = Case {
    name: "reclaim of a version",
    call: |stage| {
        Box::pin(async move {
            // After the release and two purchases.
            reclaim_now(stage, Version::stored(4)).await
        })
    },
    ..RECLAIM
};

pub(super) const END: Case = Case {
    name: "end",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move {
            sold(Arc::clone(&stage)).await;
            stage.reclaim([0]).await;
        })
    },
    call: |stage| {
        Box::pin(async move {
            let (context, clock) = (stage.context(operator()), stage.clock());
            let request = ChangeRequest {
                node: id(NODE),
                id: id(RESERVATION),
                expected: Some(stage.reservation().await.version),
                reason: None,
            };
            let done = end::end(&stage.store(), clock, &context, &request, None).await?;
            Ok(format!("{done:?}"))
        })
    },
    meanwhile: &[
        told("a unit is sold in the pool", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [1]);
                assert!(stage.seat_in_pool(&buyer).await);
            })
        }),
        told("the units are reserved again", |stage| {
            Box::pin(async move { stage.reserve("res-2", 0..4).await })
        }),
        told("the condemned VM is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
    ],
};

pub(super) const RESERVE: Case = Case {
    name: "reserve",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move {
            let there = fixtures::vm("vm-p", Tier::Spot, STRANGER_ORG, [4]);
            assert!(stage.seat_in_pool(&there).await);
        })
    },
    call: |stage| {
        Box::pin(async move {
            let request = ReserveRequest {
                node: id(NODE),
                units: unit_set([4]),
                audience: [id(AUDIENCE_ORG)].into(),
                managers: [id(MANAGER_ORG)].into(),
                starts: None,
                ends: None,
                contract_ref: None,
                reason: None,
            };
            let (store, context) = (stage.store(), stage.context(owner()));
            let (clock, ids) = (stage.clock(), stage.ids());
            let made = reservations::create(&store, clock, ids, &context, request, None).await?;
            let stored = store.load_reservation(&made.node, &made.id).await?;
            assert!(stored.is_some(), "what the caller heard of is there");
            Ok(format!("{made:?}"))
        })
    },
    meanwhile: &[
        told("another unit is reserved", |stage| {
            Box::pin(async move { stage.reserve("res-2", [5]).await })
        }),
        told("a unit is sold in the pool", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [5]);
                assert!(stage.seat_in_pool(&buyer).await);
            })
        }),
        told("the condemned VM is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-p").await })
        }),
    ],
};
