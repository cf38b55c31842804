//! What each call costs: requests to the store, counted on the wire, and units of capacity, as the
//! engine reports them for the table and every index.
//!
//! The reservation is a full one: 8 units, each with a VM on it and one that left before, ids of
//! the length of UUIDs, reasons of a sentence, all places for write ids taken. The figures of the
//! data model's table of costs are those asserted here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use app::auth::Permission;
use app::ports::{
    Commit, Custodian, CustodyMove, LoadNode, LoadReservations, MoveCustody, PlaceVm, PutKey,
    PutNode, ReclaimUnits, ReleaseUnits, SettleKind, SettleVm, Settlement, Write,
};
use app::react::{Change, react};
use domain::node::Register;
use domain::reservation::{Reclaim, Release, Reserve};
use domain::slot::Departed;
use domain::{
    Caller, Node, Occupant, Reservation, Tier, UnitId, UnitSet, Version, Vm, VmStatus, WriteId,
};
use dynamo::DynamoStore;
use http_api::{CursorKey, HttpFunction, Service, handlers};
use serde_json::{Value, json};
use testkit::engine::{Call, Engine};
use testkit::events::{HttpEvent, body, status};
use testkit::fixtures::{self, id, now, operator, owner, secret, stamp, write};
use testkit::{RecordingOrders, SeededIds, TestClock};

const NODE: &str = "0190a6f0-0000-7000-8000-00000000000a";
const RESERVATION: &str = "0190a6f0-0000-7000-8000-00000000000b";
const MANAGER: &str = "0190a6f0-0000-7000-8000-00000000000c";
const TENANT: &str = "0190a6f0-0000-7000-8000-00000000000d";
const MODEL: &str = "h100-sxm5-80gb";
const REASON: &str = "hush: the nightly training run is over until Tuesday.";

/// An id in the form of a UUID.
fn uuid(number: usize) -> String {
    format!("0190a6f0-0000-7000-8000-{number:012x}")
}

fn unit(number: usize) -> UnitId {
    id(&format!("gpu-{number:02}"))
}

fn unit_set(numbers: impl IntoIterator<Item = usize>) -> UnitSet {
    UnitSet::from_set(numbers.into_iter().map(unit).collect()).unwrap()
}

fn manager() -> Caller {
    Caller {
        org: id(MANAGER),
        key: id(&uuid(0xabc)),
        operator: false,
    }
}

/// The functions over an engine that measures, each as its own process has it.
struct Bench {
    engine: Engine,
    functions: Vec<HttpFunction>,
}

impl Bench {
    /// A node of 8 units, all in the hands of the full reservation.
    async fn set() -> Self {
        Self::with(8, true).await
    }

    /// The same with so many tenants, and with or without those who left before.
    async fn with(tenants: usize, departed: bool) -> Self {
        let engine = Engine::start().await;
        let store = engine.store();
        for (number, caller) in [(1, operator()), (2, owner()), (3, manager())] {
            let key = fixtures::api_key(&caller, &Permission::ALL);
            store.put_key(&secret(number).digest(), &key).await.unwrap();
        }
        let (reservation, node) = full(tenants, departed);
        let put = store.put_node(&node, &write(0xe0)).await.unwrap();
        assert_eq!(put, Write::Done(()));
        let change = CustodyMove {
            node_seen: node.version,
            node,
            reservation_seen: None,
            reservation,
            write: write(0xe2),
        };
        assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
        let cursors = CursorKey::new(b"a secret of sixteen bytes or more").unwrap();
        let (clock, ids) = (TestClock::at(now()), SeededIds::new(5));
        let service = || {
            let (store, clock) = (store.clone(), clock.clone());
            let cursors = cursors.clone();
            Arc::new(Service::new(store, clock, ids.clone(), cursors, 5_000))
        };
        let functions = vec![
            handlers::release(service()),
            handlers::reclaim(service()),
            handlers::end(service()),
            handlers::reservations(service()),
            handlers::vms(service()),
            handlers::nodes(service()),
            handlers::keys(service()),
        ];
        engine.wire().measure();
        let _ = engine.wire().take_calls();
        Self { engine, functions }
    }

