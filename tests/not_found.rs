//! What is hidden from a caller looks like what is not there: the same bytes apart from the
//! request's id, and the same number of requests to the store.

use domain::Caller;
use http_api::routes::{Operation, ROUTES};
use serde_json::json;
use testkit::engine::Engine;
use testkit::events::HttpEvent;
use testkit::fixtures::{NODE, audience, manager, now, operator, owner, stranger};
use testkit::http::{Answer, Fleet, OTHER_NODE, Platform, Target, good_call, secret_of};
use testkit::{MemoryStore, Store, TestClock};

/// A pair of calls that must not be told apart by who makes them.
struct Pair {
    what: &'static str,
    by: Caller,
    hidden: HttpEvent,
    absent: HttpEvent,
}

/// The same call about what is hidden and about what is not there.
fn pair(
    what: &'static str,
    by: Caller,
    operation: Operation,
    hidden: Target,
    change: impl FnOnce(&mut Target),
) -> Pair {
    let mut absent = hidden.clone();
    change(&mut absent);
    Pair {
        what,
        by,
        hidden: good_call(operation, &hidden),
        absent: good_call(operation, &absent),
    }
}

const NO_RESERVATION: &str = "01900000-0003-7182-b48f-000000000000";
const NO_VM: &str = "01900000-0006-7902-8add-000000000000";

/// The operations that are about one thing which some callers may not know of.
const ABOUT_RESERVATION: [Operation; 6] = [
    Operation::ReleaseUnits,
    Operation::ReclaimUnits,
    Operation::EndReservation,
    Operation::ReaffirmReservation,
    Operation::GetReservation,
    Operation::ListAuditRecords,
];
const ABOUT_NODE: [Operation; 7] = [
    Operation::CreateReservation,
    Operation::ListReservations,
    Operation::PutNode,
    Operation::GetNode,
    Operation::PutTopology,
    Operation::ListTerminations,
    Operation::ConfirmTermination,
];
const ABOUT_VM: [Operation; 2] = [Operation::GetVm, Operation::TerminateVm];
/// An org's own paths say 403 to others, and hide nothing that a caller could name, but for the
/// reservation that a VM is to be placed on, and the keys of other orgs.
const OF_ORG: [Operation; 6] = [
    Operation::CreateVm,
    Operation::ListVms,
    Operation::ListOrgReservations,
    Operation::CreateKey,
    Operation::ListKeys,
    Operation::RevokeKey,
];
/// What is about the caller itself, or about nothing that is stored, or names nothing that could be
/// hidden: each caller gets a list of its own, or one for all.
const ABOUT_NOTHING: [Operation; 5] = [
    Operation::GetCaller,
    Operation::GetHealth,
    Operation::GetApiDocument,
    Operation::ListNodes,
    Operation::ListAvailability,
];

fn of_reservation(fleet: &Fleet) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for operation in ABOUT_RESERVATION {
        let target = fleet.target(operation);
        let gone = |at: &mut Target| at.reservation = NO_RESERVATION.to_owned();
        pairs.push(pair(
            "a reservation",
            stranger(),
            operation,
            target.clone(),
            gone,
        ));
        let elsewhere = |at: &mut Target| at.node = "node-9".to_owned();
        pairs.push(pair(
            "a reservation's node",
            stranger(),
            operation,
            target.clone(),
            elsewhere,
        ));
        if !matches!(operation, Operation::GetReservation) {
            // What an audience may read it may not manage, which looks as if it were not there.
            pairs.push(pair(
                "its own to read",
                audience(),
                operation,
                target.clone(),
                gone,
            ));
        }
        if matches!(
            operation,
            Operation::EndReservation | Operation::ReaffirmReservation
        ) {
            pairs.push(pair(
                "a manager's",
                manager(),
                operation,
                target.clone(),
                gone,
            ));
            pairs.push(pair("an owner's", owner(), operation, target, gone));
        }
    }
    let target = fleet.target(Operation::ReclaimUnits);
    let dry = |reservation: &str| {
        let path = format!(
            "/v1/nodes/{}/reservations/{reservation}/reclaim?dryRun=true",
            target.node
        );
        HttpEvent::new("POST", &path).json(&json!({ "unitIds": ["u00"] }))
    };
    for by in [stranger(), audience()] {
        pairs.push(Pair {
            what: "a dry run",
            by,
            hidden: dry(&fleet.reservation),
            absent: dry(NO_RESERVATION),
        });
    }
    pairs
}

