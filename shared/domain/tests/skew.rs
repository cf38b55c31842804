//! Clocks that do not agree: what the rules must hold to when one writer is ahead of another.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use domain::invariants::check_all;
use domain::node::{Register, Report};
use domain::reservation::place::{place, stop, vacate};
use domain::reservation::{End, Ended, Reaffirm, Reclaim, Release, Reserve};
use domain::reservation::{activate, end, expire, reaffirm, reclaim, release, reserve};
use domain::slot::condemned;
use domain::stamp::{Actor, Stamp, WriteId};
use domain::*;

fn stamp(write: u64, now_ms: i64) -> Stamp {
    Stamp {
        actor: Actor::Caller(Caller {
            org: OrgId::parse("relet").unwrap(),
            key: KeyId::parse("key").unwrap(),
            operator: true,
        }),
        write: WriteId::parse(&format!("{write:012x}")).unwrap(),
        request_id: format!("request-{write}"),
        reason: None,
        now: Timestamp::from_unix_ms(now_ms),
    }
}

fn node() -> Node {
    let register = Register {
        id: NodeId::parse("n").unwrap(),
        owner: OrgId::parse("owner").unwrap(),
        gpu_model: GpuModelId::parse("h100").unwrap(),
        units: [(UnitId::parse("a").unwrap(), 1)].into(),
        topology_gen: 1,
        stamp: stamp(1, 1_000),
    };
    register.node()
}

fn booking(id: &str, starts: Option<i64>, ends: Option<i64>, stamp: Stamp) -> Reserve {
    Reserve {
        id: ReservationId::parse(id).unwrap(),
        units: UnitSet::parse(&["a"], 32).unwrap(),
        audience: [OrgId::parse("tenant").unwrap()].into(),
        managers: [].into(),
        starts: starts.map(Timestamp::from_unix_ms),
        ends: ends.map(Timestamp::from_unix_ms),
        contract_ref: None,
        stamp,
    }
}

#[test]
fn units_that_a_faster_clock_has_handed_out_are_not_handed_out_again() {
    let (later, node) = reserve(
        &node(),
        &booking("later", Some(5_000), None, stamp(2, 2_000)),
    )
    .unwrap();
    // One writer's clock has come to the start of the term, and gives the reservation its unit.
    let (later, node) = activate(&later, &node, &stamp(3, 5_000)).unwrap().unwrap();
    assert!(later.holds());
    // Another's lags behind by two seconds, and is asked for the time up to that start.
    let asked = booking("earlier", None, Some(5_000), stamp(4, 3_000));
    match reserve(&node, &asked) {
        Err(Refusal::UnitsAlreadyReserved(holders, _)) => {
            assert_eq!(holders[&UnitId::parse("a").unwrap()], later.id);
        }
        Err(other) => panic!("{other:?}"),
        Ok((earlier, node)) => {
            let wrong = check_all(&node, &[earlier, later]);
            panic!("sold twice: {wrong:?}");
        }
    }
}

/// VMs, each with its tier and units.
type Seated = BTreeMap<VmId, (Tier, BTreeSet<UnitId>)>;

/// The world of one node, and a source of chance.
struct Party {
    node: Node,
    reservations: BTreeMap<ReservationId, Reservation>,
    chance: u64,
    writes: u64,
    at: i64,
    told_to_stop: BTreeSet<VmId>,
}

const UNITS: [&str; 4] = ["a", "b", "c", "d"];

impl Party {
    fn below(&mut self, bound: u64) -> u64 {
        self.chance = self
            .chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % bound
    }

    /// A stamp of a writer whose clock is up to three seconds off.
    fn stamp(&mut self) -> Stamp {
        self.writes += 1;
        self.at += i64::try_from(self.below(700)).unwrap();
        let off = i64::try_from(self.below(6_000)).unwrap() - 3_000;
        stamp(self.writes, self.at + off)
    }

    fn some_units(&mut self) -> UnitSet {
        let mask = 1 + self.below(15);
        let picked = UNITS.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
        let picked: Vec<&str> = picked.map(|(_, unit)| *unit).collect();
        UnitSet::parse(&picked, 32).unwrap()
    }

