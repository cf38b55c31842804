//! VMs: placed, stopped, confirmed, condemned, counted.

use std::sync::Arc;

use app::Error;
use app::ports::{CondemnVm, CountAttempt};
use app::vms::{Place, VmRequest, Wanted, create};
use app::{settle, vms};
use domain::vm::Sentence;
use domain::{Tier, VmStatus};
use testkit::fixtures::{
    self, AUDIENCE_ORG, NODE, RESERVATION, STRANGER_ORG, id, now, owner, stranger, unit_set,
};
use testkit::stage::Stage;

use super::custody::{sold, sold_again};
use super::{Case, told};

async fn buy(stage: Arc<Stage>, unit: usize) -> Result<String, Error> {
    let request = VmRequest {
        org: id(STRANGER_ORG),
        name: "bought".to_owned(),
        tier: Tier::Spot,
        wanted: Wanted::Units(unit_set([unit])),
        place: Place::Node(id(NODE), None),
    };
    let (store, context) = (stage.store(), stage.context(stranger()));
    let (clock, ids) = (stage.clock(), stage.ids());
    let vm = create(&store, clock, ids, &context, request, None).await?;
    let stored = vms::get(&store, &context, &vm.id).await?;
    assert_eq!(stored.units, vm.units, "what the caller heard of is there");
    Ok(format!("{vm:?}"))
}

/// The only VM that was bought.
async fn bought(stage: &Stage) -> String {
    let org = id(STRANGER_ORG);
    let store = stage.engine().another_store();
    let page = app::ports::ListVms::list_vms(&store, &org, None, 10).await;
    let page = page.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(page.items.len(), 1, "bought once");
    page.items[0].id.to_string()
}

