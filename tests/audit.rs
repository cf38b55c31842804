//! Audit trails of random histories, touched once in any way: what was done is found, and where.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use domain::audit::{ActorKind, Event, EventType, Expected, Head, Record, Wrong};
use domain::audit::{events, gap, verify};
use domain::node::{Report, Reported};
use domain::reservation::place::{mark_stuck, place, stop, vacate};
use domain::reservation::{Ended, Reaffirm, activate, end, expire, reaffirm, reclaim, release};
use domain::slot::occupants;
use domain::stamp::Actor;
use domain::{Node, Reservation, Status, Timestamp, Version, VmId};
use testkit::fixtures::{self, StampBuilder, id, now};
use testkit::{Rng, random};

/// Histories, each touched in [`TOUCHES`] ways.
const HISTORIES: u64 = 105;
const TOUCHES: usize = 100;
/// Changes of a history that are attempted.
const STEPS: usize = 60;

/// The states that a reservation of six units went through.
fn history(rng: &mut Rng) -> Vec<Reservation> {
    let (first, mut node) = fixtures::reserved(&fixtures::node(8), 0..6);
    let mut states = vec![first];
    for step in 0..STEPS {
        let present = states.last().unwrap();
        let at = now().plus_ms(i64::try_from(step).unwrap());
        if let Some((next, after)) = changed(rng, present, &node, at, step) {
            states.push(next);
            node = after;
        }
    }
    states
}

/// The reservation after a random change, unless that is refused, and its node.
fn changed(
    rng: &mut Rng,
    present: &Reservation,
    node: &Node,
    at: Timestamp,
    step: usize,
) -> Option<(Reservation, Node)> {
    let seated: Vec<VmId> = occupants(&present.slots)
        .map(|(_, occupant)| occupant.vm.clone())
        .collect();
    let stamp = random::stamp(rng, at);
    let next = match rng.below(20) {
        0..6 => release(present, &random::release(rng, present, at)).ok(),
        6..10 => reclaim(present, &random::reclaim(rng, present, at)).ok(),
        10..16 => {
            let mut vm = random::placement(rng, &present.slots, Some(&present.released), at);
            vm.id = id(&format!("vm-{step:02}"));
            place(present, &vm, &stamp).ok()
        }
        16 if !seated.is_empty() => stop(present, &rng.pick(&seated), &stamp),
        17 | 18 if !seated.is_empty() => vacate(present, &rng.pick(&seated), &stamp),
        19 if rng.chance(10) => match end(present, node, &random::end(rng, present, at)) {
            Ok(Ended::Now(both)) => return Some(*both),
            _ => None,
        },
        _ => None,
    };
    next.map(|next| (next, node.clone()))
}

/// The trail of a history; with `lossy`, one in which some versions are gaps.
fn trail(rng: &mut Rng, states: &[Reservation], lossy: bool) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    let mut lost = false;
    for (place, new) in states.iter().enumerate() {
        let last = place + 1 == states.len();
        if lossy && !last && rng.chance(20) {
            lost = true;
            continue;
        }
        let old = place.checked_sub(1).map(|place| &states[place]);
        let told = events(old, new);
        let swallowed = lost.then(|| gap(&told[0], new.version.previous().unwrap()));
        lost = false;
        for event in swallowed.into_iter().chain(told) {
            let prev = out.last().map(|record| record.hash.clone());
            out.push(event.seal(&prev.unwrap_or_default()));
        }
    }
    out
}

/// Changes a field of a record; its hash stays.
fn change(rng: &mut Rng, record: &mut Record) {
    let was = record.clone();
    while *record == was {
        let event = &mut record.event;
        let another = format!("another-{}", rng.below(9));
        match rng.below(17) {
            0 => event.event = rng.pick(&EventType::ALL),
            1 => event.reservation = id(&another),
            2 => event.node = id(&another),
            3 => event.version = version(rng.below(30)),
            4 => event.beside = rng.chance(60).then(|| id(&another)),
            5 => event.at = event.at.plus_ms(rng.pick(&[1, -1, 60_000])),
            6 => event.actor.org = rng.chance(50).then(|| id(&another)),
            7 => event.actor.key = rng.chance(50).then(|| id(&another)),
            8 => event.actor.kind = rng.pick(&ActorKind::ALL),
            9 => event.request_id = another,
            10 => event.reason = rng.chance(50).then_some(another),
            11 => toggle(&mut event.units, id(&another)),
            12 => toggle(&mut event.vms, id(&another)),
            13 => snapshot(rng, &mut event.before),
            14 => snapshot(rng, &mut event.after),
            15 => record.prev_hash = digit(&record.prev_hash, rng),
            _ => record.hash = digit(&record.hash, rng),
        }
    }
}

