//! The store's conditions and the domain's rules say the same: for thousands of random items,
//! commands and instants, a write goes through exactly when the rule allows it, and leaves exactly
//! what the rule makes.
//!
//! Each item is seeded at random and then meets a few random commands one after the other, so that
//! states which only the rules lead to are met as well. A failure names its seed; `RELET_SEED` runs
//! from another one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::future::Future;

use app::auth::{Permission, Principal};
use app::context::Context;
use app::end::ChangeRequest;
use app::ports::{
    Commit, Custodian, CustodyMove, Landed, LoadNode, LoadReservations, LoadVms, MoveCustody,
    PlaceVm, PutNode, ReclaimUnits, ReleaseUnits, Write,
};
use domain::reservation::{self, End, Ended, place};
use domain::stamp::Actor;
use domain::{Node, NodeId, Reservation, Timestamp, Version, Vm};
use dynamo::DynamoStore;
use testkit::engine::Engine;
use testkit::fixtures::{self, id, now, write};
use testkit::{Rng, TestClock, random};

/// Random commands of each operation.
const CASES: u64 = 10_000;
/// Random moves of slots: their condition is the versions alone.
const MOVES: u64 = 2_000;
/// Commands upon one item, one after the other.
const COMMANDS: u64 = 5;
/// Placements upon one item: fewer, since the first ones fill it.
const PLACEMENTS: u64 = 2;
/// Tasks that share the items.
const TASKS: u64 = 4;
/// Items that one engine gets.
const ITEMS_PER_ENGINE: usize = 50;
/// Each outcome must be at least this share of the cases, in percent: else half of it is hardly
/// tested.
const SHARE_MIN: u64 = 10;

fn first_seed() -> u64 {
    let given = std::env::var("RELET_SEED").ok();
    given
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_260_701)
}