pub(super) const PLACE_ON_A_RESERVATION: Case = Case {
    name: "place on a reservation",
    operation: "TransactWriteItems",
    before: |stage| Box::pin(async move { stage.release([0, 1]).await }),
    call: |stage| Box::pin(buy(stage, 0)),
    meanwhile: &[
        told("the unit is reclaimed", |stage| {
            Box::pin(async move {
                stage.reclaim([0]).await;
            })
        }),
        told("the other unit is sold", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, AUDIENCE_ORG, [1]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        told("the VM is stopped and gone", |stage| {
            Box::pin(async move {
                let vm = bought(&stage).await;
                stage.stop(&vm).await;
                stage.confirm(&vm).await;
            })
        }),
        told("the VM is gone and its unit sold again", |stage| {
            Box::pin(async move {
                let vm = bought(&stage).await;
                stage.stop(&vm).await;
                stage.confirm(&vm).await;
                let buyer = fixtures::vm("vm-u", Tier::Spot, AUDIENCE_ORG, [0]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        told("the reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
    ],
};

pub(super) const PLACE_IN_THE_POOL: Case = Case {
    name: "place in the pool",
    operation: "TransactWriteItems",
    before: |_| Box::pin(async {}),
    call: |stage| Box::pin(buy(stage, 4)),
    meanwhile: &[
        told("the unit is reserved", |stage| {
            Box::pin(async move { stage.reserve("res-2", [4]).await })
        }),
        told("the VM is stopped", |stage| {
            Box::pin(async move { stage.stop(&bought(&stage).await).await })
        }),
    ],
};

pub(super) const STOP: Case = Case {
    name: "stop",
    operation: "TransactWriteItems",
    before: |stage| Box::pin(sold(stage)),
    call: |stage| {
        Box::pin(async move {
            let (store, context) = (stage.store(), stage.context(stranger()));
            let vm = settle::stop(&store, stage.clock(), &context, &id("vm-s")).await?;
            Ok(format!("{vm:?}"))
        })
    },
    meanwhile: &[
        told("its unit is reclaimed", |stage| {
            Box::pin(async move {
                stage.reclaim([0]).await;
            })
        }),
        told("it is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
        told("it is gone and its unit sold again", |stage| {
            Box::pin(async move {
                stage.confirm("vm-s").await;
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [0]);
                assert!(stage.seat(&buyer).await);
            })
        }),
        told("the reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
        told("it is gone and the reservation ended", |stage| {
            Box::pin(async move {
                stage.confirm("vm-s").await;
                stage.end().await;
            })
        }),
    ],
};

async fn confirm(stage: Arc<Stage>) -> Result<String, Error> {
    let (store, context) = (stage.store(), stage.context(owner()));
    let (clock, node, vm) = (stage.clock(), id(NODE), id("vm-s"));
    let vm = settle::confirm(&store, clock, &context, &node, &vm).await?;
    assert_eq!(vm.status, VmStatus::Terminated);
    Ok(format!("{vm:?}"))
}

pub(super) const CONFIRM: Case = Case {
    name: "confirm",
    operation: "TransactWriteItems",
    before: |stage| {
        Box::pin(async move {
            sold(Arc::clone(&stage)).await;
            stage.reclaim([0]).await;
            stage.condemn("vm-s").await;
        })
    },
    call: |stage| Box::pin(confirm(stage)),
    meanwhile: &[
        told("the unit goes to a tenant", |stage| {
            Box::pin(async move {
                let tenant = fixtures::vm("vm-u", Tier::Community, AUDIENCE_ORG, [0]);
                assert!(stage.seat(&tenant).await);
            })
        }),
        told("the unit is sold again and reclaimed", |stage| {
            Box::pin(async move {
                stage.release([0]).await;
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [0]);
                assert!(stage.seat(&buyer).await);
                stage.reclaim([0]).await;
            })
        }),
        told("another confirms it too", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
        told("the reservation is ended", |stage| {
            Box::pin(async move { stage.end().await })
        }),
    ],
};

pub(super) const CONFIRM_WITH_A_NOTE: Case = Case {
    name: "confirm with a note",
    before: |stage| {
        Box::pin(async move {
            sold(Arc::clone(&stage)).await;
            stage.reclaim([0]).await;
            stage.end().await;
        })
    },
    meanwhile: &[
        told("the unit is sold again", |stage| {
            Box::pin(async move {
                let buyer = fixtures::vm("vm-u", Tier::Spot, STRANGER_ORG, [0]);
                assert!(stage.seat_in_pool(&buyer).await);
            })
        }),
        told("the unit is reserved again", |stage| {
            Box::pin(async move { stage.reserve("res-2", [0]).await })
        }),
    ],
    ..CONFIRM
};

pub(super) const CONDEMN: Case = Case {
    name: "condemn",
    operation: "UpdateItem",
    before: |stage| {
        Box::pin(async move {
            sold(Arc::clone(&stage)).await;
            stage.reclaim([0]).await;
        })
    },
    call: |stage| {
        Box::pin(async move {
            let sentence = Sentence {
                reservation: Some(id(RESERVATION)),
                version: stage.reservation().await.version,
                at: now(),
            };
            let store = stage.store();
            let vm = store.condemn(&id("vm-s"), &sentence, "reclaimed").await?;
            let condemned = vm.is_some_and(|vm| vm.status >= VmStatus::Terminating);
            Ok(format!("condemned: {condemned}"))
        })
    },
    meanwhile: &[
        told("an attempt is counted", |stage| {
            Box::pin(async move { count(&stage).await })
        }),
        told("it is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
        told("it is gone and its unit sold again", |stage| {
            Box::pin(async move { sold_again(&stage).await })
        }),
    ],
};

async fn count(stage: &Stage) {
    let counted = stage.store().count_attempt(&id("vm-s")).await;
    counted.unwrap_or_else(|error| panic!("{error}"));
}

pub(super) const COUNT: Case = Case {
    name: "count",
    operation: "UpdateItem",
    before: CONFIRM.before,
    call: |stage| {
        Box::pin(async move {
            stage.store().count_attempt(&id("vm-s")).await?;
            Ok("counted".to_owned())
        })
    },
    meanwhile: &[
        told("another attempt is counted", |stage| {
            Box::pin(async move { count(&stage).await })
        }),
        told("three more attempts are counted", |stage| {
            Box::pin(async move {
                for _ in 0..3 {
                    count(&stage).await;
                }
            })
        }),
        told("it is gone", |stage| {
            Box::pin(async move { stage.confirm("vm-s").await })
        }),
    ],
};
