//! Random reservations and nodes. Each is one that the rules could have led to.

use std::collections::BTreeSet;

use domain::slot::Departed;
use domain::stamp::{ActionKind, Actor, Recent};
use domain::{
    Booking, Dying, Node, Occupant, OrgId, Reservation, ReservationId, Slot, Slots, Status, Term,
    Tier, Timestamp, UnitId, UnitSet, Version, WriteId,
};

use super::Rng;
use crate::fixtures::{self, StampBuilder, id, unit, units};

const HOUR_MS: i64 = 3_600_000;
/// Units that the node has; a few names beyond are unknown to it.
pub(super) const NODE_UNITS: usize = 16;
const AUDIENCE: [&str; 3] = [
    fixtures::AUDIENCE_ORG,
    "org-audience-2",
    fixtures::MANAGER_ORG,
];
/// The statuses beside active: needs-review twice, since its rules differ by caller.
const STATUSES: [Status; 5] = [
    Status::Pending,
    Status::Expired,
    Status::Cancelled,
    Status::NeedsReview,
    Status::NeedsReview,
];
const MANAGERS: [&str; 2] = [fixtures::MANAGER_ORG, "org-manager-2"];

/// A reservation of 1 to 8 units of the node, of any status, with any term around `now`.
pub fn reservation(rng: &mut Rng, now: Timestamp) -> Reservation {
    let all = units(0..NODE_UNITS);
    let own: BTreeSet<UnitId> = rng.few_of(&all, 8).into_iter().collect();
    let reserved =
        UnitSet::from_set(own.clone()).unwrap_or_else(|| unreachable!("few_of takes at least one"));
    let status = if rng.chance(62) {
        Status::Active
    } else {
        rng.pick(&STATUSES)
    };
    let holding = status == Status::Active || (status == Status::NeedsReview && rng.chance(70));
    let version = version(rng);
    let me: ReservationId = id(fixtures::RESERVATION);
    let slots = if holding {
        slots(rng, &own, "r", version)
    } else {
        Slots::new()
    };
    let released = if holding {
        rng.some_of(&own, 50).into_iter().collect()
    } else {
        BTreeSet::new()
    };
    let term = term(rng, now);
    Reservation {
        id: me,
        node: id(fixtures::NODE),
        node_owner: id(fixtures::OWNER_ORG),
        gpu_model: id(fixtures::GPU_MODEL),
        units: reserved,
        released,
        audience: orgs(rng, &AUDIENCE),
        managers: orgs(rng, &MANAGERS),
        term,
        status,
        topology_gen: 1,
        contract_ref: rng.chance(30).then(|| "contract 7".to_owned()),
        reason: rng.chance(30).then(|| "hush: made for a test".to_owned()),
        created_at: now.plus_ms(-2 * HOUR_MS),
        updated_at: now.plus_ms(-1),
        slots,
        version,
        last_action: StampBuilder::new(Actor::Caller(fixtures::owner()), 0xa5)
            .at(now.plus_ms(-1))
            .build()
            .action(ActionKind::Release, &own, None),
        recent: recent(rng, version),
        due_at: if rng.chance(50) { term.ends } else { Some(now) },
    }
}

/// A node of 16 units, some in its pool and the others in the hands of `res-other`.
pub fn node(rng: &mut Rng, now: Timestamp) -> Node {
    around(rng, now, None)
}

/// A reservation and its node, each as the other knows it.
pub fn pair(rng: &mut Rng, now: Timestamp) -> (Reservation, Node) {
    let reservation = reservation(rng, now);
    let node = around(rng, now, Some(&reservation));
    (reservation, node)
}

/// The node around `inner`, if it holds units there.
fn around(rng: &mut Rng, now: Timestamp, inner: Option<&Reservation>) -> Node {
    let mut node = fixtures::node(NODE_UNITS);
    node.created_at = now.plus_ms(-3 * HOUR_MS);
    node.updated_at = now.plus_ms(-1);
    node.version = version(rng);
    node.recent = recent(rng, node.version);
    let mut free = units(0..NODE_UNITS);
    if let Some(inner) = inner.filter(|r| Status::LIVE.contains(&r.status)) {
        if inner.holds() {
            free.retain(|unit| !inner.units.contains(unit));
        }
        let units = inner.units.as_set().clone();
        book(
            &mut node,
            inner.id.clone(),
            units,
            inner.term,
            inner.holds(),
        );
    }
    let other: BTreeSet<UnitId> = rng.some_of(&free, 20).into_iter().collect();
    if !other.is_empty() {
        free.retain(|unit| !other.contains(unit));
        let term = Term {
            starts: now.plus_ms(-HOUR_MS),
            ends: None,
        };
        book(&mut node, id("res-other"), other, term, true);
    }
    node.slots = slots(rng, &free, "p", node.version);
    if rng.chance(25) {
        let vanished = rng.some_of(&units(0..NODE_UNITS), 15);
        node.units.retain(|unit, _| !vanished.contains(unit));
    }
    if let Some(inner) = inner.filter(|_| rng.chance(20)) {
        share(&mut node.slots, &inner.slots);
    }
    node
}