fn of_node(fleet: &Fleet) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for operation in ABOUT_NODE {
        for by in [stranger(), audience(), manager()] {
            if operation == Operation::ListReservations && by != stranger() {
                continue;
            }
            let mut target = fleet.target(operation);
            target.node = NODE.to_owned();
            let gone = |at: &mut Target| at.node = "node-9".to_owned();
            pairs.push(pair("a node", by, operation, target, gone));
        }
        // The other node has no reservations, and belongs to another owner.
        let mut target = fleet.target(operation);
        target.node = OTHER_NODE.to_owned();
        let gone = |at: &mut Target| at.node = "node-9".to_owned();
        pairs.push(pair(
            "another owner's node",
            owner(),
            operation,
            target,
            gone,
        ));
    }
    let mut target = fleet.target(Operation::ConfirmTermination);
    target.vm = fleet.other_vm.clone();
    let gone = |at: &mut Target| at.vm = NO_VM.to_owned();
    pairs.push(pair(
        "a VM of another node",
        owner(),
        Operation::ConfirmTermination,
        target,
        gone,
    ));
    pairs
}

fn of_vm(fleet: &Fleet) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for operation in ABOUT_VM {
        for (by, vm) in [
            (stranger(), &fleet.tenant_vm),
            (audience(), &fleet.spot_vm),
            (audience(), &fleet.other_vm),
            (manager(), &fleet.tenant_vm),
            (owner(), &fleet.tenant_vm),
            (owner(), &fleet.other_vm),
        ] {
            let mut target = fleet.target(operation);
            target.vm = vm.clone();
            let gone = |at: &mut Target| at.vm = NO_VM.to_owned();
            pairs.push(pair("a VM", by, operation, target, gone));
        }
    }
    pairs
}

fn of_org(fleet: &Fleet) -> Vec<Pair> {
    let place = |reservation: &str| {
        HttpEvent::new("POST", "/v1/orgs/org-stranger/vms/create").json(&json!({
            "name": "w", "tier": "verified", "nodeId": NODE, "gpuCount": 1,
            "reservationId": reservation,
        }))
    };
    // By an operator, who may revoke any key, but not by the path of another org.
    let mut target = fleet.target(Operation::RevokeKey);
    target.key = stranger().key.to_string();
    let gone = |at: &mut Target| at.key = "key-none".to_owned();
    vec![
        Pair {
            what: "a reservation to place on",
            by: stranger(),
            hidden: place(&fleet.reservation),
            absent: place(NO_RESERVATION),
        },
        pair(
            "another org's key",
            operator(),
            Operation::RevokeKey,
            target,
            gone,
        ),
    ]
}

fn pairs(fleet: &Fleet) -> Vec<Pair> {
    let all = [
        of_reservation(fleet),
        of_node(fleet),
        of_vm(fleet),
        of_org(fleet),
    ];
    all.into_iter().flatten().collect()
}