    fn some_reservation(&mut self) -> Option<Reservation> {
        let count = u64::try_from(self.reservations.len()).unwrap();
        let place = usize::try_from(self.below(count.max(1))).unwrap();
        self.reservations.values().nth(place).cloned()
    }

    fn take(&mut self, pair: (Reservation, Node)) {
        self.reservations.insert(pair.0.id.clone(), pair.0);
        self.node = pair.1;
    }

    /// The VMs that must die, and all that are seated.
    fn vms(&self) -> (BTreeSet<VmId>, Seated) {
        let mut doomed: BTreeSet<VmId> = condemned(&self.node.slots, self.node.offer())
            .into_keys()
            .collect();
        let mut seated = Seated::new();
        let mut all = vec![&self.node.slots];
        for reservation in self.reservations.values() {
            doomed.extend(condemned(&reservation.slots, reservation.offer()).into_keys());
            all.push(&reservation.slots);
        }
        for (unit, slot) in all.into_iter().flatten() {
            if let Some(there) = &slot.occupant {
                let entry = seated
                    .entry(there.vm.clone())
                    .or_insert((there.tier, [].into()));
                assert!(entry.1.insert(unit.clone()), "{unit} twice");
            }
        }
        (doomed, seated)
    }

    fn buy(&mut self) {
        let stamp = self.stamp();
        let tier = Tier::ALL[usize::try_from(self.below(3)).unwrap()];
        let units = self.some_units().as_set().clone();
        let vm = Vm {
            id: VmId::parse(&format!("vm-{}", self.writes)).unwrap(),
            org: OrgId::parse("tenant").unwrap(),
            name: "x".to_owned(),
            status: VmStatus::Running,
            status_reason: None,
            tier,
            gpu_model: GpuModelId::parse("h100").unwrap(),
            gpu_count: 1,
            node: self.node.id.clone(),
            units,
            reservation: None,
            sentence: None,
            attempts: 0,
            stuck_at: None,
            created_at: stamp.now,
            updated_at: stamp.now,
        };
        let reservation = self.some_reservation();
        match reservation.and_then(|r| place(&r, &vm, &stamp).ok()) {
            Some(after) => drop(self.reservations.insert(after.id.clone(), after)),
            None => {
                if let Ok(after) = self.node.place(&vm, &stamp) {
                    self.node = after;
                }
            }
        }
    }

    fn settle(&mut self, confirm: bool) {
        let (doomed, seated) = self.vms();
        let names: Vec<VmId> = match confirm {
            true => doomed.into_iter().collect(),
            false => seated.into_keys().collect(),
        };
        if names.is_empty() {
            return;
        }
        let place = self.below(u64::try_from(names.len()).unwrap());
        let vm = &names[usize::try_from(place).unwrap()];
        let stamp = self.stamp();
        let pool = match confirm {
            true => self.node.vacate(vm, &stamp),
            false => self.node.stop(vm, &stamp),
        };
        self.node = pool.unwrap_or_else(|| self.node.clone());
        for reservation in self.reservations.values_mut() {
            let after = match confirm {
                true => vacate(reservation, vm, &stamp),
                false => stop(reservation, vm, &stamp),
            };
            if let Some(after) = after {
                *reservation = after;
            }
        }
        self.told_to_stop.insert(vm.clone());
    }

    fn report(&mut self) {
        let stamp = self.stamp();
        let mask = 1 + self.below(15);
        let there = UNITS.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
        let there = there.map(|(_, unit)| UnitId::parse(unit).unwrap());
        let gpus = u16::try_from(1 + self.below(2)).unwrap();
        let report = Report {
            topology_gen: self.node.topology_gen + 1,
            units: there.map(|unit| (unit, gpus)).collect(),
            stamp,
        };
        let affected = self.node.affected(&report);
        let images: Vec<Reservation> = affected
            .iter()
            .map(|id| self.reservations[id].clone())
            .collect();
        let reported = self.node.report(&report, &images).unwrap();
        self.node = reported.node;
        for reviewed in reported.reviewed {
            self.reservations.insert(reviewed.id.clone(), reviewed);
        }
    }

