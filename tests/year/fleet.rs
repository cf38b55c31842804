//! The fleet and the order in which things happen on it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use app::Context;
use app::auth::{Permission, Principal};
use app::nodes::{self, NodeRequest};
use app::ports::{Clock, Ids, TerminationOrder};
use app::react::{Change, ReactError, react};
use app::sweep::{Rules, sweep};
use domain::{Caller, NodeId, ReservationId, Timestamp, UnitId, VmId};
use testkit::fixtures::{self, id, operator};
use testkit::{MemoryStore, Rng, SeededIds, TestClock};

use crate::checks::Checks;
use crate::machines::{Machines, Queue};

pub(crate) const MINUTE_MS: i64 = 60_000;
pub(crate) const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// Units of a node at the beginning.
const UNITS: usize = 8;

/// How much happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) nodes: usize,
    pub(crate) reservations: usize,
    pub(crate) days: i64,
    /// Reports of topology of each node.
    pub(crate) reports: usize,
    /// Whether all events of an hour in the middle are lost, with machines that stop at once.
    pub(crate) outage: bool,
}

/// Something that somebody does at an instant.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Reserve,
    Release(NodeId, ReservationId),
    Buy(NodeId, Option<ReservationId>),
    Reclaim(NodeId, ReservationId),
    End(NodeId, ReservationId),
    Stop(VmId),
    Topology(NodeId),
    Reaffirm(NodeId, ReservationId),
    /// A termination order off the queue, with its tries so far.
    Order(TerminationOrder, u32),
    /// The node's agent says what it finds of this VM.
    Agent(NodeId, VmId),
    /// The stream function is called again.
    Follow,
    /// Everybody does something within the hour.
    Busy,
    /// By now the ends of all trails that the outage cut off are told.
    Told,
}

/// What happened, to see that enough of each did.
pub(crate) type Tally = BTreeMap<&'static str, usize>;

pub(crate) struct Fleet {
    pub(crate) seed: u64,
    pub(crate) bounds: Bounds,
    pub(crate) rng: Rng,
    pub(crate) clock: TestClock,
    pub(crate) ids: SeededIds,
    pub(crate) store: MemoryStore,
    pub(crate) queue: Queue,
    pub(crate) machines: Machines,
    pub(crate) checks: Checks,
    pub(crate) tally: Tally,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) placed: Vec<VmId>,
    pub(crate) made: usize,
    agenda: BTreeMap<(Timestamp, u64), Act>,
    planned: u64,
    /// The minutes at which the sweep has something to do.
    minutes: BTreeSet<Timestamp>,
    /// Changes on their way to the stream function.
    stream: Vec<Change>,
    /// Changes that it has had, some of which come again.
    had: Vec<Change>,
    /// When all events are lost.
    outage: Range<Timestamp>,
}

impl Fleet {
    pub(crate) async fn set(seed: u64, bounds: Bounds) -> Self {
        let clock = TestClock::default();
        let middle = clock.now().plus_ms(bounds.days * DAY_MS / 2);
        let lasts_ms = if bounds.outage { HOUR_MS } else { 0 };
        let mut fleet = Self {
            seed,
            bounds,
            rng: Rng::new(seed),
            ids: SeededIds::new(seed),
            store: MemoryStore::default(),
            queue: Queue::default(),
            machines: Machines::new(clock.clone(), bounds.outage),
            clock,
            checks: Checks::new(bounds.outage),
            tally: Tally::new(),
            nodes: (0..bounds.nodes)
                .map(|number| id(&format!("node-{number:02}")))
                .collect(),
            placed: Vec::new(),
            made: 0,
            agenda: BTreeMap::new(),
            planned: 0,
            minutes: BTreeSet::new(),
            stream: Vec::new(),
            had: Vec::new(),
            outage: middle..middle.plus_ms(lasts_ms),
        };
        fleet.store.keep_stream();
        let units: BTreeMap<UnitId, u16> = (0..UNITS)
            .map(|number| (fixtures::unit(number), if number < 6 { 1 } else { 4 }))
            .collect();
        for node in fleet.nodes.clone() {
            let request = NodeRequest {
                id: node,
                owner: id(fixtures::OWNER_ORG),
                gpu_model: id(fixtures::GPU_MODEL),
                units: units.clone(),
                topology_gen: 1,
            };
            let context = fleet.context(operator());
            let put = nodes::put(&fleet.store, &fleet.clock, &context, request).await;
            put.unwrap();
        }
        fleet.plan_the_year();
        fleet
    }

