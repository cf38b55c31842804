//! Random commands upon a state: mostly sensible, often wrong in one thing, sometimes in several.

use std::collections::BTreeSet;

use domain::reservation::{End, Reclaim, Release, Reserve};
use domain::stamp::Actor;
use domain::{
    Caller, Node, Reservation, Slots, Stamp, Tier, Timestamp, UnitId, UnitSet, Version, Vm,
    VmStatus,
};

use super::Rng;
use super::state::{any_unit, write_id};
use crate::fixtures::{self, id};

/// A caller of any relation to a reservation of the fixtures' orgs. A key of any org may belong to
/// an operator.
pub fn caller(rng: &mut Rng) -> Caller {
    let org = rng.pick(&[
        fixtures::OWNER_ORG,
        fixtures::OWNER_ORG,
        fixtures::MANAGER_ORG,
        fixtures::MANAGER_ORG,
        "org-manager-2",
        fixtures::AUDIENCE_ORG,
        fixtures::STRANGER_ORG,
    ]);
    let operator = rng.chance(20);
    Caller {
        operator,
        ..fixtures::caller(org)
    }
}

/// A stamp at `now` of any caller, and now and then of the platform itself.
pub fn stamp(rng: &mut Rng, now: Timestamp) -> Stamp {
    let actor = if rng.chance(4) {
        Actor::System
    } else {
        Actor::Caller(caller(rng))
    };
    let write = write_id(rng, 'c');
    Stamp {
        actor,
        request_id: format!("request-{}", write.as_str()),
        write,
        reason: rng
            .chance(30)
            .then(|| "hush: a \"reason\", mit Umlaut: ü".to_owned()),
        now,
    }
}

/// A release upon `reservation`.
pub fn release(rng: &mut Rng, reservation: &Reservation, now: Timestamp) -> Release {
    Release {
        units: asked(rng, reservation.units.as_set()),
        expected: expected(rng, reservation.version),
        stamp: stamp(rng, now),
    }
}

/// A reclaim upon `reservation`.
pub fn reclaim(rng: &mut Rng, reservation: &Reservation, now: Timestamp) -> Reclaim {
    Reclaim {
        units: asked(rng, reservation.units.as_set()),
        expected: expected(rng, reservation.version),
        stamp: stamp(rng, now),
    }
}

/// An end of `reservation`, by an operator more often than by others.
pub fn end(rng: &mut Rng, reservation: &Reservation, now: Timestamp) -> End {
    let mut stamp = stamp(rng, now);
    if rng.chance(60) {
        stamp.actor = Actor::Caller(fixtures::operator());
    }
    End {
        expected: expected(rng, reservation.version),
        stamp,
    }
}

/// A reservation to be made on `node`.
pub fn reserve(rng: &mut Rng, node: &Node, now: Timestamp) -> Reserve {
    let mine: BTreeSet<UnitId> = if rng.chance(80) {
        node.slots.keys().cloned().collect()
    } else {
        node.units.keys().cloned().collect()
    };
    let starts = match rng.below(10) {
        0..4 => None,
        4..7 => Some(now.plus_ms(rng.pick(&[0, -1, -1_000]))),
        _ => Some(now.plus_ms(rng.pick(&[1, 60_000, 3_600_000]))),
    };
    let ends = match rng.below(10) {
        0..5 => None,
        5..8 => Some(now.plus_ms(rng.pick(&[1, 60_000, 7_200_000]))),
        _ => Some(now.plus_ms(rng.pick(&[0, -1, -1_000, -2_000]))),
    };
    Reserve {
        id: id("res-new"),
        units: asked(rng, &mine),
        audience: [id(fixtures::AUDIENCE_ORG)].into(),
        managers: [id(fixtures::MANAGER_ORG)].into(),
        starts,
        ends,
        contract_ref: None,
        stamp: stamp(rng, now),
    }
}

/// A VM to be placed on `slots`, of which `released` are offered to spot alone; half of the time on
/// units that can take it. For a node's pool, `released` is `None`.
pub fn placement(
    rng: &mut Rng,
    slots: &Slots,
    released: Option<&BTreeSet<UnitId>>,
    now: Timestamp,
) -> Vm {
    let tier = rng.pick(&[Tier::Spot, Tier::Spot, Tier::Community, Tier::Verified]);
    let sells = |unit: &UnitId| {
        released.is_none_or(|released| released.contains(unit) == (tier == Tier::Spot))
    };
    let fitting: BTreeSet<UnitId> = slots
        .iter()
        .filter(|(unit, slot)| slot.occupant.is_none() && sells(unit))
        .map(|(unit, _)| unit.clone())
        .collect();
    let units: BTreeSet<UnitId> = if rng.chance(70) && !fitting.is_empty() {
        rng.few_of(&fitting, 3).into_iter().collect()
    } else {
        let here: BTreeSet<UnitId> = slots.keys().cloned().collect();
        asked(rng, &here).as_set().clone()
    };
    let org = rng.pick(&[
        fixtures::AUDIENCE_ORG,
        fixtures::AUDIENCE_ORG,
        fixtures::MANAGER_ORG,
        fixtures::STRANGER_ORG,
    ]);
    Vm {
        gpu_count: u32::try_from(units.len()).unwrap_or(u32::MAX),
        units,
        status: VmStatus::Running,
        created_at: now,
        updated_at: now,
        ..fixtures::vm("vm-new", tier, org, [])
    }
}

/// One to four units, most often all out of `own`.
fn asked(rng: &mut Rng, own: &BTreeSet<UnitId>) -> UnitSet {
    let mut units: BTreeSet<UnitId> = rng.few_of(own, 4).into_iter().collect();
    if units.is_empty() || rng.chance(12) {
        units.insert(any_unit(rng));
    }
    UnitSet::from_set(units).unwrap_or_else(|| unreachable!("a unit was put in"))
}

/// No version, the right one, or one beside it.
fn expected(rng: &mut Rng, right: Version) -> Option<Version> {
    match rng.below(10) {
        0..5 => None,
        5..8 => Some(right),
        8 => Some(right.next()),
        // Before the first there is none: then nothing is expected.
        _ => right.previous(),
    }
}