fn version(number: usize) -> Version {
    Version::stored(u64::try_from(number).unwrap() + 1).unwrap()
}

fn toggle<T: Ord + Clone>(set: &mut BTreeSet<T>, other: T) {
    if set.pop_first().is_none() {
        set.insert(other);
    }
}

fn snapshot(rng: &mut Rng, shown: &mut Option<domain::audit::Snapshot>) {
    match shown {
        Some(_) if rng.chance(20) => *shown = None,
        Some(shown) if rng.chance(50) => shown.status = rng.pick(&Status::ALL),
        Some(shown) => toggle(&mut shown.released, fixtures::unit(0)),
        None => {
            *shown = Some(domain::audit::Snapshot {
                status: Status::Active,
                released: fixtures::units([0]),
            });
        }
    }
}

fn digit(hash: &str, rng: &mut Rng) -> String {
    let mut digits: Vec<char> = hash.chars().collect();
    if digits.is_empty() {
        return "0".repeat(64);
    }
    let place = rng.below(digits.len());
    digits[place] = if digits[place] == 'a' { 'b' } else { 'a' };
    digits.into_iter().collect()
}

/// The record with its hash made to fit.
fn resealed(record: &Record) -> Record {
    record.event.clone().seal(&record.prev_hash)
}

/// A way to touch a trail.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Touch {
    Change,
    Reseal,
    Remove,
    Swap,
    Copy,
    Forge,
    ForgeSealed,
    CutHead,
    CutTail,
}

const ALL: [Touch; 9] = [
    Touch::Change,
    Touch::Reseal,
    Touch::Remove,
    Touch::Swap,
    Touch::Copy,
    Touch::Forge,
    Touch::ForgeSealed,
    Touch::CutHead,
    Touch::CutTail,
];

/// Touches the trail once. Returns the places at which that may be found: a record that was sealed
/// anew and says nothing impossible is found at the next one, which is not linked to it.
fn touch(rng: &mut Rng, how: Touch, records: &mut Vec<Record>) -> (usize, usize) {
    let len = records.len();
    let place = rng.below(len);
    match how {
        Touch::Change => {
            change(rng, &mut records[place]);
            (place, place)
        }
        Touch::Reseal => {
            let was = records[place].clone();
            // The new hash takes the place of one that was changed.
            while records[place] == was {
                change(rng, &mut records[place]);
                records[place] = resealed(&records[place]);
            }
            (place, place + 1)
        }
        Touch::Remove => {
            records.remove(place);
            (place, place)
        }
        Touch::Swap => {
            let other = (place + 1 + rng.below(len - 1)) % len;
            records.swap(place, other);
            (place.min(other), place.min(other))
        }
        Touch::Copy => {
            let to = rng.below(len + 1);
            records.insert(to, records[place].clone());
            // A copy right before the record itself is found as a copy right behind it.
            let found = if to == place { to + 1 } else { to };
            (found, found)
        }
        Touch::Forge | Touch::ForgeSealed => {
            let to = rng.below(len + 1);
            let mut forged = records[place].clone();
            change(rng, &mut forged);
            if how == Touch::Forge {
                records.insert(to, forged);
                return (to, to);
            }
            let before = to.checked_sub(1).map(|before| records[before].hash.clone());
            forged.prev_hash = before.unwrap_or_default();
            records.insert(to, resealed(&forged));
            (to, to + 1)
        }
        Touch::CutHead => {
            records.drain(..1 + rng.below(len - 1));
            (0, 0)
        }
        Touch::CutTail => {
            records.truncate(rng.below(len));
            (records.len(), records.len())
        }
    }
}