    fn plan_the_year(&mut self) {
        let from = self.clock.now();
        let at = |fleet: &mut Self, act: Act| {
            let ms = fleet.within(fleet.bounds.days * DAY_MS);
            fleet.plan(from.plus_ms(ms), act);
        };
        for _ in 0..self.bounds.reservations {
            at(self, Act::Reserve);
        }
        for node in self.nodes.clone() {
            for _ in 0..self.bounds.reports {
                at(self, Act::Topology(node.clone()));
            }
        }
        if self.bounds.outage {
            // A day until an end that does not come counts as lost, then the look at it.
            self.plan(self.outage.end.plus_ms(26 * HOUR_MS), Act::Told);
            self.plan(self.outage.start, Act::Busy);
        }
    }

    /// A span of less than so many milliseconds; about a tenth of them are whole minutes.
    pub(crate) fn within(&mut self, ms: i64) -> i64 {
        let span = self.rng.below(usize::try_from(ms).unwrap());
        let span = i64::try_from(span).unwrap();
        if self.rng.chance(10) {
            span - span % MINUTE_MS
        } else {
            span
        }
    }

    pub(crate) fn plan(&mut self, at: Timestamp, act: Act) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), act);
    }

    pub(crate) fn context(&self, caller: Caller) -> Context {
        Context {
            principal: Principal {
                caller,
                permissions: Permission::ALL.into(),
                role: None,
                expires_at: None,
            },
            request_id: self.ids.uuid(),
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Lets everything happen, and two days more.
    pub(crate) async fn run(mut self) {
        let year_ends = self.clock.now().plus_ms(self.bounds.days * DAY_MS);
        let ends = year_ends.plus_ms(2 * DAY_MS);
        let mut steps = 0_u64;
        loop {
            let act = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let minute = self.minutes.first().copied();
            let Some(at) = act.into_iter().chain(minute).min().filter(|at| *at < ends) else {
                break;
            };
            // The clock never goes back: what was due before is done now.
            let now = at.max(self.clock.now());
            self.clock.set(now);
            if minute == Some(at) && act.is_none_or(|act| at < act || self.rng.chance(50)) {
                self.minutes.remove(&at);
                self.sweep().await;
            } else if let Some((_, act)) = self.agenda.pop_first() {
                self.act(act).await;
            }
            self.follow(70).await;
            steps += 1;
            if steps.is_multiple_of(5_000) {
                self.checks.whole(&self.store, self.seed);
            }
        }
        self.clock.set(ends);
        self.follow(100).await;
        self.sweep().await;
        self.follow(100).await;
        self.checks.at_the_end(&self.store, ends, self.seed);
        let unheard = self.checks.condemned_within(&self.outage);
        self.tally.insert("condemned unheard", unheard);
        self.assert_enough_happened();
    }

    async fn sweep(&mut self) {
        let rules = Rules::default();
        let swept = sweep(&self.store, &self.queue, &self.clock, &self.ids, &rules).await;
        let swept = swept.unwrap();
        assert_eq!(swept.failed, 0, "seed {}: {swept:?}", self.seed);
        assert!(!swept.behind, "seed {}: {swept:?}", self.seed);
        self.count("sweeps");
        *self.tally.entry("expired").or_default() += swept.expired;
        *self.tally.entry("activated").or_default() += swept.activated;
        *self.tally.entry("withheld").or_default() += swept.withheld;
        *self.tally.entry("gaps").or_default() += swept.gaps;
        let now = self.clock.now();
        self.checks.no_boundary_left(&self.store, now, self.seed);
    }

    /// Takes note of what has changed, and hands it to the stream function; now and then later, and
    /// some of it twice.
    pub(crate) async fn follow(&mut self, percent: usize) {
        self.note_changes();
        let now = self.clock.now();
        if self.outage.contains(&now) {
            for change in self.stream.drain(..) {
                self.checks.lost(&change);
            }
        } else if self.rng.chance(percent) {
            self.hand_on().await;
        }
        // The reactions themselves change VMs alone.
        self.note_changes();
        for order in self.queue.take() {
            let after_ms = self.within(900);
            self.plan(now.plus_ms(after_ms), Act::Order(order, 0));
        }
    }

    /// Hands changes to the stream function until one has to wait for the record before it.
    async fn hand_on(&mut self) {
        let mut changes = std::mem::take(&mut self.stream).into_iter();
        while let Some(change) = changes.next() {
            if !self.react(&change).await {
                self.stream = std::iter::once(change).chain(changes).collect();
                self.plan(self.clock.now().plus_ms(1_000), Act::Follow);
                return;
            }
            if self.rng.chance(5) {
                self.react(&change).await;
            }
            self.had.push(change);
        }
        if self.had.len() > 8 {
            let again = self.rng.below(self.had.len());
            let change = self.had.swap_remove(again);
            self.react(&change).await;
            self.had.truncate(8);
        }
    }

    /// Whether the reaction is complete.
    async fn react(&mut self, change: &Change) -> bool {
        let reaction = react(&self.store, &self.queue, self.clock.now(), change).await;
        match reaction {
            Ok(reaction) => {
                let expected = self.bounds.outage || !reaction.gap;
                assert!(expected, "seed {}: nothing is lost", self.seed);
                *self.tally.entry("gaps").or_default() += usize::from(reaction.gap);
                true
            }
            Err(ReactError::Waiting(..)) if self.bounds.outage => false,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn note_changes(&mut self) {
        let changes = self.store.take_stream();
        let mut touched = BTreeSet::new();
        for change in &changes {
            let (node, due_at, boundary) = match change {
                Change::Node { new, .. } => (&new.id, new.due_at, None),
                Change::Reservation { new, .. } => (&new.node, new.due_at, new.next_boundary()),
                Change::Other => continue,
            };
            touched.insert(node.clone());
            // The boundaries of the terms count by themselves, whether or not they are marked due.
            self.minutes
                .extend(due_at.into_iter().chain(boundary).map(minute_after));
            self.checks.change(change, self.seed);
        }
        for node in touched {
            let now = self.clock.now();
            self.checks.node(&self.store, &node, now, self.seed);
        }
        self.stream.extend(changes);
    }

    fn assert_enough_happened(&self) {
        let Self { seed, tally, .. } = self;
        assert_eq!(
            self.made, self.bounds.reservations,
            "seed {seed}: {tally:?}"
        );
        let gaps = tally.get("gaps").is_some_and(|gaps| *gaps > 0);
        assert_eq!(gaps, self.bounds.outage, "seed {seed}: {tally:?}");
        let unheard = tally.get("condemned unheard").copied().unwrap_or(0);
        assert_eq!(unheard >= 10, self.bounds.outage, "seed {seed}: {tally:?}");
        for what in ENOUGH {
            assert!(
                tally.contains_key(what),
                "seed {seed}: no {what}: {tally:?}"
            );
        }
    }
}

/// What must have happened at least once for a run to mean something.
const ENOUGH: [&str; 12] = [
    "back to back",
    "released",
    "reclaimed",
    "dry run",
    "bought spot",
    "bought community",
    "stopped",
    "ended",
    "reviewed",
    "reaffirmed",
    "expired",
    "activated",
];

/// The first whole minute at or after an instant.
fn minute_after(at: Timestamp) -> Timestamp {
    let ms = at.unix_ms();
    Timestamp::from_unix_ms(ms + (MINUTE_MS - ms % MINUTE_MS) % MINUTE_MS)
}