    /// Calls a function by the holder of this key and returns its answer with what it cost.
    async fn call(&self, function: &str, key: u8, event: HttpEvent) -> (Value, Cost) {
        let mut functions = self.functions.iter();
        let function = functions.find(|f| f.name.as_str() == function).unwrap();
        let event = event.by(&secret(key)).build();
        let reply = function.invoke(event).await.unwrap();
        let cost = Cost::of(self.engine.wire().take_calls());
        assert!(matches!(status(&reply), 200 | 204), "{reply}");
        (body(&reply), cost)
    }

    /// Posts to a verb of the reservation.
    async fn verb(&self, verb: &str, key: u8, asked: &Value) -> (Value, Cost) {
        let path = format!("/v1/nodes/{NODE}/reservations/{RESERVATION}/{verb}");
        let event = HttpEvent::new("POST", &path).json(asked);
        self.call(verb, key, event).await
    }

    async fn get(&self, function: &str, path: &str) -> (Value, Cost) {
        self.call(function, 1, HttpEvent::new("GET", path)).await
    }

    async fn post(&self, function: &str, path: &str, asked: &Value) -> (Value, Cost) {
        let event = HttpEvent::new("POST", path).json(asked);
        self.call(function, 1, event).await
    }
}

/// Requests by their operations, with the units of reads and of writes.
#[derive(Debug, Clone, PartialEq)]
struct Cost {
    operations: Vec<String>,
    read: f64,
    written: f64,
}

impl Cost {
    fn of(calls: Vec<Call>) -> Self {
        let reads = |call: &&Call| matches!(&*call.operation, "GetItem" | "BatchGetItem" | "Query");
        let read = calls.iter().filter(reads).map(|call| call.units).sum();
        let all: f64 = calls.iter().map(|call| call.units).sum();
        Self {
            read,
            written: all - read,
            operations: calls.into_iter().map(|call| call.operation).collect(),
        }
    }

    /// Fails unless exactly these requests were made, at no more than so many units.
    fn assert(&self, what: &str, operations: &[&str], read_max: f64, written_max: f64) {
        assert_eq!(self.operations, operations, "{what}");
        assert!(
            self.read <= read_max && self.written <= written_max,
            "{what}: {self:?} is over {read_max} and {written_max}"
        );
        assert!(self.read + self.written > 0.0, "{what}: it is measured");
    }
}

/// The reservation with so many tenants, and its node.
fn full(tenants: usize, departed: bool) -> (Reservation, Node) {
    let register = Register {
        id: id(NODE),
        owner: id(fixtures::OWNER_ORG),
        gpu_model: id(MODEL),
        units: (0..8).map(|number| (unit(number), 1)).collect(),
        topology_gen: 1,
        stamp: stamp(operator(), 0xe0),
    };
    let command = Reserve {
        id: id(RESERVATION),
        units: unit_set(0..8),
        audience: [id(TENANT)].into(),
        managers: [id(MANAGER)].into(),
        starts: None,
        ends: Some(now().plus_ms(3_600_000)),
        contract_ref: Some("contract-2026-0042".to_owned()),
        stamp: fixtures::StampBuilder::new(domain::stamp::Actor::Caller(owner()), 0xe1)
            .because(REASON)
            .build(),
    };
    let (mut reservation, node) = domain::reservation::reserve(&register.node(), &command).unwrap();
    reservation.version = Version::stored(1_000_000).unwrap();
    for number in 0..8 {
        let write = WriteId::parse(&format!("{number:012x}")).unwrap();
        reservation.recent.note(&write, reservation.version);
    }
    for (number, slot) in reservation.slots.values_mut().enumerate() {
        let arrived = Version::stored(999_000).unwrap();
        // No spot VMs, so that the units can be released.
        slot.occupant = (number < tenants).then(|| Occupant {
            vm: id(&uuid(0x100 + number)),
            tier: Tier::Community,
            org: id(TENANT),
            dying: None,
            arrived,
        });
        slot.departed = departed.then(|| Departed {
            vm: id(&uuid(0x200 + number)),
            tier: Tier::Spot,
            arrived: Version::stored(998_000).unwrap(),
            left: Version::stored(998_500).unwrap(),
        });
    }
    (reservation, node)
}

fn all_units() -> Value {
    let names: Vec<String> = (0..8).map(|number| unit(number).to_string()).collect();
    json!({ "unitIds": names, "reason": REASON })
}

