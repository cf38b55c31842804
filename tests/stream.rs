//! The stream function over the engine: whatever the stream repeats, tears apart, delays or spoils,
//! the end is the same and nothing is lost.
//!
//! The records are the engine's own, taken off its stream after each step of a story that ends with
//! VMs condemned in every way there is. Every delivery of them has a stage of its own, on which the
//! same has happened.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use app::ports::{SendError, SendOrders, TerminationOrder};
use domain::audit::{EventType, Record, verify};
use domain::{ReservationId, Tier, VmStatus};
use runtime::{Function, stream};
use serde_json::{Value, json};
use testkit::engine::Fault;
use testkit::events::{batch, failed, sequence_number};
use testkit::fixtures::{AUDIENCE_ORG, RESERVATION, id, spot, vm};
use testkit::stage::Stage;
use testkit::stream::StreamReader;
use testkit::{RecordingOrders, Rng};

/// Those that the story condemns.
const CONDEMNED: [&str; 3] = ["pool-wide", "reclaimed", "stopped"];
/// Those that it does not, or that were gone before the stream told of it.
const OTHERS: [&str; 3] = ["kept", "gone", "tenant"];
/// Redeliveries of a batch before a test gives up.
const DELIVERIES_MAX: usize = 40;

/// A stage on which the story has happened, with its records, none of them delivered yet.
struct Story {
    stage: Stage,
    steps: Vec<Vec<Value>>,
    orders: RecordingOrders,
}

impl Story {
    /// Plays it: a spot VM in the pool loses one of its units to a new reservation; units are
    /// released, sold and reclaimed; a VM is stopped by its own org; one is gone before its end is
    /// told; the reservation ends with condemned VMs on it.
    async fn play() -> Self {
        let stage = Stage::bare().await;
        let mut reader = StreamReader::start(stage.engine()).await;
        let mut steps = vec![reader.drain().await];
        assert!(stage.seat_in_pool(&spot("pool-wide", [3, 4])).await);
        steps.push(reader.drain().await);
        stage.reserve(RESERVATION, 0..4).await;
        steps.push(reader.drain().await);
        assert!(
            stage
                .seat(&vm("tenant", Tier::Verified, AUDIENCE_ORG, 2..3))
                .await
        );
        steps.push(reader.drain().await);
        stage.release(0..2).await;
        steps.push(reader.drain().await);
        assert!(stage.seat(&spot("gone", 0..1)).await);
        assert!(stage.seat(&spot("stopped", 1..2)).await);
        steps.push(reader.drain().await);
        stage.stop("stopped").await;
        steps.push(reader.drain().await);
        stage.reclaim(0..1).await;
        steps.push(reader.drain().await);
        stage.confirm("gone").await;
        steps.push(reader.drain().await);
        stage.release(0..1).await;
        assert!(stage.seat(&spot("reclaimed", 0..1)).await);
        steps.push(reader.drain().await);
        stage.reclaim(0..1).await;
        steps.push(reader.drain().await);
        stage.end().await;
        steps.push(reader.drain().await);
        // A second reservation takes one unit from under a VM; the other stays in the pool.
        stage.reserve("res-2", [2]).await;
        assert!(stage.seat_in_pool(&spot("kept", 5..6)).await);
        steps.push(reader.drain().await);
        Self {
            stage,
            steps,
            orders: RecordingOrders::default(),
        }
    }

    fn records(&self) -> Vec<Value> {
        self.steps.concat()
    }

    fn function(&self) -> Function {
        self.function_with(self.orders.clone())
    }

    fn function_with(&self, orders: impl SendOrders + 'static) -> Function {
        let (store, clock) = (Arc::new(self.stage.store()), self.stage.clock().clone());
        stream::function(store, Arc::new(orders), clock)
    }

    /// What is left in the end.
    async fn outcome(&self) -> Outcome {
        let mut vms = BTreeMap::new();
        for name in CONDEMNED.iter().chain(&OTHERS) {
            if let Some(vm) = self.stage.find_vm(name).await {
                let by = vm.sentence.and_then(|sentence| sentence.reservation);
                vms.insert((*name).to_owned(), (vm.status, vm.status_reason, by));
            }
        }
        let mut trails = Vec::new();
        for reservation in [RESERVATION, "res-2"] {
            trails.push(self.stage.trail(reservation).await);
        }
        let told = self.orders.vms().iter().map(ToString::to_string).collect();
        Outcome { vms, trails, told }
    }
}

type State = (VmStatus, Option<String>, Option<ReservationId>);