/// Seats a VM of `theirs` on the first empty slot of `ours` too, as after a purchase of units that
/// parted later.
fn share(ours: &mut Slots, theirs: &Slots) {
    let shared = domain::slot::occupants(theirs)
        .map(|(_, occupant)| occupant)
        .next();
    let empty = ours.values_mut().find(|slot| slot.occupant.is_none());
    if let (Some(shared), Some(slot)) = (shared, empty) {
        slot.occupant = Some(Occupant {
            arrived: Version::FIRST,
            ..shared.clone()
        });
    }
}

fn book(node: &mut Node, id: ReservationId, units: BTreeSet<UnitId>, term: Term, holds: bool) {
    let booking = Booking { units, term, holds };
    node.bookings.insert(id, booking);
}

/// Slots for these units: empty ones, VMs of every tier, over one unit or several, dying or not.
fn slots(rng: &mut Rng, units: &BTreeSet<UnitId>, prefix: &str, upto: Version) -> Slots {
    let mut last: Option<Occupant> = None;
    let mut out = Slots::new();
    for (number, unit) in units.iter().enumerate() {
        let again = last.take().filter(|_| rng.chance(35));
        let occupant = again.or_else(|| {
            rng.chance(50)
                .then(|| occupant(rng, &format!("vm-{prefix}{number:02}"), upto))
        });
        last.clone_from(&occupant);
        let departed = rng.chance(20).then(|| departed(rng, upto));
        let gpus = rng.pick(&[1, 1, 2, 8]);
        out.insert(
            unit.clone(),
            Slot {
                gpus,
                occupant,
                departed,
            },
        );
    }
    out
}

fn occupant(rng: &mut Rng, vm: &str, upto: Version) -> Occupant {
    let tier = rng.pick(&Tier::ALL);
    let dying = if rng.chance(70) {
        None
    } else if tier == Tier::Spot && rng.chance(50) {
        Some(Dying::Evicted(id(
            rng.pick(&[fixtures::RESERVATION, "res-old"])
        )))
    } else {
        Some(Dying::Stopped)
    };
    Occupant {
        vm: id(vm),
        tier,
        org: id(rng.pick(&[fixtures::AUDIENCE_ORG, fixtures::STRANGER_ORG])),
        dying,
        arrived: earlier(rng, upto),
    }
}

fn departed(rng: &mut Rng, upto: Version) -> Departed {
    let left = earlier(rng, upto);
    Departed {
        vm: id("vm-gone"),
        tier: rng.pick(&Tier::ALL),
        arrived: earlier(rng, left),
        left,
    }
}

/// A term that most often contains `now`, with its edges often right at it.
fn term(rng: &mut Rng, now: Timestamp) -> Term {
    let starts = if rng.chance(88) {
        now.plus_ms(rng.pick(&[0, -1, -HOUR_MS]))
    } else {
        now.plus_ms(rng.pick(&[1, HOUR_MS]))
    };
    let ends = match rng.below(100) {
        0..45 => None,
        45..88 => Some(now.plus_ms(rng.pick(&[1, HOUR_MS]))),
        _ => Some(now.plus_ms(rng.pick(&[0, -1, -HOUR_MS]))),
    };
    Term { starts, ends }
}

fn orgs(rng: &mut Rng, names: &[&str]) -> BTreeSet<OrgId> {
    rng.some_of(names, 70).into_iter().map(id).collect()
}

fn version(rng: &mut Rng) -> Version {
    let number = rng.pick(&[1, 2, 9, 10, 11, 99, 100, 5_000_000_000]);
    Version::stored(number).unwrap_or(Version::FIRST)
}

fn earlier(rng: &mut Rng, upto: Version) -> Version {
    let numbers = usize::try_from(upto.get()).unwrap_or(usize::MAX);
    let number = u64::try_from(rng.below(numbers)).unwrap_or(0);
    Version::stored(number + 1).unwrap_or(Version::FIRST)
}

/// Writes that landed before. Their ids start with `a`, those of commands with `c`, so that a
/// command meets a foreign write in its place and never its own.
fn recent(rng: &mut Rng, upto: Version) -> Recent {
    let mut recent = Recent::default();
    for _ in 0..rng.below(10) {
        let write = write_id(rng, 'a');
        let version = earlier(rng, upto);
        recent.note(&write, version);
    }
    recent
}

/// A fresh write id that starts with this digit.
pub(super) fn write_id(rng: &mut Rng, first: char) -> WriteId {
    let digits = format!("{first}{:011x}", rng.next_u64() & 0xfff_ffff_ffff);
    WriteId::parse(&digits).unwrap_or_else(|| unreachable!("{digits} has 12 digits"))
}

/// Any unit of the node, and now and then one that it does not have.
pub(super) fn any_unit(rng: &mut Rng) -> UnitId {
    unit(rng.below(NODE_UNITS + 2))
}