#[tokio::test]
async fn a_release_is_one_request_with_a_warm_key_and_two_without() {
    let bench = Bench::set().await;
    let (_, cost) = bench.verb("release", 3, &all_units()).await;
    cost.assert("cold", &["GetItem", "UpdateItem"], 1.0, 6.0);
    let (_, cost) = bench.verb("release", 3, &all_units()).await;
    cost.assert("warm", &["UpdateItem"], 0.0, 6.0);
}

#[tokio::test]
async fn a_reclaim_is_one_request_with_a_warm_key_and_two_without() {
    let bench = Bench::set().await;
    bench.verb("release", 3, &all_units()).await;
    let (_, cost) = bench.verb("reclaim", 3, &all_units()).await;
    cost.assert("cold", &["GetItem", "UpdateItem"], 1.0, 6.0);
    let (_, cost) = bench.verb("reclaim", 3, &all_units()).await;
    cost.assert("warm", &["UpdateItem"], 0.0, 6.0);
}

#[tokio::test]
async fn a_dry_run_reads_and_writes_nothing() {
    let bench = Bench::set().await;
    bench.verb("release", 3, &all_units()).await;
    let mut asked = all_units();
    asked["dryRun"] = json!(true);
    let (_, cost) = bench.verb("reclaim", 3, &asked).await;
    cost.assert("cold", &["GetItem", "GetItem"], 3.0, 0.0);
    let (_, cost) = bench.verb("reclaim", 3, &asked).await;
    cost.assert("warm", &["GetItem"], 2.0, 0.0);
}

#[tokio::test]
async fn a_refused_verb_is_one_request_as_well() {
    let bench = Bench::set().await;
    bench.verb("release", 3, &all_units()).await;
    let path = format!("/v1/nodes/{NODE}/reservations/{RESERVATION}/release");
    let asked = json!({ "unitIds": ["gpu-15"] });
    let event = HttpEvent::new("POST", &path).json(&asked).by(&secret(3));
    let reply = bench.functions[0].invoke(event.build()).await.unwrap();
    assert_eq!(status(&reply), 422, "{reply}");
    let cost = Cost::of(bench.engine.wire().take_calls());
    assert_eq!(cost.operations, ["UpdateItem"]);
}

#[tokio::test]
async fn an_end_is_two_reads_and_one_transaction() {
    // Those who left before take the item over 2 KB, and a transaction writes each KB twice.
    for (departed, written_max) in [(false, 11.0), (true, 13.0)] {
        let bench = Bench::with(8, departed).await;
        bench.verb("release", 3, &all_units()).await;
        let (_, cost) = bench.verb("end", 1, &json!({ "reason": REASON })).await;
        let requests = ["GetItem", "GetItem", "GetItem", "TransactWriteItems"];
        cost.assert("cold", &requests, 4.0, written_max);
        let (_, cost) = bench.verb("end", 1, &json!({})).await;
        assert!(cost.operations.iter().all(|o| o == "GetItem"), "{cost:?}");
    }
}

#[tokio::test]
async fn a_purchase_a_stop_and_its_confirmation_are_one_transaction_each() {
    let bench = Bench::with(6, true).await;
    bench.verb("release", 3, &all_units()).await;
    let path = format!("/v1/orgs/{TENANT}/vms/create");
    let asked = json!({
        "name": "train-1", "tier": "spot", "nodeId": NODE, "unitIds": ["gpu-07"]
    });
    bench.get("vms", &format!("/v1/orgs/{TENANT}/vms")).await;
    let (vm, cost) = bench.post("vms", &path, &asked).await;
    let requests = ["GetItem", "BatchGetItem", "TransactWriteItems"];
    cost.assert("by node", &requests, 3.0, 10.0);
    let asked = json!({ "name": "t", "tier": "spot", "gpuModelId": MODEL, "gpuCount": 1 });
    let (_, cost) = bench.post("vms", &path, &asked).await;
    assert_eq!(cost.operations.last().unwrap(), "TransactWriteItems");
    let queries = cost.operations.iter().filter(|o| *o == "Query").count();
    assert!(queries <= 8, "one for each shard at most: {cost:?}");
    let vm = vm["id"].as_str().unwrap();
    let (_, cost) = bench.get("vms", &format!("/v1/vms/{vm}")).await;
    cost.assert("get", &["GetItem"], 1.0, 0.0);
    let (_, cost) = bench.get("vms", &format!("/v1/orgs/{TENANT}/vms")).await;
    cost.assert("list", &["Query", "BatchGetItem"], 2.0, 0.0);
    let stop = format!("/v1/vms/{vm}/terminate");
    let (_, cost) = bench.post("vms", &stop, &json!({})).await;
    let requests = ["GetItem", "GetItem", "BatchGetItem", "TransactWriteItems"];
    cost.assert("stop", &requests, 4.0, 10.0);
    let node = format!("/v1/nodes/{NODE}");
    let (_, cost) = bench.get("nodes", &node).await;
    cost.assert("node", &["GetItem", "GetItem", "BatchGetItem"], 4.0, 0.0);
    let (_, cost) = bench.get("nodes", &format!("{node}/terminations")).await;
    let requests = ["GetItem", "BatchGetItem", "BatchGetItem"];
    cost.assert("terminations", &requests, 4.0, 0.0);
    let confirm = format!("{node}/terminations/{vm}/confirm");
    let (_, cost) = bench.post("nodes", &confirm, &json!({})).await;
    assert_eq!(cost.operations.last().unwrap(), "TransactWriteItems");
    assert!(cost.operations.len() <= 7, "{cost:?}");
    assert!(cost.written <= 8.0, "{cost:?}");
}