#[derive(Debug, PartialEq)]
struct Outcome {
    vms: BTreeMap<String, State>,
    trails: Vec<Vec<Record>>,
    told: BTreeSet<String>,
}

/// Delivers records as an event source mapping does: from the failed one on again, until all are
/// done. Returns the sequence numbers that came back.
async fn deliver(function: &Function, records: &[Value]) -> Vec<String> {
    let (mut rest, mut came_back) = (records, Vec::new());
    for _ in 0..DELIVERIES_MAX {
        let reply = function.invoke(batch(rest)).await.unwrap();
        let ids = failed(&reply).unwrap();
        let [id] = ids.as_slice() else {
            assert_eq!(ids, [""; 0], "the first failed record stands for the rest");
            return came_back;
        };
        let from = rest.iter().position(|record| sequence_number(record) == id);
        rest = &rest[from.unwrap()..];
        came_back.push(id.clone());
    }
    panic!("{DELIVERIES_MAX} deliveries were not enough; last came back {came_back:?}");
}

/// The outcome of an undisturbed delivery.
async fn undisturbed() -> Outcome {
    let story = Story::play().await;
    assert_eq!(deliver(&story.function(), &story.records()).await, [""; 0]);
    story.outcome().await
}

/// The item that a record tells of.
fn item(record: &Value) -> String {
    record["dynamodb"]["Keys"].to_string()
}

#[tokio::test]
async fn every_condemned_vm_is_marked_and_ordered_to_stop_and_the_trail_has_no_gap() {
    let story = Story::play().await;
    deliver(&story.function(), &story.records()).await;
    let Outcome { vms, trails, told } = story.outcome().await;
    assert_eq!(told, CONDEMNED.map(str::to_owned).into());
    for name in CONDEMNED {
        assert_eq!(vms[name].0, VmStatus::Terminating, "{name}");
    }
    assert_eq!(vms["gone"].0, VmStatus::Terminated);
    assert_eq!(
        (vms["kept"].0, vms["tenant"].0),
        (VmStatus::Running, VmStatus::Running)
    );
    let version = story.stage.reservation().await.version;
    assert!(verify(&trails[0], version).is_ok());
    assert!(
        trails
            .iter()
            .flatten()
            .all(|r| r.event.event != EventType::Gap)
    );
    for vm in CONDEMNED {
        let orders = story.orders.sent();
        let count = orders.iter().filter(|order| order.vm == id(vm)).count();
        // A VM on units of two custodians is told of by the records of both.
        assert!((1..=2).contains(&count), "{vm}: {orders:?}");
    }
}

#[tokio::test]
async fn a_batch_repeated_from_any_point_changes_nothing() {
    let story = Story::play().await;
    let (function, records) = (story.function(), story.records());
    deliver(&function, &records).await;
    let expected = story.outcome().await;
    for from in 0..records.len() {
        assert_eq!(deliver(&function, &records[from..]).await, [""; 0]);
        assert_eq!(story.outcome().await, expected, "from {from}");
    }
}

#[tokio::test]
async fn a_record_that_comes_twice_in_a_row_counts_once() {
    let expected = undisturbed().await;
    let story = Story::play().await;
    let twice: Vec<Value> = story
        .records()
        .iter()
        .flat_map(|r| [r.clone(), r.clone()])
        .collect();
    assert_eq!(deliver(&story.function(), &twice).await, [""; 0]);
    assert_eq!(story.outcome().await, expected);
}

#[tokio::test]
async fn an_old_record_after_newer_ones_changes_nothing() {
    let story = Story::play().await;
    let (function, records) = (story.function(), story.records());
    deliver(&function, &records).await;
    let expected = story.outcome().await;
    for record in records.iter().rev() {
        assert_eq!(
            deliver(&function, std::slice::from_ref(record)).await,
            [""; 0]
        );
    }
    assert_eq!(story.outcome().await, expected);
}

fn permutations(records: &[Value]) -> Vec<Vec<Value>> {
    if records.len() < 2 {
        return vec![records.to_vec()];
    }
    let each = (0..records.len()).flat_map(|first| {
        let mut rest = records.to_vec();
        let head = rest.remove(first);
        permutations(&rest).into_iter().map(move |mut tail| {
            tail.insert(0, head.clone());
            tail
        })
    });
    each.collect()
}

