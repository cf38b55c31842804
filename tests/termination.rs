//! The terminate function over the engine and a VM controller that answers over HTTP: orders are
//! followed once, what failed comes again, nothing is stopped that the state did not condemn, and a
//! unit is free only once its VM is gone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use app::ports::TerminationOrder;
use domain::{Tier, VmStatus};
use runtime::controller::{HttpController, verify};
use runtime::{Function, orders, terminate};
use serde_json::{Value, json};
use testkit::engine::Fault;
use testkit::events::{batch, failed, message};
use testkit::fixtures::{AUDIENCE_ORG, NODE, RESERVATION, id, spot, unit, vm};
use testkit::services::{ControllerServer, Script};
use testkit::stage::{RESERVED, Stage};

const SECRET: &str = "the controller's secret";
/// Redeliveries of a message before a test gives up.
const DELIVERIES_MAX: usize = 40;

/// A stage with a controller beside it, and the function between them.
struct Scene {
    stage: Stage,
    controller: ControllerServer,
    function: Function,
}

impl Scene {
    async fn on(stage: Stage) -> Self {
        let controller = ControllerServer::start().await.unwrap();
        let function = function(&stage, &controller.url());
        Self {
            stage,
            controller,
            function,
        }
    }

    /// Spot VMs `spot-0`, `spot-1`, … on the first units of the reservation, one on each, those
    /// below `condemned` condemned by a reclaim.
    async fn with_spots(count: usize, condemned: usize) -> Self {
        let stage = Stage::set().await;
        stage.release(0..count).await;
        for number in 0..count {
            let name = format!("spot-{number}");
            assert!(stage.seat(&spot(&name, number..=number)).await);
        }
        stage.reclaim(0..condemned).await;
        for number in 0..condemned {
            stage.condemn(&format!("spot-{number}")).await;
        }
        Self::on(stage).await
    }

    /// The ids of the messages that came back.
    async fn deliver(&self, messages: &[Value]) -> Vec<String> {
        let reply = self.function.invoke(batch(messages)).await.unwrap();
        failed(&reply).unwrap()
    }

    /// The VMs that the controller was told to stop, in order of their names.
    fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self.controller.calls().into_iter().map(|c| c.vm).collect();
        told.sort();
        told
    }

    async fn status(&self, name: &str) -> VmStatus {
        self.stage.vm(name).await.status
    }

    /// Who sits on a unit of the reservation.
    async fn occupant(&self, number: usize) -> Option<String> {
        let slots = self.stage.reservation().await.slots;
        let there = slots[&unit(number)].occupant.clone();
        there.map(|occupant| occupant.vm.to_string())
    }
}

fn function(stage: &Stage, url: &str) -> Function {
    let (store, clock) = (Arc::new(stage.store()), stage.clock().clone());
    let controller = HttpController::new(url, SECRET, clock.clone());
    terminate::function(store, Arc::new(controller), clock, stage.ids().clone())
}

/// The message that orders this VM to stop; its id is the VM's name.
fn order(name: &str) -> Value {
    order_as(name, name)
}

fn order_as(message_id: &str, name: &str) -> Value {
    let order = TerminationOrder {
        vm: id(name),
        node: id(NODE),
        reservation: Some(id(RESERVATION)),
        version: domain::Version::FIRST.next(),
    };
    message(message_id, &orders::encode(&order).unwrap())
}

#[tokio::test]
async fn each_answer_of_a_controller_concerns_its_own_message() {
    let scene = Scene::with_spots(RESERVED, RESERVED).await;
    let pool = [("pool-4", 4), ("pool-5", 5)];
    for (name, number) in pool {
        assert!(scene.stage.seat_in_pool(&spot(name, number..=number)).await);
        scene.stage.stop(name).await;
    }
    let answers = [
        ("spot-0", Script::State("gone")),
        ("spot-1", Script::Status(404)),
        ("spot-2", Script::Status(410)),
        ("spot-3", Script::Status(409)),
        ("pool-4", Script::Status(500)),
        ("pool-5", Script::State("paused")),
    ];
    let mut messages = vec![message("malformed", "{")];
    for (name, answer) in answers {
        scene.controller.script(name, &[answer]);
        messages.push(order(name));
    }
    let came_back = scene.deliver(&messages).await;
    assert_eq!(came_back, ["malformed", "spot-3", "pool-4", "pool-5"]);
    for (place, (name, _)) in answers.iter().enumerate() {
        let expected = [VmStatus::Terminated, VmStatus::Terminating][usize::from(place >= 3)];
        assert_eq!(scene.status(name).await, expected, "{name}");
    }
    assert_eq!(scene.occupant(3).await, Some("spot-3".to_owned()));
    let slots = scene.stage.node().await.slots;
    assert!(
        pool.iter()
            .all(|(_, number)| slots[&unit(*number)].occupant.is_some())
    );

    // What came back is delivered again, and by now the machines have done their part.
    let again: Vec<Value> = came_back.iter().skip(1).map(|name| order(name)).collect();
    assert_eq!(scene.deliver(&again).await, [""; 0]);
    for (name, _) in answers {
        assert_eq!(scene.status(name).await, VmStatus::Terminated, "{name}");
    }
    assert_eq!(scene.stage.vm("spot-3").await.attempts, 2);
    assert_eq!(scene.stage.vm("spot-0").await.attempts, 1);
}