#[test]
fn whatever_is_done_to_a_trail_is_found_and_where() {
    let (mut gaps, mut besides, mut found) = (0, 0, [0; ALL.len()]);
    let mut types = BTreeSet::new();
    for seed in 0..HISTORIES {
        let mut rng = Rng::new(seed);
        let states = history(&mut rng);
        let current = states.last().unwrap().version;
        let lossy = seed % 2 == 1;
        let records = trail(&mut rng, &states, lossy);
        let whole = verify(&records, current).unwrap();
        gaps += whole.gaps.len();
        types.extend(records.iter().map(|record| record.event.event));
        besides += records.iter().filter(|r| r.event.beside.is_some()).count();
        let expected = Expected {
            head: Some(Head {
                version: Some(current),
                hash: whole.head,
            }),
            ..current.into()
        };
        for turn in 0..TOUCHES {
            let kind = rng.below(ALL.len());
            let mut touched = records.clone();
            let (from, to) = touch(&mut rng, ALL[kind], &mut touched);
            let told = format!("seed {seed}, turn {turn}, {:?} at {from}", ALL[kind]);
            if touched == records {
                // A copy of itself, sealed anew to the same record, in its own place.
                continue;
            }
            match verify(&touched, expected.clone()) {
                Ok(_) => panic!("{told}: not found"),
                Err(fault) => {
                    assert!((from..=to).contains(&fault.place), "{told}: {fault}");
                    let there = touched.get(fault.place).map(|r| r.event.version);
                    let version = there.unwrap_or(fault.version);
                    assert_eq!(fault.version, version, "{told}");
                }
            }
            found[kind] += 1;
        }
    }
    // All but those of terms and reviews, which have no part in these histories.
    assert_eq!(types.len(), EventType::ALL.len() - 5);
    assert!(
        gaps > 100 && besides > 100,
        "{gaps} gaps, {besides} besides"
    );
    assert!(found.iter().all(|times| *times > 900), "{found:?}");
    assert!(found.iter().sum::<usize>() >= 10_000, "{found:?}");
}

/// The trail in which everything from `place` on was written anew, sound in itself.
fn rewritten(records: &[Record], place: usize) -> Vec<Record> {
    let mut out = records[..place].to_vec();
    for record in &records[place..] {
        let mut event: Event = record.event.clone();
        if event.event != EventType::Gap {
            event.request_id = "not-this-one".to_owned();
        }
        let prev = out.last().map(|record: &Record| record.hash.clone());
        out.push(event.seal(&prev.unwrap_or_default()));
    }
    out
}

#[test]
fn a_trail_rewritten_from_a_point_on_is_found_by_a_hash_kept_since() {
    let mut rng = Rng::new(7);
    let states = history(&mut rng);
    let records = trail(&mut rng, &states, false);
    let current = states.last().unwrap().version;
    let own = |place: usize| records[place].event.beside.is_none();
    let place = (5..records.len()).find(|place| own(*place)).unwrap();
    let forged = rewritten(&records, place);
    assert!(verify(&forged, current).is_ok(), "it is sound in itself");

    let kept = |record: usize, named: bool| Expected {
        head: Some(Head {
            version: named.then(|| records[record].event.version),
            hash: records[record].hash.clone(),
        }),
        ..current.into()
    };
    let last = records.len() - 1;
    for named in [true, false] {
        let fault = verify(&forged, kept(last, named)).unwrap_err();
        assert_eq!((fault.place, fault.wrong), (last, Wrong::OtherHead));
        let before = verify(&forged, kept(place - 1, named));
        assert!(before.is_ok(), "the hash is older than the forgery");
        assert!(verify(&records, kept(last, named)).is_ok());
        assert!(verify(&records, kept(place - 1, named)).is_ok());
    }
}

#[test]
fn a_hash_of_a_version_that_the_trail_never_came_to_or_lost_is_missed_there() {
    let mut rng = Rng::new(3);
    let states = history(&mut rng);
    let current = states.last().unwrap().version;
    let records = trail(&mut rng, &states, true);
    let whole = verify(&records, current).unwrap();
    let expected = |version: Version| Expected {
        head: Some(Head {
            version: Some(version),
            hash: whole.head.clone(),
        }),
        ..current.into()
    };
    let fault = verify(&records, expected(current.next())).unwrap_err();
    assert_eq!(
        (fault.place, &fault.wrong),
        (records.len(), &Wrong::OtherHead)
    );
    assert_eq!(fault.version, current.next());
    let lost = whole.gaps[0];
    let fault = verify(&records, expected(lost.first)).unwrap_err();
    assert_eq!(fault.wrong, Wrong::OtherHead);
    assert!(fault.version >= lost.first && fault.version <= lost.last.next());
}

