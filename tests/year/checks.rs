//! What must hold, whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use app::react::Change;
use domain::audit::{EventType, Record, verify};
use domain::slot::{condemned, occupants};
use domain::{
    Node, NodeId, Reservation, ReservationId, Status, Tier, Timestamp, UnitId, Version, VmId,
    VmStatus,
};
use testkit::{MemoryStore, World};

use crate::fleet::HOUR_MS;

/// How soon a condemned VM is gone whose machine stops at once, whatever becomes of the events, in
/// milliseconds.
const GONE_WITHIN_MS: i64 = 120_000;

/// What is known of the world from the steps before.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// VMs that are to die, by what the state or an answer said.
    doomed: BTreeSet<VmId>,
    /// Since when the state has condemned them.
    since: BTreeMap<VmId, Timestamp>,
    /// Whether they must be gone within [`GONE_WITHIN_MS`].
    prompt: bool,
    /// The versions whose events were lost.
    lost: BTreeMap<ReservationId, BTreeSet<Version>>,
    /// VMs that somebody told to stop.
    stopped: BTreeSet<VmId>,
    /// Who sits where.
    seats: BTreeMap<NodeId, BTreeMap<UnitId, VmId>>,
    /// The last version seen of each reservation.
    versions: BTreeMap<ReservationId, u64>,
}

impl Checks {
    /// Nothing known yet. `prompt` asks that condemned VMs be gone within [`GONE_WITHIN_MS`].
    pub(crate) fn new(prompt: bool) -> Self {
        Self {
            prompt,
            ..Self::default()
        }
    }

    /// How many VMs were condemned then.
    pub(crate) fn condemned_within(&self, span: &Range<Timestamp>) -> usize {
        self.since.values().filter(|at| span.contains(at)).count()
    }

    /// The event of this change never comes.
    pub(crate) fn lost(&mut self, change: &Change) {
        if let Change::Reservation { old, new } = change
            && old.as_ref().is_none_or(|old| old.version < new.version)
        {
            let versions = self.lost.entry(new.id.clone()).or_default();
            versions.insert(new.version);
        }
    }

    /// The trails of those that are over and have not changed since are told to their end, be it by
    /// a gap.
    pub(crate) fn ends_are_told(&self, store: &MemoryStore, before: Timestamp, seed: u64) {
        store.peek(|world| {
            let over = world.reservations.values().filter(|reservation| {
                let live = Status::LIVE.contains(&reservation.status);
                !live && reservation.updated_at < before
            });
            for reservation in over {
                self.assert_told(world, reservation, seed);
            }
        });
    }

    /// A trail verifies, and has a gap exactly where events were lost.
    fn assert_told(&self, world: &World, reservation: &Reservation, seed: u64) {
        let chain = world.audit.get(&reservation.id);
        let records: Vec<Record> = chain
            .into_iter()
            .flat_map(|c| c.values().cloned())
            .collect();
        let nothing = BTreeSet::new();
        let lost = self.lost.get(&reservation.id).unwrap_or(&nothing);
        // While it lives, a lost end is told with the next change, or at the next boundary.
        let live = Status::LIVE.contains(&reservation.status);
        let told = match records.last() {
            Some(last) if live && lost.contains(&reservation.version) => last.event.version,
            None if live && lost.contains(&reservation.version) => return,
            _ => reservation.version,
        };
        let whole = verify(&records, told).map(drop);
        assert_eq!(whole, Ok(()), "seed {seed}: {}", reservation.id);
        let of = |gap: bool| -> BTreeSet<Version> {
            let own = records.iter().filter(|r| r.event.beside.is_none());
            let own = own.filter(|r| (r.event.event == EventType::Gap) == gap);
            own.map(|r| r.event.version).collect()
        };
        let upto = |version: &Version| *version <= told;
        let ends = lost
            .iter()
            .filter(|v| **v == told || !lost.contains(&v.next()));
        let gaps: BTreeSet<Version> = ends.filter(|v| upto(v)).copied().collect();
        assert_eq!(of(true), gaps, "seed {seed}: {}", reservation.id);
        assert!(
            of(false).is_disjoint(lost),
            "seed {seed}: {}",
            reservation.id
        );
    }