#[tokio::test]
async fn reads_of_reservations_are_one_request() {
    let bench = Bench::set().await;
    let list = format!("/v1/nodes/{NODE}/reservations");
    let (all, _) = bench.get("reservations", &list).await;
    assert_eq!(all["items"][0]["id"], RESERVATION);
    let (_, cost) = bench.get("reservations", &list).await;
    cost.assert("list", &["Query"], 1.0, 0.0);
    let one = format!("{list}/{RESERVATION}");
    let (_, cost) = bench.get("reservations", &one).await;
    cost.assert("get", &["GetItem"], 1.0, 0.0);
    let (_, cost) = bench.get("reservations", &format!("{one}/audit")).await;
    cost.assert("audit", &["GetItem", "Query"], 2.0, 0.0);
}

#[tokio::test]
async fn a_key_is_made_by_one_transaction_and_revoked_by_one_write() {
    let bench = Bench::set().await;
    let (_, cost) = bench.get("keys", "/v1/whoami").await;
    cost.assert("cold", &["GetItem"], 1.0, 0.0);
    let (_, cost) = bench.get("keys", "/v1/whoami").await;
    assert!(cost.operations.is_empty(), "warm: {cost:?}");
    let keys = format!("/v1/orgs/{MANAGER}/api-keys");
    let asked = json!({ "name": "n".repeat(128), "role": "member" });
    let (made, cost) = bench.post("keys", &format!("{keys}/create"), &asked).await;
    cost.assert("create", &["TransactWriteItems"], 0.0, 4.0);
    let (all, cost) = bench.get("keys", &keys).await;
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2));
    cost.assert("list", &["Query", "BatchGetItem"], 3.0, 0.0);
    let one = format!("{keys}/{}", made["id"].as_str().unwrap());
    for what in ["revoke", "revoke again"] {
        let event = HttpEvent::new("DELETE", &one);
        let (_, cost) = bench.call("keys", 1, event).await;
        cost.assert(what, &["GetItem", "UpdateItem"], 1.0, 1.0);
    }
    for open in ["/healthz", "/v1/openapi.json"] {
        let (_, cost) = bench.get("nodes", open).await;
        assert!(cost.operations.is_empty(), "{open}: {cost:?}");
    }
}

#[tokio::test]
async fn lists_over_nodes_are_a_query_and_a_batch() {
    let bench = Bench::set().await;
    let (_, _) = bench.get("nodes", "/v1/nodes").await;
    let (all, cost) = bench.get("nodes", "/v1/nodes").await;
    assert_eq!(all["items"][0]["id"], NODE);
    cost.assert("nodes", &["Query", "BatchGetItem"], 2.0, 0.0);
    let of_org = format!("/v1/orgs/{TENANT}/reservations");
    bench.get("reservations", &of_org).await;
    let (all, cost) = bench.get("reservations", &of_org).await;
    assert_eq!(all["items"][0]["id"], RESERVATION);
    let requests = ["Query", "Query", "Query", "BatchGetItem"];
    cost.assert("in any part", &requests, 4.0, 0.0);
    let in_one = format!("{of_org}?role=audience");
    let (_, cost) = bench.get("reservations", &in_one).await;
    cost.assert("in one part", &["Query", "BatchGetItem"], 2.0, 0.0);
    let free = "/v1/gpu-availability";
    bench.get("vms", free).await;
    let (_, cost) = bench.get("vms", free).await;
    let mut requests = vec!["Query"; 9];
    requests.push("BatchGetItem");
    // One for the models, one for each shard of the one there is, and its node.
    cost.assert("what is free", &requests, 6.0, 0.0);
}