#[tokio::test]
async fn a_machine_that_hangs_delays_its_own_vm_alone() {
    let scene = Scene::with_spots(RESERVED, RESERVED).await;
    scene
        .controller
        .script("spot-1", &[Script::After(Duration::from_secs(60))]);
    let messages: Vec<Value> = (0..RESERVED).map(|n| order(&format!("spot-{n}"))).collect();
    let delivery = scene.deliver(&messages);
    let came_back = tokio::time::timeout(Duration::from_secs(30), delivery).await;
    assert_eq!(
        came_back.unwrap(),
        ["spot-1"],
        "the call is given up before it hangs the batch"
    );
    for number in [0, 2, 3] {
        assert_eq!(scene.occupant(number).await, None);
    }
    assert_eq!(scene.status("spot-1").await, VmStatus::Terminating);
    assert_eq!(scene.occupant(1).await, Some("spot-1".to_owned()));
    assert_eq!(scene.deliver(&[order("spot-1")]).await, [""; 0]);
    assert_eq!(scene.occupant(1).await, None);
}

#[tokio::test]
async fn a_unit_is_free_only_once_its_vm_is_gone() {
    let scene = Scene::with_spots(1, 1).await;
    let stopping = [Script::Status(202), Script::State("stopping")];
    scene.controller.script("spot-0", &stopping);
    let tenant = vm("tenant", Tier::Verified, AUDIENCE_ORG, 0..1);
    for _ in stopping {
        assert!(
            !scene.stage.seat(&tenant).await,
            "a dying VM still has the unit"
        );
        assert_eq!(scene.deliver(&[order("spot-0")]).await, ["spot-0"]);
        assert_eq!(scene.status("spot-0").await, VmStatus::Terminating);
    }
    assert!(!scene.stage.seat(&tenant).await);
    assert_eq!(scene.deliver(&[order("spot-0")]).await, [""; 0]);
    assert_eq!(scene.status("spot-0").await, VmStatus::Terminated);
    assert!(scene.stage.seat(&tenant).await);
}

#[tokio::test]
async fn an_order_that_comes_again_is_followed_once() {
    let scene = Scene::with_spots(2, 1).await;
    let before = scene.stage.reservation().await.version;
    let repeats = ["a", "b", "c"].map(|message_id| order_as(message_id, "spot-0"));
    assert_eq!(scene.deliver(&repeats).await, [""; 0], "even all at once");
    let told = scene.told();
    assert!(told.iter().all(|name| name == "spot-0"), "{told:?}");
    assert_eq!(scene.status("spot-0").await, VmStatus::Terminated);
    let after = scene.stage.reservation().await;
    assert_eq!(
        after.version,
        before.next(),
        "one confirmation, whoever came first"
    );

    // The unit has its next tenant by the time that the order comes once more.
    assert!(
        scene
            .stage
            .seat(&vm("tenant", Tier::Verified, AUDIENCE_ORG, 0..1))
            .await
    );
    let held = scene.stage.reservation().await;
    assert_eq!(scene.deliver(&repeats).await, [""; 0]);
    assert_eq!(scene.told(), told, "a VM that is gone is nobody's business");
    assert_eq!(scene.stage.reservation().await, held);
    assert_eq!(scene.status("tenant").await, VmStatus::Running);
}

#[tokio::test]
async fn an_order_for_a_vm_that_is_not_condemned_is_not_followed() {
    let scene = Scene::with_spots(3, 1).await;
    assert!(
        scene
            .stage
            .seat(&vm("tenant", Tier::Verified, AUDIENCE_ORG, 3..4))
            .await
    );
    let before = scene.stage.reservation().await;
    let others = ["spot-1", "spot-2", "tenant", "nobody"];
    let messages: Vec<Value> = others.iter().map(|name| order(name)).collect();
    assert_eq!(
        scene.deliver(&messages).await,
        [""; 0],
        "coming again would not make it right"
    );
    assert_eq!(scene.told(), [""; 0]);
    assert_eq!(scene.stage.reservation().await, before);
    for name in &others[..3] {
        let vm = scene.stage.vm(name).await;
        assert_eq!((vm.status, vm.attempts), (VmStatus::Running, 0), "{name}");
    }
}