    fn book(&mut self) {
        let stamp = self.stamp();
        let starts = i64::try_from(self.below(8_000)).unwrap() - 2_000;
        let length = i64::try_from(1 + self.below(8_000)).unwrap();
        let units = self.some_units();
        let starts = (self.below(2) == 0).then_some(self.at + starts);
        let from = starts.unwrap_or(self.at);
        // Every third one begins or ends where another does.
        let other = self.some_reservation().filter(|_| self.below(3) == 0);
        let meets = other.map(|r| r.term.starts.unix_ms());
        let ends = (self.below(5) > 0).then_some(meets.unwrap_or(from + length));
        let command = Reserve {
            units,
            ..booking(&format!("r-{}", self.writes), starts, ends, stamp)
        };
        if let Ok(pair) = reserve(&self.node, &command) {
            self.take(pair);
        }
    }

    fn manage(&mut self, what: u64) {
        let Some(r) = self.some_reservation() else {
            return;
        };
        let (stamp, units, node) = (self.stamp(), self.some_units(), self.node.clone());
        let expected = None;
        let single = match what {
            0 => release(
                &r,
                &Release {
                    units,
                    expected,
                    stamp,
                },
            )
            .ok(),
            1 => reclaim(
                &r,
                &Reclaim {
                    units,
                    expected,
                    stamp,
                },
            )
            .ok(),
            _ => {
                let pair = match what {
                    2 => match end(&r, &node, &End { expected, stamp }) {
                        Ok(Ended::Now(pair)) => Some(*pair),
                        _ => None,
                    },
                    3 => activate(&r, &node, &stamp).ok().flatten(),
                    4 => expire(&r, &node, &stamp),
                    _ => reaffirm(&r, &node, &Reaffirm { expected, stamp }).ok(),
                };
                if let Some(pair) = pair {
                    self.take(pair);
                }
                None
            }
        };
        if let Some(after) = single {
            self.reservations.insert(after.id.clone(), after);
        }
    }
}

#[test]
fn whatever_comes_in_whatever_order_by_whatever_clock_no_unit_and_no_vm_is_lost() {
    for seed in 0..400 {
        let bare = node();
        let units = UNITS.map(|unit| (UnitId::parse(unit).unwrap(), 1));
        let register = Register {
            id: bare.id,
            owner: bare.owner,
            gpu_model: bare.gpu_model,
            units: units.into(),
            topology_gen: 1,
            stamp: stamp(1, 1_000),
        };
        let mut party = Party {
            node: register.node(),
            reservations: BTreeMap::new(),
            chance: seed,
            writes: 1,
            at: 10_000,
            told_to_stop: BTreeSet::new(),
        };
        for step in 0..400 {
            let (doomed, seated) = party.vms();
            let kind = party.below(12);
            match kind {
                0 | 1 => party.book(),
                2 | 3 => party.buy(),
                4 => party.settle(party.writes.is_multiple_of(4)),
                5 if party.below(3) == 0 => party.report(),
                5 => party.settle(true),
                other => party.manage(other - 6),
            }
            let place = format!("seed {seed}, step {step}, {kind}");
            let all: Vec<Reservation> = party.reservations.values().cloned().collect();
            assert_eq!(check_all(&party.node, &all), [], "{place}");
            let (now_doomed, now_seated) = party.vms();
            for (vm, (tier, units)) in &seated {
                let there = now_seated.get(vm);
                let gone = there.is_none();
                assert!(!gone || doomed.contains(vm), "{place}: {vm} vanished");
                let same = there.is_none_or(|(_, now)| now == units);
                assert!(same, "{place}: {vm} lost a unit");
                let reprieved = doomed.contains(vm) && !gone && !now_doomed.contains(vm);
                assert!(!reprieved, "{place}: {vm} was condemned and is not");
                let killed = *tier != Tier::Spot && now_doomed.contains(vm);
                assert!(!killed || party.told_to_stop.contains(vm), "{place}: {vm}");
            }
        }
    }
}