#[tokio::test]
async fn making_a_node_or_a_reservation_writes_its_links_with_it() {
    let bench = Bench::set().await;
    let units: Vec<Value> = (0..8)
        .map(|number| json!({ "id": unit(number).to_string() }))
        .collect();
    let asked = json!({ "ownerOrgId": uuid(7), "gpuModelId": MODEL, "units": units });
    let path = format!("/v1/nodes/{}", uuid(8));
    let put = HttpEvent::new("PUT", &path).json(&asked);
    let (_, cost) = bench.call("nodes", 1, put).await;
    let requests = ["GetItem", "GetItem", "TransactWriteItems"];
    cost.assert("a node of a known model", &requests, 2.0, 8.0);
    let asked = json!({
        "reservedUnitIds": ["gpu-00", "gpu-01"],
        "allowedOrgIds": [TENANT],
        "managingOrgIds": [MANAGER],
    });
    let (_, cost) = bench
        .post("reservations", &format!("{path}/reservations"), &asked)
        .await;
    let requests = ["GetItem", "GetItem", "TransactWriteItems"];
    cost.assert("a reservation", &requests, 2.0, 17.0);
}

#[tokio::test]
async fn a_reaction_writes_each_thing_once() {
    let bench = Bench::with(6, true).await;
    bench.verb("release", 3, &all_units()).await;
    let store = bench.engine.store();
    let load = || async {
        let found = store.load_reservation(&id(NODE), &id(RESERVATION)).await;
        Box::new(found.unwrap().unwrap())
    };
    let asked = json!({
        "name": "train-1", "tier": "spot", "nodeId": NODE, "unitIds": ["gpu-07"]
    });
    let path = format!("/v1/orgs/{TENANT}/vms/create");
    bench.post("vms", &path, &asked).await;
    let old = Some(load().await);
    bench.verb("reclaim", 3, &all_units()).await;
    let change = Change::Reservation {
        old,
        new: load().await,
    };
    let _ = bench.engine.wire().take_calls();
    let orders = RecordingOrders::default();
    // So late that the records before count as lost, since nobody reacted to those changes.
    let late = now().plus_ms(600_000);
    react(&store, &orders, late, &change).await.unwrap();
    assert_eq!(orders.sent().len(), 1);
    let cost = Cost::of(bench.engine.wire().take_calls());
    let requests = [
        "UpdateItem",
        "Query",
        "Query",
        "PutItem",
        "PutItem",
        "PutItem",
    ];
    cost.assert("with a gap", &requests, 2.0, 6.0);
    react(&store, &orders, late, &change).await.unwrap();
    let again = Cost::of(bench.engine.wire().take_calls());
    assert_eq!(again.operations.len(), 4, "{again:?}");
}

/// An id of the longest kind that ends in this number.
fn longest(number: usize) -> String {
    format!("{}{number:04}", "u".repeat(124))
}

fn longest_units(count: usize) -> UnitSet {
    UnitSet::from_set((0..count).map(|n| id(&longest(n))).collect()).unwrap()
}