#[tokio::test]
async fn nobody_elses_vm_is_touched() {
    let scene = Scene::with_spots(3, 1).await;
    assert!(
        scene
            .stage
            .seat(&vm("tenant", Tier::Verified, AUDIENCE_ORG, 3..4))
            .await
    );
    assert!(scene.stage.seat_in_pool(&spot("pool-4", 4..5)).await);
    let others = ["spot-1", "spot-2", "tenant", "pool-4"];
    let mut before = Vec::new();
    for name in others {
        before.push(scene.stage.vm(name).await);
    }
    let (slots, pool) = (
        scene.stage.reservation().await.slots,
        scene.stage.node().await,
    );
    assert_eq!(scene.deliver(&[order("spot-0")]).await, [""; 0]);
    assert_eq!(scene.told(), ["spot-0"]);
    for (name, vm) in others.iter().zip(before) {
        assert_eq!(scene.stage.vm(name).await, vm);
    }
    let after = scene.stage.reservation().await.slots;
    assert!((1..RESERVED).all(|n| after[&unit(n)] == slots[&unit(n)]));
    assert_eq!(scene.stage.node().await, pool);
}

#[tokio::test]
async fn a_vm_on_units_of_two_custodians_leaves_both_at_once() {
    let stage = Stage::bare().await;
    assert!(stage.seat_in_pool(&spot("wide", [3, 4])).await);
    assert!(stage.seat_in_pool(&spot("near", 5..6)).await);
    stage.reserve(RESERVATION, 0..RESERVED).await;
    stage.condemn("wide").await;
    let scene = Scene::on(stage).await;
    assert_eq!(
        scene.deliver(&[order("wide"), order("near")]).await,
        [""; 0]
    );
    assert_eq!(scene.occupant(3).await, None);
    let pool = scene.stage.node().await.slots;
    assert!(pool[&unit(4)].occupant.is_none() && pool[&unit(5)].occupant.is_some());
    assert_eq!(scene.told(), ["wide"]);
}

#[tokio::test]
async fn a_condemned_vm_dies_after_its_reservation_has_ended() {
    let scene = Scene::with_spots(2, 1).await;
    scene.stage.end().await;
    let ended = scene.stage.reservation().await.version;
    assert_eq!(
        scene.deliver(&[order("spot-0"), order("spot-1")]).await,
        [""; 0]
    );
    assert_eq!(scene.told(), ["spot-0"]);
    let pool = scene.stage.node().await.slots;
    assert!(pool[&unit(0)].occupant.is_none() && pool[&unit(1)].occupant.is_some());
    let noted = scene.stage.reservation().await;
    assert_eq!(noted.version, ended.next(), "its trail tells the end");
}

#[tokio::test]
async fn a_message_that_is_no_order_fails_alone_and_tells_nobody() {
    let scene = Scene::with_spots(1, 1).await;
    let bodies = [
        "",
        "null",
        "[]",
        "{\"vmId\":\"spot-0\"}",
        "{\"vmId\":\"spot-0\",\"nodeId\":\"node-1\",\"version\":0}",
        "{\"vmId\":\"spot-0\",\"nodeId\":\"node-1\",\"version\":\"2\"}",
        "{\"vmId\":\"spot 0\",\"nodeId\":\"node-1\",\"version\":2}",
        "{\"vmId\":\"../spot-0\",\"nodeId\":\"node-1\",\"version\":2}",
    ];
    let mut messages: Vec<Value> = bodies
        .iter()
        .enumerate()
        .map(|(place, body)| message(&place.to_string(), body))
        .collect();
    messages.push(json!({ "messageId": "without body" }));
    let mut expected: Vec<String> = (0..bodies.len()).map(|place| place.to_string()).collect();
    expected.push("without body".to_owned());
    assert_eq!(scene.deliver(&messages).await, expected);
    assert_eq!(scene.told(), [""; 0]);
    messages.push(order("spot-0"));
    assert_eq!(scene.deliver(&messages).await, expected);
    assert_eq!(scene.status("spot-0").await, VmStatus::Terminated);
}

#[tokio::test]
async fn a_message_without_an_id_fails_the_whole_batch_before_anything_happens() {
    let scene = Scene::with_spots(1, 1).await;
    for wrong in [json!(null), json!(""), json!(7)] {
        let mut nameless = order("spot-0");
        nameless["messageId"] = wrong;
        let event = batch(&[order("spot-0"), nameless]);
        let answer = scene.function.invoke(event).await;
        assert_eq!(answer.unwrap_err().kind, "BadEvent");
    }
    assert_eq!(scene.told(), [""; 0]);
}

