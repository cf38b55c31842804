//! Sixteen tasks release, reclaim, buy and stop on one reservation at once, while VMs that must go
//! are stopped and confirmed. Whatever the order: no unit has two VMs, no VM that is not spot is
//! condemned or sits on a released unit, every condemned VM ends terminated, and nobody else's
//! does.
//!
//! In each round all tasks act at once, and beside them whoever carries the stops out. Over the
//! store in memory that is an agent, which confirms what the node lists, for a thousand rounds.
//! Over the engine it is the stream function with the orders it sends, as in production, until the
//! tasks have acted a thousand times.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod images;
mod party;

use std::sync::Arc;

use app::Error;
use app::ports::{Commit, CustodyMove, Write};
use app::terminate::{Outcome, TerminateError, terminate};
use dynamo::DynamoStore;
use runtime::Function;
use testkit::engine::Engine;
use testkit::events::batch;
use testkit::fixtures::{self, write};
use testkit::stream::StreamReader;
use testkit::{MemoryStore, RecordingOrders, ScriptedController, Store};
use tokio::task::JoinSet;

use images::check_placements;
use party::Party;

/// Tasks that act at once.
const TASKS: usize = 16;
/// Rounds in memory.
const ROUNDS: usize = 1_000;
/// Rounds over the engine: the tasks act a thousand times together.
const ENGINE_ROUNDS: usize = ROUNDS.div_ceil(TASKS);
/// Units of the node.
const UNITS: usize = 8;
/// Units of it that the reservation holds.
const RESERVED: usize = 6;

/// The node with its reservation.
async fn seed(store: &impl Store) {
    let before = fixtures::node(UNITS);
    let put = store.put_node(&before, &write(0xe001)).await;
    assert_eq!(put, Ok(Write::Done(())));
    let (reservation, node) = fixtures::reserved(&before, 0..RESERVED);
    let change = CustodyMove {
        node_seen: before.version,
        node,
        reservation_seen: None,
        reservation,
        write: write(0xe002),
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
}

/// Starts one round of all tasks.
fn act<S: Store + Clone + 'static>(party: &Arc<Party<S>>, round: usize) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let party = Arc::clone(party);
        tasks.spawn(async move { party.round(round * TASKS + task).await });
    }
    tasks
}

/// Waits for all of them; one that failed fails the test.
async fn join(mut tasks: JoinSet<()>) {
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_nothing_is_sold_twice_and_exactly_the_condemned_die() {
    let store = MemoryStore::default();
    seed(&store).await;
    let party = Arc::new(Party::new(store.clone()));
    for round in 0..ROUNDS {
        let tasks = act(&party, round);
        party.confirm_listed().await;
        join(tasks).await;
        assert_eq!(store.world().violations(), []);
    }
    while party.confirm_listed().await > 0 {}
    party.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_engine_nothing_is_sold_twice_and_exactly_the_condemned_die() {
    let engine = Engine::start().await;
    seed(&engine.store()).await;
    let party = Arc::new(Party::new(engine.store()));
    let mut platform = Platform::start(&engine, &party).await;
    for round in 0..ENGINE_ROUNDS {
        let tasks = act(&party, round);
        platform.follow(&party).await;
        join(tasks).await;
    }
    while platform.follow(&party).await {}
    assert_eq!(
        party.confirm_listed().await,
        0,
        "the orders have done it all"
    );
    party.check().await;
}

/// What follows from the changes of the table, and carries it out.
struct Platform {
    reader: StreamReader,
    stream: Function,
    orders: RecordingOrders,
    carried_out: usize,
    controller: ScriptedController,
}

impl Platform {
    async fn start(engine: &Engine, party: &Party<DynamoStore>) -> Self {
        let orders = RecordingOrders::default();
        let (store, sends) = (Arc::new(engine.store()), Arc::new(orders.clone()));
        Self {
            reader: StreamReader::start(engine).await,
            stream: runtime::stream::function(store, sends, party.clock.clone()),
            orders,
            carried_out: 0,
            controller: ScriptedController::default(),
        }
    }

    /// Hands the changes up to now to the stream function, and the orders that it sends to the
    /// machines. Returns whether there was anything.
    async fn follow(&mut self, party: &Party<DynamoStore>) -> bool {
        let records = self.reader.next().await;
        records.iter().for_each(check_placements);
        if !records.is_empty() {
            let reply = self.stream.invoke(batch(&records)).await.unwrap();
            let failed = reply["batchItemFailures"].as_array().map(Vec::len);
            assert_eq!(failed, Some(0), "{reply}");
        }
        let sent = self.orders.sent();
        for order in &sent[self.carried_out..] {
            let (store, clock, ids) = (&party.store, &party.clock, &party.ids);
            // Beside so many writers a confirmation may lose every race: the order comes again.
            let done = loop {
                match terminate(store, &self.controller, clock, ids, order).await {
                    Ok(done) => break done,
                    Err(TerminateError::Store(Error::Unavailable(_))) => {}
                    Err(other) => panic!("{order:?}: {other:?}"),
                }
            };
            assert_ne!(done, Outcome::NotCondemned, "{order:?}");
        }
        let more = !records.is_empty() || sent.len() > self.carried_out;
        self.carried_out = sent.len();
        more
    }
}