/// A reservation of as many units as there may be, all names of the longest kind.
async fn widest(store: &DynamoStore) -> (Reservation, Node) {
    let node = Register {
        id: id(&longest(1)),
        owner: id(&longest(2)),
        gpu_model: id(&longest(3)),
        units: (0..128).map(|n| (id(&longest(n)), 64)).collect(),
        topology_gen: u64::MAX,
        stamp: stamp(operator(), 0xe0),
    }
    .node();
    store.put_node(&node, &write(0xe0)).await.unwrap();
    let orgs = |from: usize| (from..from + 32).map(|n| id(&longest(n))).collect();
    let command = Reserve {
        id: id(&longest(4)),
        units: longest_units(64),
        audience: orgs(0),
        managers: orgs(500),
        starts: None,
        ends: Some(now().plus_ms(3_600_000)),
        contract_ref: Some("\u{fc}".repeat(512)),
        stamp: fixtures::StampBuilder::new(domain::stamp::Actor::Caller(operator()), 0xe1)
            .because(&"\u{fc}".repeat(512))
            .build(),
    };
    let (reservation, after) = domain::reservation::reserve(&node, &command).unwrap();
    let change = CustodyMove {
        node_seen: node.version,
        node: after,
        reservation_seen: None,
        reservation,
        write: write(0xe1),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    (change.reservation, change.node)
}

/// A VM over as many of these units as a call may name.
fn widest_vm(number: usize, node: &Node, units: UnitSet, tier: Tier) -> Vm {
    Vm {
        id: id(&longest(number)),
        org: id(&longest(5)),
        node: node.id.clone(),
        units: units.as_set().clone(),
        name: "\u{fc}".repeat(128),
        ..fixtures::vm("vm", tier, "org", [0])
    }
}

/// The store builds no expression over 4,096 bytes or 300 operators: it would fail the call.
#[tokio::test]
async fn the_longest_expressions_are_within_the_bounds_of_the_store() {
    let engine = Engine::start().await;
    let store = engine.store();
    let (reservation, node) = widest(&store).await;
    let by = Caller {
        org: id(&longest(500)),
        key: id(&longest(6)),
        operator: false,
    };
    let stamped = |number| {
        let actor = domain::stamp::Actor::Caller(by.clone());
        let stamp = fixtures::StampBuilder::new(actor, number);
        stamp.because(&"\u{fc}".repeat(512)).build()
    };
    let units = longest_units(domain::limits::UNITS_PER_REQUEST_MAX);
    let command = Release {
        units: units.clone(),
        expected: Some(Version::FIRST),
        stamp: stamped(1),
    };
    let done = store.release(&node.id, &reservation.id, &command).await;
    assert!(matches!(done, Ok(Write::Done(_))), "{done:?}");
    let held = Custodian::Reservation(reservation.id.clone());
    let on_market = widest_vm(7, &node, units.clone(), Tier::Spot);
    let placed = store.place(&on_market, &held, &stamped(2)).await;
    assert_eq!(placed, Ok(Commit::Done));
    let command = Reclaim {
        units: units.clone(),
        expected: Version::stored(3),
        stamp: stamped(3),
    };
    let done = store.reclaim(&node.id, &reservation.id, &command).await;
    assert!(matches!(done, Ok(Write::Done(_))), "{done:?}");
    let tenants = (32..64).map(|n| id(&longest(n))).collect();
    let tenants = UnitSet::from_set(tenants).unwrap();
    let tenant = widest_vm(8, &node, tenants, Tier::Verified);
    let placed = store.place(&tenant, &held, &stamped(4)).await;
    assert_eq!(placed, Ok(Commit::Done));
    let free = UnitSet::from_set((64..96).map(|n| id(&longest(n))).collect()).unwrap();
    let in_pool = widest_vm(9, &node, free, Tier::Spot);
    let placed = store.place(&in_pool, &Custodian::Pool, &stamped(5)).await;
    assert_eq!(placed, Ok(Commit::Done));
    for (number, vm, custodian) in [(0x10, on_market, held.clone()), (0x20, tenant, held)] {
        settled(&store, vm, custodian, number).await;
    }
    settled(&store, in_pool, Custodian::Pool, 0x30).await;
    let found = store.load_node(&node.id).await.unwrap();
    assert!(found.is_some(), "and the items are within 400 KB");
}

/// Stops the VM and confirms its stop.
async fn settled(store: &DynamoStore, vm: Vm, custodian: Custodian, number: u64) {
    let (running, dying, gone) = (
        VmStatus::Running,
        VmStatus::Terminating,
        VmStatus::Terminated,
    );
    let steps = [
        (SettleKind::Stop, running, dying),
        (SettleKind::Confirm, dying, gone),
    ];
    for (place, (kind, seen, status)) in (0..).zip(steps) {
        let change = Settlement {
            kind,
            seen,
            vm: Vm {
                status,
                ..vm.clone()
            },
            seats: vec![(custodian.clone(), vm.units.clone())],
            note: None,
            stamp: fixtures::system_stamp(number + place),
        };
        assert_eq!(store.settle(&change).await, Ok(Commit::Done));
    }
}
