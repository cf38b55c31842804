//! A reservation's life by the rules alone: made, released, sold, reclaimed, ended, and its trail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use domain::audit::{Record, Wrong, events, verify};
use domain::invariants::check_all;
use domain::node::Register;
use domain::reservation::place::{place, vacate};
use domain::reservation::{End, Ended, Reclaim, Release, Reserve};
use domain::reservation::{end, reclaim, release, reserve, victims};
use domain::slot::condemned;
use domain::stamp::{Actor, Stamp, WriteId};
use domain::*;

fn stamp(org: &str, write: u64, now_ms: i64) -> Stamp {
    Stamp {
        actor: Actor::Caller(Caller {
            org: OrgId::parse(org).unwrap(),
            key: KeyId::parse("key").unwrap(),
            operator: org == "relet",
        }),
        write: WriteId::parse(&format!("{write:012x}")).unwrap(),
        request_id: format!("request-{write}"),
        reason: Some("because".to_owned()),
        now: Timestamp::from_unix_ms(now_ms),
    }
}

fn units(names: &[&str]) -> UnitSet {
    UnitSet::parse(names, 32).unwrap()
}

fn node() -> Node {
    let register = Register {
        id: NodeId::parse("n").unwrap(),
        owner: OrgId::parse("owner").unwrap(),
        gpu_model: GpuModelId::parse("h100").unwrap(),
        units: ["a", "b", "c", "d"]
            .map(|u| (UnitId::parse(u).unwrap(), 1))
            .into(),
        topology_gen: 1,
        stamp: stamp("relet", 1, 1_000),
    };
    register.node()
}

fn vm(id: &str, tier: Tier, org: &str, units: &[&str]) -> Vm {
    Vm {
        id: VmId::parse(id).unwrap(),
        org: OrgId::parse(org).unwrap(),
        name: id.to_owned(),
        status: VmStatus::Running,
        status_reason: None,
        tier,
        gpu_model: GpuModelId::parse("h100").unwrap(),
        gpu_count: 1,
        node: NodeId::parse("n").unwrap(),
        units: units.iter().map(|u| UnitId::parse(u).unwrap()).collect(),
        reservation: None,
        sentence: None,
        attempts: 0,
        stuck_at: None,
        created_at: Timestamp::from_unix_ms(0),
        updated_at: Timestamp::from_unix_ms(0),
    }
}

fn reserved(node: &Node, names: &[&str]) -> (Reservation, Node) {
    let command = Reserve {
        id: ReservationId::parse("r").unwrap(),
        units: units(names),
        audience: [OrgId::parse("tenant").unwrap()].into(),
        managers: [OrgId::parse("manager").unwrap()].into(),
        starts: None,
        ends: Some(Timestamp::from_unix_ms(1_000_000)),
        contract_ref: None,
        stamp: stamp("owner", 2, 2_000),
    };
    reserve(node, &command).unwrap()
}

fn released(reservation: &Reservation, names: &[&str], write: u64) -> Result<Reservation, Refusal> {
    let stamp = stamp("manager", write, 3_000);
    release(
        reservation,
        &Release {
            units: units(names),
            expected: None,
            stamp,
        },
    )
}

fn reclaimed(reservation: &Reservation, names: &[&str], write: u64) -> Reservation {
    let stamp = stamp("manager", write, 4_000);
    reclaim(
        reservation,
        &Reclaim {
            units: units(names),
            expected: None,
            stamp,
        },
    )
    .unwrap()
}

fn names(ids: &BTreeSet<VmId>) -> Vec<&str> {
    ids.iter().map(VmId::as_str).collect()
}

#[test]
fn a_reservation_takes_units_with_their_spot_vms_condemned_wherever_they_sit() {
    let pool = node();
    let pool = pool
        .place(
            &vm("wide", Tier::Spot, "x", &["a", "b"]),
            &stamp("x", 3, 1_500),
        )
        .unwrap();
    let pool = pool
        .place(
            &vm("calm", Tier::Community, "y", &["c"]),
            &stamp("y", 4, 1_500),
        )
        .unwrap();
    let (reservation, pool) = reserved(&pool, &["a", "c"]);
    assert_eq!(check_all(&pool, std::slice::from_ref(&reservation)), []);
    let here = condemned(&reservation.slots, reservation.offer());
    let there = condemned(&pool.slots, pool.offer());
    assert_eq!(here.keys().map(VmId::as_str).collect::<Vec<_>>(), ["wide"]);
    assert_eq!(there.keys().map(VmId::as_str).collect::<Vec<_>>(), ["wide"]);
}