    /// A call has promised that these will be gone.
    pub(crate) fn promised(&mut self, vms: BTreeSet<VmId>) {
        self.doomed.extend(vms);
    }

    /// Somebody tells this VM to stop.
    pub(crate) fn stopped(&mut self, vm: &VmId) {
        self.stopped.insert(vm.clone());
    }

    /// Versions have no gaps, and no change condemns a VM that is not spot.
    pub(crate) fn change(&mut self, change: &Change, seed: u64) {
        if let Change::Reservation { old, new } = change {
            let version = new.version.get();
            let last = self.versions.insert(new.id.clone(), version);
            let expected = last.unwrap_or(0);
            // When to look again is no change.
            let again = old.as_ref().is_some_and(|old| old.version == new.version);
            assert_eq!(
                version,
                expected + u64::from(!again),
                "seed {seed}: {new:?}"
            );
        }
    }

    /// A node that something happened on.
    pub(crate) fn node(&mut self, store: &MemoryStore, id: &NodeId, now: Timestamp, seed: u64) {
        store.peek(|world| {
            assert_eq!(world.violations_on(id), [], "seed {seed}");
            let node = &world.nodes[id];
            let before = self.seats.remove(id).unwrap_or_default();
            let seats = seats_of(world, node);
            self.moved(world, &before, &seats, seed);
            self.in_time(&before, &seats, now, seed);
            self.condemned_stay(world, node, now, seed);
            self.seats.insert(id.clone(), seats);
        });
    }

    /// Nobody takes a seat that is taken, and nobody is off one before the end.
    fn moved(
        &mut self,
        world: &World,
        before: &BTreeMap<UnitId, VmId>,
        seats: &BTreeMap<UnitId, VmId>,
        seed: u64,
    ) {
        for (unit, vm) in before
            .iter()
            .filter(|(unit, vm)| seats.get(*unit) != Some(vm))
        {
            let now = seats.get(unit);
            assert_eq!(now, None, "seed {seed}: {unit} went from {vm} to {now:?}");
            let gone = &world.vms[vm];
            assert_eq!(gone.status, VmStatus::Terminated, "seed {seed}: {gone:?}");
            let own = gone.tier == Tier::Spot || self.stopped.contains(vm);
            assert!(own, "seed {seed}: nobody told {gone:?} to stop");
            let doomed = self.doomed.contains(vm);
            assert!(doomed, "seed {seed}: nothing condemned {gone:?}");
        }
        for (unit, id) in seats {
            let vm = &world.vms[id];
            assert!(vm.units.contains(unit), "seed {seed}: {vm:?} on {unit}");
            assert_ne!(vm.status, VmStatus::Terminated, "seed {seed}: {vm:?}");
            let whole = vm.units.iter().all(|unit| seats.get(unit) == Some(id));
            assert!(whole, "seed {seed}: {vm:?} lost a seat");
        }
    }

    /// Whoever left did so soon after it was condemned, if that is asked.
    fn in_time(
        &self,
        before: &BTreeMap<UnitId, VmId>,
        seats: &BTreeMap<UnitId, VmId>,
        now: Timestamp,
        seed: u64,
    ) {
        for (unit, vm) in before.iter().filter(|(unit, _)| !seats.contains_key(*unit)) {
            let since = self.since[vm];
            let late = self.prompt && since.plus_ms(GONE_WITHIN_MS) < now;
            assert!(
                !late,
                "seed {seed}: {vm} on {unit} since {since}, gone {now}"
            );
        }
    }