/// Runs so many cases; `chain` gives one item its so many commands and says how many of them went
/// through.
async fn run<F, Fut>(cases: u64, commands: u64, chain: F)
where
    F: Fn(DynamoStore, u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = u64> + Send,
{
    let first = first_seed();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let chain = chain.clone();
            tokio::spawn(async move {
                let mut done = 0;
                let mut seeds = (task..cases / commands)
                    .step_by(usize::try_from(TASKS).unwrap())
                    .peekable();
                while seeds.peek().is_some() {
                    // A fresh engine now and then: its writes take longer the more it has seen.
                    let engine = Engine::start().await;
                    for seed in seeds.by_ref().take(ITEMS_PER_ENGINE) {
                        done += chain(engine.store(), first + seed).await;
                    }
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    let share = done * 100 / cases;
    assert!(
        (SHARE_MIN..=100 - SHARE_MIN).contains(&share),
        "{share} % of the cases went through: one outcome is hardly tested"
    );
}

/// An instant at the edge that many of the random terms have, or right beside it.
fn instant(rng: &mut Rng) -> Timestamp {
    now().plus_ms(rng.pick(&[0, 0, 0, 1, -1]))
}

fn node_id(seed: u64) -> NodeId {
    id(&format!("node-{seed}"))
}

/// Stores the reservation beside a node of its own.
async fn seed_reservation(store: &DynamoStore, seed: u64, reservation: &mut Reservation) {
    let mut node = fixtures::node(1);
    node.id = node_id(seed);
    reservation.node = node.id.clone();
    seed_pair(store, &node, reservation).await;
}

async fn seed_pair(store: &DynamoStore, node: &Node, reservation: &Reservation) {
    let put = store.put_node(node, &write(0xe0)).await.unwrap();
    assert_eq!(put, Write::Done(()));
    let change = CustodyMove {
        node_seen: node.version,
        node: node.clone(),
        reservation_seen: None,
        reservation: reservation.clone(),
        write: write(0xe1),
    };
    assert_eq!(store.move_custody(&change).await.unwrap(), Commit::Done);
}

async fn stored(store: &DynamoStore, like: &Reservation) -> Reservation {
    let found = store.load_reservation(&like.node, &like.id).await;
    found.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_goes_through_exactly_when_the_rule_allows_it() {
    run(CASES, COMMANDS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let mut present = random::reservation(rng, now());
        seed_reservation(&store, seed, &mut present).await;
        let mut through = 0;
        for _ in 0..COMMANDS {
            let at = instant(rng);
            let command = random::release(rng, &present, at);
            let rule = reservation::release(&present, &command).ok();
            let answer = store.release(&present.node, &present.id, &command).await;
            through += u64::from(rule.is_some());
            present = agreed(seed, present, rule, answer.unwrap());
        }
        assert_eq!(stored(&store, &present).await, present, "seed {seed}");
        through
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reclaim_goes_through_exactly_when_the_rule_allows_it() {
    run(CASES, COMMANDS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let mut present = random::reservation(rng, now());
        seed_reservation(&store, seed, &mut present).await;
        let mut through = 0;
        for _ in 0..COMMANDS {
            let at = instant(rng);
            let command = random::reclaim(rng, &present, at);
            let rule = reservation::reclaim(&present, &command).ok();
            let answer = store.reclaim(&present.node, &present.id, &command).await;
            through += u64::from(rule.is_some());
            present = agreed(seed, present, rule, answer.unwrap());
        }
        assert_eq!(stored(&store, &present).await, present, "seed {seed}");
        through
    })
    .await;
}

/// Fails unless the store did what the rule says. Returns the reservation as it is then, which the
/// store's answer carries: after a write the new image, after a refusal the one that stands.
fn agreed(
    seed: u64,
    before: Reservation,
    rule: Option<Reservation>,
    answer: Write<Landed, Reservation>,
) -> Reservation {
    match (answer, rule) {
        (Write::Done(landed), Some(after)) => {
            assert_eq!(landed.image, after, "seed {seed}");
            assert_eq!(landed.version, after.version, "seed {seed}");
            after
        }
        (Write::Refused(image), None) => {
            assert_eq!(image, before, "seed {seed}");
            before
        }
        (Write::Done(_), None) => {
            unreachable!("seed {seed}: the rule refuses, the store did not: {before:?}")
        }
        (Write::Refused(_), Some(_)) => {
            unreachable!("seed {seed}: the rule allows, the store refused: {before:?}")
        }
        (Write::Absent, _) => unreachable!("seed {seed}: the reservation is there"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_on_a_reservation_goes_through_exactly_when_the_rule_allows_it() {
    run(CASES, PLACEMENTS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let mut present = random::reservation(rng, now());
        seed_reservation(&store, seed, &mut present).await;
        let custodian = Custodian::Reservation(present.id.clone());
        let (mut seated, mut refused) = (Vec::new(), BTreeSet::new());
        for number in 0..PLACEMENTS {
            let now = instant(rng);
            let drawn = random::placement(rng, &present.slots, Some(&present.released), now);
            let vm = renamed(drawn, seed, number);
            let stamp = random::stamp(rng, now);
            let rule = place::place(&present, &vm, &stamp).ok();
            let answer = store.place(&vm, &custodian, &stamp).await.unwrap();
            committed(seed, answer, rule.is_some(), &vm);
            match rule {
                Some(after) => {
                    assert_eq!(stored(&store, &present).await, after, "seed {seed}");
                    present = after;
                    seated.push(vm);
                }
                None => {
                    refused.insert(vm.id);
                }
            }
        }
        assert_eq!(stored(&store, &present).await, present, "seed {seed}");
        only_these(&store, seed, seated, refused).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_in_the_pool_goes_through_exactly_when_the_rule_allows_it() {
    run(CASES, PLACEMENTS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let mut present = random::node(rng, now());
        present.id = node_id(seed);
        let put = store.put_node(&present, &write(0xe0)).await.unwrap();
        assert_eq!(put, Write::Done(()));
        let (mut seated, mut refused) = (Vec::new(), BTreeSet::new());
        for number in 0..PLACEMENTS {
            let now = instant(rng);
            let drawn = random::placement(rng, &present.slots, None, now);
            let vm = renamed(drawn, seed, number);
            let stamp = random::stamp(rng, now);
            let rule = present.place(&vm, &stamp).ok();
            let answer = store.place(&vm, &Custodian::Pool, &stamp).await.unwrap();
            committed(seed, answer, rule.is_some(), &vm);
            match rule {
                Some(after) => {
                    let found = store.load_node(&present.id).await.unwrap();
                    assert_eq!(found.as_ref(), Some(&after), "seed {seed}");
                    present = after;
                    seated.push(vm);
                }
                None => {
                    refused.insert(vm.id);
                }
            }
        }
        let found = store.load_node(&present.id).await.unwrap();
        assert_eq!(found, Some(present), "seed {seed}");
        only_these(&store, seed, seated, refused).await
    })
    .await;
}

fn renamed(vm: Vm, seed: u64, number: u64) -> Vm {
    Vm {
        id: id(&format!("vm-{seed}-{number}")),
        node: node_id(seed),
        ..vm
    }
}

fn committed(seed: u64, answer: Commit, allowed: bool, vm: &Vm) {
    let expected = if allowed { Commit::Done } else { Commit::Lost };
    assert_eq!(answer, expected, "seed {seed}: {vm:?}");
}

/// Fails unless exactly those VMs that were seated are there. Returns how many they are.
async fn only_these(
    store: &DynamoStore,
    seed: u64,
    seated: Vec<Vm>,
    refused: BTreeSet<domain::VmId>,
) -> u64 {
    let all = seated.iter().map(|vm| vm.id.clone()).chain(refused);
    let found = store.load_vms(&all.collect()).await.unwrap();
    assert_eq!(found, seated, "seed {seed}");
    u64::try_from(seated.len()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_goes_through_exactly_when_the_rule_allows_it() {
    run(CASES, COMMANDS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let (mut present, mut pool) = random::pair(rng, now());
        pool.id = node_id(seed);
        present.node = pool.id.clone();
        seed_pair(&store, &pool, &present).await;
        let mut through = 0;
        for _ in 0..COMMANDS {
            let at = instant(rng);
            let mut command = random::end(rng, &present, at);
            let context = context_of(&mut command);
            let answer = ended(&store, &context, &present, &command).await;
            match reservation::end(&present, &pool, &command) {
                Ok(Ended::Now(both)) => (present, pool) = *both,
                Ok(Ended::Already) => {}
                Err(refusal) => {
                    let wrong = format!("seed {seed}: {refusal}: {present:?} {command:?}");
                    assert!(answer.is_none(), "{wrong}");
                    continue;
                }
            }
            assert_eq!(answer.as_ref(), Some(&present), "seed {seed}: {command:?}");
            through += 1;
        }
        assert_eq!(stored(&store, &present).await, present, "seed {seed}");
        let found = store.load_node(&pool.id).await.unwrap();
        assert_eq!(found, Some(pool), "seed {seed}");
        through
    })
    .await;
}

/// The reservation after the end that this call asks for; `None` if it was refused.
async fn ended(
    store: &DynamoStore,
    context: &Context,
    like: &Reservation,
    command: &End,
) -> Option<Reservation> {
    let clock = TestClock::at(command.stamp.now);
    let request = ChangeRequest {
        node: like.node.clone(),
        id: like.id.clone(),
        expected: command.expected,
        reason: command.stamp.reason.clone(),
    };
    match app::end::end(store, &clock, context, &request, None).await {
        Ok(image) => Some(image),
        Err(app::Error::Refused { .. }) => None,
        Err(other) => unreachable!("the store does its part: {other:?}"),
    }
}

/// A call that gives this command. The platform itself never calls, so an operator does instead.
fn context_of(command: &mut End) -> Context {
    if command.stamp.actor == Actor::System {
        command.stamp.actor = Actor::Caller(fixtures::operator());
    }
    let caller = command.stamp.caller().unwrap().clone();
    let request_id = format!("00000000-0000-7000-8000-{}", command.stamp.write.as_str());
    command.stamp.request_id.clone_from(&request_id);
    Context {
        principal: Principal {
            caller,
            permissions: [Permission::ReservationCapacity].into(),
            role: None,
            expires_at: None,
        },
        request_id,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_slots_goes_through_exactly_when_nothing_has_changed_since_the_read() {
    run(MOVES, COMMANDS, |store, seed| async move {
        let rng = &mut Rng::new(seed);
        let (mut present, mut pool) = random::pair(rng, now());
        pool.id = node_id(seed);
        present.node = pool.id.clone();
        seed_pair(&store, &pool, &present).await;
        let mut through = 0;
        for _ in 0..COMMANDS {
            let change = some_move(rng, &present, &pool);
            let same = change.node_seen == pool.version
                && change.reservation_seen == Some(present.version);
            let answer = store.move_custody(&change).await.unwrap();
            assert_eq!(answer == Commit::Done, same, "seed {seed}: {change:?}");
            if same {
                (present, pool) = (change.reservation, change.node);
                through += 1;
            }
        }
        assert_eq!(stored(&store, &present).await, present, "seed {seed}");
        let found = store.load_node(&pool.id).await.unwrap();
        assert_eq!(found, Some(pool), "seed {seed}");
        through
    })
    .await;
}

/// An end where there is one, else a mere change of the node, by a caller who has seen the right
/// versions or wrong ones.
fn some_move(rng: &mut Rng, present: &Reservation, pool: &Node) -> CustodyMove {
    let mut command = random::end(rng, present, now());
    command.expected = None;
    command.stamp.actor = Actor::Caller(fixtures::operator());
    let (reservation, node) = match reservation::end(present, pool, &command) {
        Ok(Ended::Now(both)) => *both,
        Ok(Ended::Already) | Err(_) => (present.clone(), pool.changed(&command.stamp)),
    };
    let mut seen = |right: Version| match rng.below(6) {
        0 => right.next(),
        1 => right.previous().unwrap_or(right),
        _ => right,
    };
    let (node_seen, reservation_seen) = (seen(pool.version), seen(present.version));
    CustodyMove {
        node_seen,
        node,
        reservation_seen: Some(reservation_seen).filter(|_| !rng.chance(10)),
        reservation,
        write: command.stamp.write,
    }
}