fn assert_same(what: &str, hidden: &Answer, absent: &Answer) {
    assert_eq!(hidden.without_id(), absent.without_id(), "{what}");
    assert_ne!(hidden.header("x-request-id"), absent.header("x-request-id"));
    if hidden.status == 200 {
        // The list of a hidden node's reservations is as empty as that of an absent one.
        assert_eq!(hidden.text, r#"{"items":[]}"#, "{what}");
    } else {
        assert_eq!(
            (hidden.status, &*hidden.code()),
            (404, "not_found"),
            "{what}"
        );
    }
}

/// Every pair gets one answer, at one cost; `cost` tells what was spent since it was asked last.
async fn assert_indistinguishable<S, C>(platform: &Platform<S>, fleet: &Fleet, cost: impl Fn() -> C)
where
    S: Store + Clone + 'static,
    C: PartialEq + std::fmt::Debug,
{
    for Pair {
        what,
        by,
        hidden,
        absent,
    } in pairs(fleet)
    {
        let what = format!("{what}, by {}: {hidden:?}", by.org);
        let hidden = platform.call(hidden.by(&secret_of(&by))).await;
        let of_hidden = cost();
        let absent = platform.call(absent.by(&secret_of(&by))).await;
        assert_same(&what, &hidden, &absent);
        assert_eq!(of_hidden, cost(), "{what}");
    }
}

#[test]
fn every_route_is_sorted_by_what_it_could_hide() {
    for route in ROUTES {
        let lists = [
            &ABOUT_RESERVATION[..],
            &ABOUT_NODE,
            &ABOUT_VM,
            &OF_ORG,
            &ABOUT_NOTHING,
        ];
        let count = lists.iter().filter(|list| list.contains(&route.operation));
        assert_eq!(count.count(), 1, "{} {}", route.method, route.path);
    }
}

#[tokio::test]
async fn what_is_hidden_looks_like_what_is_absent_and_costs_the_same() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let before = platform.store.world();
    let _ = platform.store.take_calls();
    assert_indistinguishable(&platform, &fleet, || platform.store.take_calls()).await;
    assert!(platform.store.world() == before, "nothing changed");
}

#[tokio::test]
async fn a_hidden_reservation_looks_absent_whatever_its_state() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    // Past the term, with a version that does not match and units that are not its own: to a
    // stranger none of it shows.
    platform.clock.set(now().plus_ms(7_200_000));
    for verb in ["release", "reclaim", "end"] {
        let ask = |reservation: &str| {
            let path = format!("/v1/nodes/{NODE}/reservations/{reservation}/{verb}");
            let body = match verb {
                "end" => json!({}),
                _ => json!({ "unitIds": ["nothing-of-it"] }),
            };
            let request = HttpEvent::new("POST", &path).json(&body);
            request
                .header("if-match", "\"99\"")
                .by(&secret_of(&stranger()))
        };
        let hidden = platform.call(ask(&fleet.reservation)).await;
        let absent = platform.call(ask(NO_RESERVATION)).await;
        assert_same(verb, &hidden, &absent);
    }
}

#[tokio::test]
async fn what_cannot_be_an_id_is_as_absent_as_any_other() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let long = "a".repeat(129);
    let absent = HttpEvent::new("GET", &format!("/v1/vms/{NO_VM}")).by(&secret_of(&owner()));
    let absent = platform.call(absent).await.without_id();
    let odd = [
        "%20", "a%2Fb", "%C3%BC", "a%00", "a%23b", "%ff", &*long, "..%2f..", "a%25",
    ];
    for odd in odd {
        for path in [
            format!("/v1/vms/{odd}"),
            format!("/v1/nodes/{odd}"),
            format!("/v1/nodes/{NODE}/reservations/{odd}"),
            format!("/v1/nodes/{odd}/reservations/{}", fleet.reservation),
        ] {
            let request = HttpEvent::new("GET", &path).by(&secret_of(&owner()));
            assert_eq!(platform.call(request).await.without_id(), absent, "{path}");
        }
    }
}

#[tokio::test]
async fn a_path_that_is_none_looks_the_same() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    Fleet::build(&platform).await;
    let absent = HttpEvent::new("GET", &format!("/v1/vms/{NO_VM}")).by(&secret_of(&owner()));
    let absent = platform.call(absent).await.without_id();
    for path in [
        "/",
        "/v1",
        "/v1/nodes/",
        "/v1/vms/a/b",
        "/v2/nodes",
        "//v1/nodes/n",
        "/V1/nodes/n",
    ] {
        let with_key = HttpEvent::new("GET", path).by(&secret_of(&owner()));
        for request in [with_key, HttpEvent::new("GET", path)] {
            assert_eq!(platform.call(request).await.without_id(), absent, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_real_store_they_take_the_same_requests() {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let requests = || -> Vec<String> {
        let calls = engine.wire().take_calls().into_iter();
        calls.map(|call| call.operation).collect()
    };
    let _ = requests();
    let cost = || {
        let requests = requests();
        assert!(!requests.is_empty(), "at least the key is read");
        requests
    };
    assert_indistinguishable(&platform, &fleet, cost).await;
}