#[tokio::test]
async fn the_records_of_one_transaction_may_come_in_every_order() {
    let expected = undisturbed().await;
    let plain = Story::play().await;
    // Steps of one transaction: each item has one record in them. The first step sets the stage.
    let single = |step: &&Vec<Value>| {
        let items: BTreeSet<String> = step.iter().map(item).collect();
        step.len() > 1 && items.len() == step.len()
    };
    let places: Vec<usize> = (1..plain.steps.len())
        .filter(|place| single(&&plain.steps[*place]))
        .collect();
    assert!(places.len() >= 6, "{places:?}");
    for place in places {
        for order in 0..permutations(&plain.steps[place]).len() {
            let story = Story::play().await;
            let mut steps = story.steps.clone();
            steps[place] = permutations(&steps[place]).remove(order);
            deliver(&story.function(), &steps.concat()).await;
            assert_eq!(
                story.outcome().await,
                expected,
                "step {place}, order {order}"
            );
        }
    }
}

/// The records of one item stay in order; those of different items come as they like.
#[tokio::test]
async fn the_records_of_different_items_may_come_apart() {
    let expected = undisturbed().await;
    for seed in 0..25 {
        let story = Story::play().await;
        let mut queues: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for record in story.records().into_iter().rev() {
            queues.entry(item(&record)).or_default().push(record);
        }
        let (mut mixed, rng) = (Vec::new(), &mut Rng::new(seed));
        while !queues.is_empty() {
            let name = queues.keys().nth(rng.below(queues.len())).unwrap().clone();
            let queue = queues.get_mut(&name).unwrap();
            mixed.extend(queue.pop());
            if queue.is_empty() {
                queues.remove(&name);
            }
        }
        deliver(&story.function(), &mixed).await;
        assert_eq!(story.outcome().await, expected, "seed {seed}");
    }
}

#[tokio::test]
async fn a_record_ahead_of_its_predecessor_is_returned_and_waits() {
    let expected = undisturbed().await;
    let story = Story::play().await;
    let (function, records) = (story.function(), story.records());
    let own = |record: &&Value| item(record).contains("RES#res-1");
    let of_reservation: Vec<&Value> = records.iter().filter(own).collect();
    let early = of_reservation[3];
    let reply = function
        .invoke(batch(std::slice::from_ref(early)))
        .await
        .unwrap();
    assert_eq!(failed(&reply).unwrap(), [sequence_number(early)]);
    assert_eq!(story.stage.trail(RESERVATION).await, []);
    assert_eq!(deliver(&function, &records).await, [""; 0]);
    assert_eq!(story.outcome().await, expected);
}

/// Images that no version of the product has written, each with what is wrong with it.
fn spoil(record: &Value, how: usize) -> Value {
    let mut bad = record.clone();
    let image = &mut bad["dynamodb"]["NewImage"];
    match how {
        0 => image["ver"] = json!({ "N": "many" }),
        1 => image["slots"] = json!({ "S": "none" }),
        2 => image["type"] = Value::Null,
        3 => *image = json!("an image"),
        4 => *image = json!({ "PK": { "S": "NODE#node-1" } }),
        5 => image["slots"] = json!({ "M": { "": { "M": {} } } }),
        6 => bad["dynamodb"]["OldImage"] = json!({ "status": { "X": 1 } }),
        _ => image["status"] = json!({ "S": "undecided" }),
    }
    bad
}

#[tokio::test]
async fn a_poison_record_is_named_and_holds_up_what_follows_until_it_is_mended() {
    let expected = undisturbed().await;
    for how in 0..8 {
        let story = Story::play().await;
        let (function, records) = (story.function(), story.records());
        let place = records
            .iter()
            .rposition(|r| item(r).contains("RES#res-1"))
            .unwrap();
        let mut spoilt = records.clone();
        spoilt[place] = spoil(&records[place], how);
        for _ in 0..3 {
            let reply = function.invoke(batch(&spoilt)).await.unwrap();
            let poison = sequence_number(&records[place]);
            assert_eq!(failed(&reply).unwrap(), [poison], "spoilt in way {how}");
        }
        let held = story.stage.reservation().await.version;
        let trail = story.stage.trail(RESERVATION).await;
        let before = verify(&trail, held.previous().unwrap());
        assert!(before.is_ok(), "all before it is done: {before:?}");
        assert_eq!(story.stage.trail("res-2").await, [], "nothing after it is");
        assert_eq!(deliver(&function, &records[place..]).await, [""; 0]);
        assert_eq!(story.outcome().await, expected, "spoilt in way {how}");
    }
}