#[test]
fn a_unit_is_never_reserved_twice() {
    let (first, pool) = reserved(&node(), &["a", "b"]);
    let mut again = Reserve {
        id: ReservationId::parse("r2").unwrap(),
        units: units(&["b", "c"]),
        audience: BTreeSet::new(),
        managers: BTreeSet::new(),
        starts: None,
        ends: None,
        contract_ref: None,
        stamp: stamp("owner", 9, 2_500),
    };
    let holders = [(UnitId::parse("b").unwrap(), first.id.clone())].into();
    assert_eq!(
        reserve(&pool, &again),
        Err(Refusal::UnitsAlreadyReserved(
            holders,
            Some(Timestamp::from_unix_ms(1_000_000))
        ))
    );
    again.units = units(&["z"]);
    assert!(matches!(
        reserve(&pool, &again),
        Err(Refusal::UnknownUnit(_))
    ));
}

#[test]
fn what_a_reclaim_condemned_cannot_be_put_back_on_offer() {
    let (reservation, _) = reserved(&node(), &["a", "b"]);
    let offered = released(&reservation, &["a", "b"], 3).unwrap();
    let sold = vm("spot", Tier::Spot, "x", &["a", "b"]);
    let sold = place(&offered, &sold, &stamp("x", 4, 3_500)).unwrap();
    let back = reclaimed(&sold, &["a"], 5);
    let draining = [UnitId::parse("a").unwrap()].into();
    assert_eq!(
        released(&back, &["a"], 6),
        Err(Refusal::UnitDraining(draining))
    );
    let gone = vacate(
        &back,
        &VmId::parse("spot").unwrap(),
        &stamp("owner", 7, 5_000),
    )
    .unwrap();
    assert!(released(&gone, &["a"], 8).is_ok());
}

#[test]
fn ending_returns_the_units_and_carries_sentences_along() {
    let (reservation, pool) = reserved(&node(), &["a", "b"]);
    let offered = released(&reservation, &["a", "b"], 3).unwrap();
    let sold = place(
        &offered,
        &vm("doomed", Tier::Spot, "x", &["a"]),
        &stamp("x", 4, 3_500),
    );
    let sold = place(
        &sold.unwrap(),
        &vm("safe", Tier::Spot, "x", &["b"]),
        &stamp("x", 5, 3_500),
    );
    let back = reclaimed(&sold.unwrap(), &["a"], 6);
    let command = End {
        expected: None,
        stamp: stamp("relet", 7, 6_000),
    };
    let Ok(Ended::Now(after)) = end(&back, &pool, &command) else {
        panic!("it ends")
    };
    let (ended, pool) = *after;
    assert_eq!(check_all(&pool, std::slice::from_ref(&ended)), []);
    assert_eq!(ended.status, Status::Cancelled);
    let dying = condemned(&pool.slots, pool.offer());
    assert_eq!(
        dying.keys().map(VmId::as_str).collect::<Vec<_>>(),
        ["doomed"]
    );
    assert_eq!(end(&ended, &pool, &command), Ok(Ended::Already));
}

#[test]
fn a_lost_reply_is_answered_from_a_later_image_or_not_at_all() {
    let (reservation, _) = reserved(&node(), &["a", "b"]);
    let offered = released(&reservation, &["a", "b"], 3).unwrap();
    let sold = place(
        &offered,
        &vm("spot", Tier::Spot, "x", &["a"]),
        &stamp("x", 4, 3_500),
    )
    .unwrap();
    let back = reclaimed(&sold, &["a", "b"], 5);
    let asked = units(&["a", "b"]);
    let spot = VmId::parse("spot").unwrap();
    let gone = vacate(&back, &spot, &stamp("owner", 6, 5_000)).unwrap();
    let tenant = vm("tenant", Tier::Community, "tenant", &["a"]);
    let moved_in = place(&gone, &tenant, &stamp("tenant", 7, 5_500)).unwrap();
    for image in [&back, &gone, &moved_in] {
        let found = victims(image, asked.as_set(), back.version).unwrap();
        assert_eq!(
            (names(&found.spot), names(&found.other)),
            (vec!["spot"], vec![])
        );
    }
    let tenant_gone = vacate(&moved_in, &tenant.id, &stamp("owner", 8, 6_000)).unwrap();
    assert_eq!(
        victims(&tenant_gone, asked.as_set(), back.version),
        None,
        "two have come and gone"
    );
}

