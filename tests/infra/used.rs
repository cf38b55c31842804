//! What each function makes use of: its rights as they were needed on the wire, while everything
//! that it can be asked for was asked of it, by everybody, before and after the end of a term.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use app::sweep::Rules;
use domain::Caller;
use dynamo::Touch;
use http_api::routes::{Operation, ROUTES, Route};
use runtime::{Function, orders, stream, sweep, terminate};
use serde_json::{Value, json};
use testkit::engine::{Access, Engine, Wire};
use testkit::events::{HttpEvent, batch, failed, message};
use testkit::fixtures::{AUDIENCE_ORG, GPU_MODEL, NODE, audience, manager, now, operator};
use testkit::fixtures::{OWNER_ORG, owner, stranger};
use testkit::http::{Fleet, Platform, secret_of};
use testkit::stream::StreamReader;
use testkit::{RecordingOrders, ScriptedController, SeededIds, TestClock};

use crate::read;

/// What functions made use of, by their names.
pub(crate) type Used = BTreeMap<&'static str, BTreeSet<Access>>;

const MINUTE_MS: i64 = 60_000;

/// How calls that may come again are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Without an idempotency key.
    Plain,
    /// With one.
    Keyed,
}

/// A fleet on an engine whose wire tells what each function needs.
struct Scene {
    engine: Engine,
    platform: Platform<dynamo::DynamoStore>,
    fleet: Fleet,
    used: Used,
}

impl Scene {
    async fn set() -> Self {
        let engine = Engine::start().await;
        let platform = Platform::new(engine.store(), TestClock::default(), 1);
        let fleet = Fleet::build(&platform).await;
        engine.wire().watch();
        Self {
            engine,
            platform,
            fleet,
            used: Used::new(),
        }
    }

    fn wire(&self) -> &Wire {
        self.engine.wire()
    }

    /// Books what was needed since the last time to this function.
    fn book(&mut self, function: &'static str) {
        let taken = self.wire().take_accesses();
        self.used.entry(function).or_default().extend(taken);
    }

    fn book_orders(&mut self, function: &'static str, orders: &RecordingOrders) {
        if !orders.sent().is_empty() {
            let access = Access {
                action: "sqs:SendMessage".to_owned(),
                index: None,
                partition: None,
            };
            self.used.entry(function).or_default().insert(access);
        }
        self.book(function);
    }

    /// Calls the route; under an idempotency key once more when that has been answered.
    async fn ask(&mut self, route: &'static Route, by: &Caller, way: Way, request: HttpEvent) {
        let request = request.by(&secret_of(by));
        let key = format!("{}-{:?}", by.org, route.operation);
        let keyed = request.clone().header("idempotency-key", &key);
        let all = match way {
            Way::Keyed if route.repeatable => vec![keyed.clone(), keyed],
            Way::Keyed | Way::Plain => vec![request],
        };
        for request in all {
            let answer = self.platform.call(request).await;
            assert!(answer.status < 500, "{} {answer:?}", route.path);
            self.book(route.function.as_str());
        }
    }
}

/// Further calls of a route, for what its good call does not come to.
fn others(operation: Operation) -> Vec<HttpEvent> {
    let create = format!("/v1/orgs/{AUDIENCE_ORG}/vms/create");
    let post = |path: &str, body: Value| HttpEvent::new("POST", path).json(&body);
    match operation {
        Operation::CreateVm => vec![
            post(
                &create,
                json!({ "name": "w", "tier": "spot", "gpuModelId": GPU_MODEL, "gpuCount": 1 }),
            ),
            post(
                &create,
                json!({ "name": "w", "tier": "spot", "nodeId": NODE, "gpuCount": 1 }),
            ),
        ],
        Operation::PutNode => {
            let units = json!([{ "id": "u00" }]);
            let body = json!({ "ownerOrgId": OWNER_ORG, "gpuModelId": "new", "units": units });
            vec![HttpEvent::new("PUT", "/v1/nodes/node-newer").json(&body)]
        }
        Operation::ListAvailability => {
            let path = format!("/v1/gpu-availability?gpuModelId={GPU_MODEL}");
            vec![HttpEvent::new("GET", &path)]
        }
        Operation::CreateReservation => {
            // It begins when nobody looks, before the calls after the term.
            let body = json!({
                "reservedUnitIds": ["u04"],
                "allowedOrgIds": [AUDIENCE_ORG],
                "startsAt": now().plus_ms(MINUTE_MS).to_string(),
                "endsAt": now().plus_ms(500 * MINUTE_MS).to_string(),
            });
            vec![post(&format!("/v1/nodes/{NODE}/reservations"), body)]
        }
        _ => Vec::new(),
    }
}

/// The routes, those that end something last.
fn in_order() -> Vec<&'static Route> {
    let mut routes: Vec<&Route> = ROUTES.iter().collect();
    routes.sort_by_key(|route| {
        let last = [Operation::EndReservation, Operation::RevokeKey];
        last.contains(&route.operation)
    });
    routes
}

/// Everything is asked by this caller, before the term is over or after.
async fn calls(by: &Caller, way: Way, after_ms: i64) -> Used {
    let mut scene = Scene::set().await;
    if after_ms > 0 {
        for request in others(Operation::CreateReservation) {
            let made = scene.platform.call(request.by(&secret_of(&owner()))).await;
            assert!(made.is_good(), "{made:?}");
        }
        let _ = scene.wire().take_accesses();
        scene.platform.clock.set(now().plus_ms(after_ms));
    }
    for route in in_order() {
        let good = scene.fleet.call(route.operation);
        scene.ask(route, by, way, good).await;
        for other in others(route.operation) {
            scene.ask(route, by, way, other).await;
        }
    }
    scene.used
}

