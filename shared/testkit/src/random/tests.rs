//! The generator is only worth something if every answer of the rules comes up, and often.

use std::collections::BTreeMap;

use domain::invariants::{check_all, check_node};
use domain::reservation::{Ended, place};
use domain::{Refusal, Status};

use super::*;
use crate::fixtures::now;

const SEEDS: u64 = 6_000;

/// The name of an answer without its details.
fn name<T: std::fmt::Debug>(answer: &Result<T, Refusal>) -> String {
    match answer {
        Ok(_) => "Ok".to_owned(),
        Err(refusal) => {
            let text = format!("{refusal:?}");
            let end = text.find(|c: char| !c.is_alphanumeric());
            text[..end.unwrap_or(text.len())].to_owned()
        }
    }
}

/// Counts the answers over all seeds.
fn tally(answer: impl Fn(&mut Rng) -> String) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for seed in 0..SEEDS {
        *counts.entry(answer(&mut Rng::new(seed))).or_default() += 1;
    }
    counts
}

/// Fails unless exactly these answers came up, each at least a hundred times.
fn assert_covered(counts: &BTreeMap<String, u32>, expected: &[&str]) {
    let seen: Vec<&str> = counts.keys().map(String::as_str).collect();
    assert_eq!(seen, expected, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 100), "{counts:?}");
}

#[test]
fn a_seed_gives_the_same_state_again() {
    let draw = |seed| pair(&mut Rng::new(seed), now());
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn every_state_keeps_the_invariants() {
    for seed in 0..SEEDS {
        let (reservation, node) = pair(&mut Rng::new(seed), now());
        assert_eq!(check_all(&node, &[reservation]), [], "seed {seed}");
        assert_eq!(
            check_node(&super::node(&mut Rng::new(seed), now())),
            [],
            "seed {seed}"
        );
    }
}

#[test]
fn releases_and_reclaims_meet_every_answer() {
    let releases = tally(|rng| {
        let reservation = reservation(rng, now());
        let command = release(rng, &reservation, now());
        name(&domain::reservation::release(&reservation, &command))
    });
    let without_draining = [
        "NotFound",
        "Ok",
        "ReservationNotActive",
        "UnitNotReserved",
        "VersionMismatch",
    ];
    let mut expected = without_draining.to_vec();
    expected.insert(3, "UnitDraining");
    assert_covered(&releases, &expected);
    let reclaims = tally(|rng| {
        let reservation = reservation(rng, now());
        let command = reclaim(rng, &reservation, now());
        let answer = name(&domain::reservation::reclaim(&reservation, &command));
        match reservation.status {
            Status::NeedsReview if answer == "Ok" => "Ok in review".to_owned(),
            _ => answer,
        }
    });
    let mut expected = without_draining.to_vec();
    expected.insert(2, "Ok in review");
    assert_covered(&reclaims, &expected);
}

#[test]
fn ends_meet_every_answer() {
    let ends = tally(|rng| {
        let (reservation, node) = pair(rng, now());
        let command = end(rng, &reservation, now());
        match domain::reservation::end(&reservation, &node, &command) {
            Ok(Ended::Already) => "Already".to_owned(),
            answer => name(&answer),
        }
    });
    let expected = [
        "Already",
        "NotFound",
        "Ok",
        "ReservationNotActive",
        "VersionMismatch",
    ];
    assert_covered(&ends, &expected);
}

#[test]
fn reserves_meet_every_answer_but_the_full_node() {
    let reserves = tally(|rng| {
        let node = node(rng, now());
        let command = reserve(rng, &node, now());
        name(&domain::reservation::reserve(&node, &command))
    });
    let expected = [
        "EndsTooEarly",
        "NotFound",
        "Ok",
        "UnitsAlreadyReserved",
        "UnknownUnit",
    ];
    let seen: Vec<&str> = reserves.keys().map(String::as_str).collect();
    assert_eq!(seen, expected, "{reserves:?}");
}

#[test]
fn placements_meet_every_answer() {
    let on_reservation = tally(|rng| {
        let reservation = reservation(rng, now());
        let vm = placement(rng, &reservation.slots, Some(&reservation.released), now());
        let stamp = stamp(rng, now());
        match place::place(&reservation, &vm, &stamp) {
            Ok(_) => format!("Ok {}", vm.tier.as_str()),
            Err(refusal) => refusal.to_string()[..20].to_owned(),
        }
    });
    let expected = [
        "Ok community",
        "Ok spot",
        "Ok verified",
        "no capacity: not for",
        "no capacity: the org",
        "no capacity: the res",
    ];
    assert_covered(&on_reservation, &expected);
    let in_pool = tally(|rng| {
        let node = node(rng, now());
        let vm = placement(rng, &node.slots, None, now());
        let stamp = stamp(rng, now());
        name(&node.place(&vm, &stamp))
    });
    assert_covered(&in_pool, &["InsufficientCapacity", "Ok"]);
}