#[test]
fn a_passed_end_refuses_at_once_and_the_start_counts() {
    let (reservation, _) = reserved(&node(), &["a"]);
    let at = |ms| Release {
        units: units(&["a"]),
        expected: None,
        stamp: stamp("manager", 3, ms),
    };
    assert!(
        release(&reservation, &at(2_000)).is_ok(),
        "the first instant belongs to the term"
    );
    assert!(release(&reservation, &at(999_999)).is_ok());
    let over = Err(Refusal::ReservationNotActive(Status::Expired));
    assert_eq!(
        release(&reservation, &at(1_000_000)),
        over,
        "the last does not"
    );
    let early = Err(Refusal::ReservationNotActive(Status::Pending));
    assert_eq!(release(&reservation, &at(1_999)), early);
}

/// The trail of a life with a release, a sale, a reclaim and a confirmed stop.
fn trail() -> (Vec<Record>, Version) {
    let (made, _) = reserved(&node(), &["a", "b"]);
    let offered = released(&made, &["a"], 3).unwrap();
    let sold = place(
        &offered,
        &vm("spot", Tier::Spot, "x", &["a"]),
        &stamp("x", 4, 3_500),
    )
    .unwrap();
    let back = reclaimed(&sold, &["a"], 5);
    let gone = vacate(
        &back,
        &VmId::parse("spot").unwrap(),
        &stamp("owner", 6, 5_000),
    )
    .unwrap();
    let lives = [&made, &offered, &sold, &back, &gone];
    let mut out: Vec<Record> = Vec::new();
    for (place, image) in lives.iter().enumerate() {
        let old = place.checked_sub(1).map(|before| lives[before]);
        for event in events(old, image) {
            let prev = out
                .last()
                .map(|record| record.hash.clone())
                .unwrap_or_default();
            out.push(event.seal(&prev));
        }
    }
    (out, gone.version)
}

#[test]
fn a_trail_has_a_record_for_every_version_and_every_condemned_vm() {
    let (records, current) = trail();
    let verified = verify(&records, current).unwrap();
    assert_eq!((verified.records, verified.last), (6, current));
    assert_eq!(verified.head, records[5].hash);
    let types: Vec<&str> = records.iter().map(|r| r.event.event.as_str()).collect();
    assert_eq!(
        types,
        [
            "reservation.created",
            "reservation.released",
            "vm.placed",
            "reservation.reclaimed",
            "vm.condemned",
            "vm.terminated"
        ]
    );
}

#[test]
fn a_trail_that_was_touched_anywhere_is_found_out() {
    let (records, current) = trail();
    for place in 0..records.len() {
        let mut changed = records.clone();
        changed[place].event.reason = Some("another".to_owned());
        let fault = verify(&changed, current).unwrap_err();
        assert_eq!((fault.place, fault.wrong), (place, Wrong::Changed));
        let mut removed = records.clone();
        removed.remove(place);
        assert!(verify(&removed, current).is_err(), "without {place}");
        let mut twice = records.clone();
        twice.insert(place, records[place].clone());
        assert!(verify(&twice, current).is_err(), "{place} twice");
        if place > 0 {
            let mut swapped = records.clone();
            swapped.swap(place, place - 1);
            assert!(verify(&swapped, current).is_err(), "{place} swapped");
        }
    }
}

#[test]
fn an_image_that_is_not_newer_leaves_no_record() {
    let (made, _) = reserved(&node(), &["a"]);
    assert_eq!(events(Some(&made), &made), []);
}