/// Hands the function all records of the stream, from its beginning.
async fn streamed(scene: &mut Scene) -> RecordingOrders {
    let (store, orders) = (Arc::new(scene.engine.store()), RecordingOrders::default());
    let clock = scene.platform.clock.clone();
    let function = stream::function(store, Arc::new(orders.clone()), clock);
    let records = StreamReader::start(&scene.engine).await.drain().await;
    let reply = function.invoke(batch(&records)).await;
    let reply = reply.unwrap_or_else(|error| unreachable!("{error}"));
    assert_eq!(failed(&reply), Some(Vec::new()), "all are worked off");
    scene.book_orders("stream", &orders);
    orders
}

async fn run(function: &Function, event: Value) {
    let reply = function.invoke(event).await;
    assert!(reply.is_ok(), "{reply:?}");
}

/// Which of the functions behind the API are at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// The stream is heard, and its orders are carried out at once.
    InTime,
    /// The stream is heard, and its orders are carried out days later.
    Late,
    /// The stream is not heard of.
    Unheard,
}

async fn worked_off(scene: &mut Scene, orders: &RecordingOrders) {
    let (clock, ids) = (scene.platform.clock.clone(), SeededIds::new(3));
    let (store, controller) = (
        Arc::new(scene.engine.store()),
        ScriptedController::default(),
    );
    let terminate = terminate::function(store, Arc::new(controller), clock, ids);
    for order in orders.sent() {
        let text = orders::encode(&order).unwrap_or_else(|error| unreachable!("{error}"));
        run(&terminate, batch(&[message(order.vm.as_str(), &text)])).await;
        scene.book("terminate");
    }
}

/// The stream function, the sweep and the terminate function at their work.
async fn reactions(work: Work) -> Used {
    let mut scene = Scene::set().await;
    // Something more to react to than the fleet has brought with it.
    let reclaim = scene.fleet.call(Operation::ReclaimUnits);
    let calls = others(Operation::CreateReservation).into_iter();
    for (by, call) in calls.map(|c| (owner(), c)).chain([(manager(), reclaim)]) {
        let answer = scene.platform.call(call.by(&secret_of(&by))).await;
        assert!(answer.is_good(), "{answer:?}");
    }
    let _ = scene.wire().take_accesses();
    let orders = match work {
        Work::Unheard => RecordingOrders::default(),
        Work::InTime | Work::Late => streamed(&mut scene).await,
    };
    if work == Work::InTime {
        worked_off(&mut scene, &orders).await;
    }
    let clock = scene.platform.clock.clone();
    let sweeping = RecordingOrders::default();
    let sweep = sweep::function(
        Arc::new(scene.engine.store()),
        Arc::new(sweeping.clone()),
        clock.clone(),
        SeededIds::new(4),
        Rules::default(),
    );
    // A drain that is not done, a term that begins, stops that are overdue, terms that are over,
    // trails whose ends have not come in a day.
    for minutes in [1, 2, 15, 61, 62, 501, 502, 1_502, 2_502, 4_000] {
        clock.set(now().plus_ms(minutes * MINUTE_MS));
        run(&sweep, json!({})).await;
        scene.book_orders("sweep", &sweeping);
    }
    worked_off(&mut scene, &orders).await;
    scene.used
}

/// What the process of a function needs before its first event, by what its `main.rs` touches; the
/// service of HTTP functions touches keys.
async fn start(engine: &Engine, function: &str) -> BTreeSet<Access> {
    let main = read(&format!("functions/{function}/src/main.rs"));
    let service = read("shared/runtime/src/bootstrap.rs");
    let source = match main.contains("bootstrap::service()") {
        true => &service,
        false => &main,
    };
    let touches = [Touch::Keys, Touch::Vms, Touch::Trails];
    let named = |touch: &Touch| source.contains(&format!("Touch::{touch:?})"));
    let touch = touches.into_iter().find(named);
    let touch = touch.unwrap_or_else(|| unreachable!("{function} touches nothing"));
    let opened = engine.store().touch(touch).await;
    assert_eq!(opened, Ok(()));
    engine.wire().take_accesses()
}

/// All of it.
pub(crate) async fn used() -> Used {
    let callers = [operator(), owner(), manager(), audience(), stranger()];
    let mut scenes = Vec::new();
    for caller in callers {
        for (way, after_ms) in [
            (Way::Plain, 0),
            (Way::Keyed, 0),
            (Way::Plain, 90 * MINUTE_MS),
        ] {
            let caller = caller.clone();
            scenes.push(tokio::spawn(
                async move { calls(&caller, way, after_ms).await },
            ));
        }
    }
    for work in [Work::InTime, Work::Late, Work::Unheard] {
        scenes.push(tokio::spawn(reactions(work)));
    }
    let mut all = Used::new();
    for scene in scenes {
        let used = scene.await.unwrap_or_else(|error| unreachable!("{error}"));
        for (function, accesses) in used {
            all.entry(function).or_default().extend(accesses);
        }
    }
    let engine = Engine::start().await;
    engine.wire().watch();
    for (function, accesses) in &mut all {
        accesses.extend(start(&engine, function).await);
    }
    all
}