    /// Whoever was condemned is so still, or is gone.
    fn condemned_stay(&mut self, world: &World, node: &Node, at: Timestamp, seed: u64) {
        let mut now: BTreeSet<VmId> = BTreeSet::new();
        let pool = condemned(&node.slots, node.offer());
        let held = holding(world, node).map(|r| condemned(&r.slots, r.offer()));
        for (vm, sentence) in std::iter::once(pool).chain(held).flatten() {
            let told = sentence.tier == Tier::Spot || self.stopped.contains(&vm);
            assert!(
                told,
                "seed {seed}: {vm} of {:?} is condemned",
                sentence.tier
            );
            self.since.entry(vm.clone()).or_insert(at);
            now.insert(vm);
        }
        for vm in seats_of(world, node).values() {
            let marked = world.vms[vm].status != VmStatus::Running;
            assert!(
                now.contains(vm) || !(marked || self.doomed.contains(vm)),
                "seed {seed}: {vm} was condemned and is not"
            );
        }
        self.doomed.extend(now);
    }

    /// No term has a boundary behind it that is not written, right after a sweep.
    #[expect(clippy::unused_self, reason = "it stands beside the other checks")]
    pub(crate) fn no_boundary_left(&self, store: &MemoryStore, now: Timestamp, seed: u64) {
        store.peek(|world| {
            for node in world.nodes.values() {
                let left = node.boundaries(now);
                assert_eq!(left, [], "seed {seed}: on {} at {now}", node.id);
            }
        });
    }

    /// All of the world.
    pub(crate) fn whole(&self, store: &MemoryStore, seed: u64) {
        store.peek(|world| {
            assert_eq!(world.violations(), [], "seed {seed}");
            for id in &self.doomed {
                let Some(vm) = world.vms.get(id) else {
                    panic!("seed {seed}: {id} is not there");
                };
                let alive = vm.status == VmStatus::Running && vm.sentence.is_some();
                assert!(!alive, "seed {seed}: {vm:?} runs again");
            }
        });
    }

    /// Nothing is left to do, and every trail is whole.
    pub(crate) fn at_the_end(&self, store: &MemoryStore, now: Timestamp, seed: u64) {
        self.whole(store, seed);
        store.peek(|world| {
            let long_ago = now.plus_ms(-4 * HOUR_MS);
            for vm in world.vms.values().filter(|vm| self.doomed.contains(&vm.id)) {
                if vm.sentence.as_ref().is_some_and(|s| s.at > long_ago) {
                    continue;
                }
                assert_eq!(vm.status, VmStatus::Terminated, "seed {seed}: {vm:?}");
            }
            for node in world.nodes.values() {
                let due = node.due_at.filter(|at| *at <= now);
                assert_eq!(due, None, "seed {seed}: {}", node.id);
            }
            for reservation in world.reservations.values() {
                assert_settled(reservation, now, seed);
                self.assert_told(world, reservation, seed);
            }
        });
    }
}

fn assert_settled(reservation: &Reservation, now: Timestamp, seed: u64) {
    let due = reservation.due_at.filter(|at| *at <= now);
    assert_eq!(due, None, "seed {seed}: {reservation:?}");
    // A trail is looked at an hour after the end, and a day later where records were on their way.
    let ended = !Status::LIVE.contains(&reservation.status);
    if ended && reservation.updated_at.plus_ms(26 * HOUR_MS) < now {
        assert_eq!(reservation.due_at, None, "seed {seed}: {reservation:?}");
    }
}

fn holding<'a>(world: &'a World, node: &'a Node) -> impl Iterator<Item = &'a Reservation> {
    let ids = node.holding();
    ids.filter_map(|id| world.reservation(&node.id, id))
}

fn seats_of(world: &World, node: &Node) -> BTreeMap<UnitId, VmId> {
    let pool = occupants(&node.slots);
    let held = holding(world, node).flat_map(|r| occupants(&r.slots));
    pool.chain(held)
        .map(|(unit, occupant)| (unit.clone(), occupant.vm.clone()))
        .collect()
}
