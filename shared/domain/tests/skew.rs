//! Clocks that do not agree: what the rules must hold to when one writer is ahead of another.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use domain::invariants::check_all;
use domain::node::Register;
use domain::reservation::{Reserve, activate, reserve};
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