#[tokio::test]
async fn every_call_is_signed_for_its_own_body_and_instant() {
    let scene = Scene::with_spots(2, 2).await;
    assert_eq!(scene.deliver(&[order("spot-0")]).await, [""; 0]);
    let later = scene.stage.clock().advance_ms(60_000);
    assert_eq!(scene.deliver(&[order("spot-1")]).await, [""; 0]);
    let calls = scene.controller.calls();
    let [first, second] = calls.as_slice() else {
        panic!("two calls: {calls:?}");
    };
    for call in [first, second] {
        let at = call.field("sentAt");
        assert!(verify(SECRET, &at, &call.body, &call.signature));
        assert!(!verify("another secret", &at, &call.body, &call.signature));
        let altered = call.body.replace("spot-", "VICTIM-");
        assert!(!verify(SECRET, &at, &altered, &call.signature));
        assert_eq!(
            call.field("vmId"),
            call.vm,
            "the path names whom the body names"
        );
        assert_eq!(call.field("nodeId"), NODE);
        assert_eq!(call.field("reservationId"), RESERVATION);
    }
    assert_eq!(second.field("sentAt"), later.to_string());
    // An old call cannot be passed off as a fresh one.
    assert!(!verify(
        SECRET,
        &second.field("sentAt"),
        &first.body,
        &first.signature
    ));
    assert!(!verify(
        SECRET,
        &first.field("sentAt"),
        &first.body,
        &second.signature
    ));
}

#[tokio::test]
async fn a_controller_that_cannot_be_reached_leaves_the_vm_condemned() {
    let scene = Scene::with_spots(1, 1).await;
    let nowhere = {
        let closed = ControllerServer::start().await.unwrap();
        closed.url()
    };
    let cut_off = function(&scene.stage, &nowhere);
    for _ in 0..2 {
        let reply = cut_off.invoke(batch(&[order("spot-0")])).await.unwrap();
        assert_eq!(failed(&reply).unwrap(), ["spot-0"]);
        assert_eq!(scene.status("spot-0").await, VmStatus::Terminating);
        assert_eq!(scene.occupant(0).await, Some("spot-0".to_owned()));
    }
    assert_eq!(scene.deliver(&[order("spot-0")]).await, [""; 0]);
    assert_eq!(scene.occupant(0).await, None);
}

/// Faults in the way of the confirmation, of which the machine knows nothing: it is asked again and
/// says that the VM is gone already.
#[tokio::test]
async fn a_confirmation_that_was_refused_is_made_when_the_order_comes_again() {
    for conflicts in [1, 30] {
        let scene = Scene::with_spots(1, 1).await;
        let version = scene.stage.reservation().await.version;
        scene.controller.script("spot-0", &[Script::State("gone")]);
        let wire = scene.stage.engine().wire();
        for _ in 0..conflicts {
            wire.fail("TransactWriteItems", Fault::Conflict);
        }
        let mut deliveries = 1;
        while scene.deliver(&[order("spot-0")]).await == ["spot-0"] {
            assert_eq!(scene.status("spot-0").await, VmStatus::Terminating);
            assert_eq!(scene.occupant(0).await, Some("spot-0".to_owned()));
            scene.controller.script("spot-0", &[Script::Status(404)]);
            deliveries += 1;
            assert!(deliveries < DELIVERIES_MAX, "{conflicts} conflicts");
        }
        assert_eq!(
            deliveries > 1,
            conflicts > 1,
            "one conflict is the store's own affair"
        );
        assert_eq!(wire.faults_left(), 0);
        assert_eq!(scene.status("spot-0").await, VmStatus::Terminated);
        assert_eq!(scene.occupant(0).await, None);
        assert_eq!(scene.stage.reservation().await.version, version.next());
    }
}

#[tokio::test]
async fn a_confirmation_whose_reply_was_lost_counts_once() {
    let scene = Scene::with_spots(1, 1).await;
    let version = scene.stage.reservation().await.version;
    let wire = scene.stage.engine().wire();
    wire.forget_tokens();
    wire.fail("TransactWriteItems", Fault::lost_reply());
    wire.fail("UpdateItem", Fault::lost_reply());
    assert_eq!(scene.deliver(&[order("spot-0")]).await, [""; 0]);
    assert_eq!(scene.stage.reservation().await.version, version.next());
    let gone = scene.stage.vm("spot-0").await;
    assert_eq!((gone.status, gone.attempts), (VmStatus::Terminated, 1));
}