#[test]
fn a_trail_may_have_grown_beyond_what_is_asked_of_it_where_that_is_allowed() {
    let mut rng = Rng::new(11);
    let states = history(&mut rng);
    let records = trail(&mut rng, &states, false);
    let current = states.last().unwrap().version;
    let earlier = current.previous().unwrap();
    let expected = |at_most| Expected {
        at_least: earlier,
        at_most,
        head: None,
    };
    assert!(verify(&records, expected(None)).is_ok());
    assert!(verify(&records, expected(Some(current))).is_ok());
    let ahead = verify(&records, earlier).unwrap_err();
    assert_eq!(ahead.wrong, Wrong::Ahead { current: earlier });
    assert_eq!(ahead.version, current);
    let behind = verify(&records, current.next()).unwrap_err();
    assert_eq!(
        (behind.place, behind.version),
        (records.len(), current.next())
    );
    let none = verify(&[], Version::FIRST).unwrap_err();
    assert_eq!((none.place, none.version), (0, Version::FIRST));
}

/// What an own record of a version tells, and the VMs that it condemned.
fn told(records: &[Record]) -> Vec<(EventType, usize)> {
    let mut out: Vec<(EventType, usize)> = Vec::new();
    for record in records {
        match &record.event.beside {
            None => out.push((record.event.event, 0)),
            Some(_) => out.last_mut().unwrap().1 += 1,
        }
    }
    out
}

#[test]
fn a_life_through_term_and_review_is_verified_with_those_it_condemned() {
    let at = |ms: i64| now().plus_ms(ms);
    let system = |number: u64, ms: i64| StampBuilder::new(Actor::System, number).at(at(ms)).build();
    let by_operator = |number: u64, ms: i64| {
        let actor = Actor::Caller(fixtures::operator());
        StampBuilder::new(actor, number).at(at(ms)).build()
    };
    let spot = fixtures::spot("vm-1", [0]);
    let node = fixtures::node(8).place(&spot, &system(1, 0)).unwrap();
    let mut command = fixtures::reserve_command(0..4);
    (command.starts, command.ends) = (Some(at(1_000)), Some(at(9_000)));
    let (pending, node) = fixtures::reserve_with(&node, &command);
    let (active, node) = activate(&pending, &node, &system(2, 1_000))
        .unwrap()
        .unwrap();
    let stuck = mark_stuck(&active, &spot.id, &system(3, 2_000)).unwrap();
    let gone = vacate(&stuck, &spot.id, &system(4, 3_000)).unwrap();
    let report = Report {
        topology_gen: 2,
        units: node.units.keys().map(|unit| (unit.clone(), 2)).collect(),
        stamp: system(5, 4_000),
    };
    let Reported { node, mut reviewed } =
        node.report(&report, std::slice::from_ref(&gone)).unwrap();
    let reviewed = reviewed.remove(0);
    let command = Reaffirm {
        expected: None,
        stamp: by_operator(6, 5_000),
    };
    let (again, node) = reaffirm(&reviewed, &node, &command).unwrap();
    let (over, _) = expire(&again, &node, &system(7, 9_000)).unwrap();
    let states = [pending, active, stuck, gone, reviewed, again, over];
    let records = trail(&mut Rng::new(1), &states, false);
    let expected = [
        (EventType::Created, 0),
        (EventType::Activated, 1),
        (EventType::VmStuck, 0),
        (EventType::VmTerminated, 0),
        (EventType::NeedsReview, 0),
        (EventType::Reaffirmed, 0),
        (EventType::Expired, 0),
    ];
    assert_eq!(told(&records), expected);
    let current = states.last().unwrap().version;
    assert_eq!(verify(&records, current).unwrap().records, 8);
    // The record beside the version that began the term is missed.
    let mut removed = records.clone();
    removed.remove(2);
    let fault = verify(&removed, current).unwrap_err();
    assert_eq!((fault.place, fault.wrong), (2, Wrong::Missing));
}