#[tokio::test]
async fn a_record_without_a_sequence_number_fails_the_whole_batch() {
    let story = Story::play().await;
    let mut records = story.records();
    for wrong in [json!(null), json!(""), json!(7)] {
        records[0]["dynamodb"]["SequenceNumber"] = wrong;
        let answer = story.function().invoke(batch(&records)).await;
        assert_eq!(answer.unwrap_err().kind, "BadEvent");
    }
    assert_eq!(story.orders.sent(), []);
}

/// What the service may leave out, or write in another form, than its documentation has.
#[tokio::test]
async fn fields_that_are_not_needed_may_be_missing_or_of_any_form() {
    let expected = undisturbed().await;
    let story = Story::play().await;
    let mut records = story.records();
    for (place, record) in records.iter_mut().enumerate() {
        let fields = record.as_object_mut().unwrap();
        for name in [
            "eventVersion",
            "eventID",
            "awsRegion",
            "eventName",
            "eventSourceARN",
        ] {
            fields.remove(name);
        }
        fields.insert("userIdentity".to_owned(), json!({ "type": "Service" }));
        let change = record["dynamodb"].as_object_mut().unwrap();
        match place % 3 {
            0 => drop(change.remove("ApproximateCreationDateTime")),
            1 => drop(change.insert("ApproximateCreationDateTime".to_owned(), json!(1.5))),
            _ => drop(change.insert("ApproximateCreationDateTime".to_owned(), json!("now"))),
        }
        change.remove("SizeBytes");
        change.remove("StreamViewType");
    }
    assert_eq!(deliver(&story.function(), &records).await, [""; 0]);
    assert_eq!(story.outcome().await, expected);
}

#[tokio::test]
async fn deletions_and_items_of_others_have_no_consequence() {
    let story = Story::play().await;
    let mut records = story.records();
    for record in &mut records {
        let change = record["dynamodb"].as_object_mut().unwrap();
        change.remove("NewImage");
    }
    let foreign = json!({ "dynamodb": { "SequenceNumber": "9",
        "NewImage": { "type": { "S": "something else" }, "data": { "B": "AAECAw==" } } } });
    records.push(foreign);
    assert_eq!(deliver(&story.function(), &records).await, [""; 0]);
    assert_eq!(story.orders.sent(), []);
    assert_eq!(story.stage.trail(RESERVATION).await, []);
}

#[tokio::test]
async fn orders_that_the_queue_did_not_take_are_sent_again() {
    let expected = undisturbed().await;
    let story = Story::play().await;
    story.orders.fail_next(3);
    let came_back = deliver(&story.function(), &story.records()).await;
    assert_eq!(
        came_back.len(),
        3,
        "each failure is reported: {came_back:?}"
    );
    assert_eq!(story.outcome().await, expected);
}

/// A store that fails past all tries of its client, on each kind of call in turn.
#[tokio::test]
async fn a_failing_store_delays_and_loses_nothing() {
    let expected = undisturbed().await;
    for operation in ["UpdateItem", "PutItem", "Query"] {
        let story = Story::play().await;
        let wire = story.stage.engine().wire();
        for _ in 0..7 {
            wire.fail(operation, Fault::Broken);
        }
        let came_back = deliver(&story.function(), &story.records()).await;
        assert!(!came_back.is_empty(), "{operation}");
        assert_eq!(wire.faults_left(), 0, "{operation}");
        assert_eq!(story.outcome().await, expected, "{operation}");
    }
}

#[tokio::test]
async fn a_lost_reply_of_the_store_makes_no_second_record() {
    let expected = undisturbed().await;
    for operation in ["UpdateItem", "PutItem", "Query"] {
        let story = Story::play().await;
        for _ in 0..4 {
            story
                .stage
                .engine()
                .wire()
                .fail(operation, Fault::lost_reply());
        }
        deliver(&story.function(), &story.records()).await;
        assert_eq!(story.outcome().await, expected, "{operation}");
    }
}

/// A queue whose client panics.
struct Panics(RecordingOrders, std::sync::atomic::AtomicU32);

impl SendOrders for Panics {
    async fn send_orders(&self, orders: &[TerminationOrder]) -> Result<(), SendError> {
        let calls = self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert!(calls != 1, "the second call panics");
        self.0.send_orders(orders).await
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_of_its_record_alone() {
    let expected = undisturbed().await;
    let story = Story::play().await;
    let function = story.function_with(Panics(story.orders.clone(), 0.into()));
    let came_back = deliver(&function, &story.records()).await;
    assert_eq!(came_back.len(), 1, "{came_back:?}");
    assert_eq!(story.outcome().await, expected);
}
