//! Every list is walked to its end, page by page, while items come and go: what was there all along
//! is seen exactly once, in order, and nothing is seen twice. Ten thousand items over the store in
//! memory, some hundred over the real one. And a cursor is good for nothing but its own list.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use app::ports::{Commit, Custodian, CustodyMove, PutAudit as _, Write};
use domain::audit::{Event, Record, events};
use domain::{Node, Tier, Version};
use http_api::routes::ROUTES;
use serde_json::{Value, json};
use testkit::engine::Engine;
use testkit::events::HttpEvent;
use testkit::fixtures::{
    self, AUDIENCE_ORG, MANAGER_ORG, NODE, OWNER_ORG, RESERVATION, STRANGER_ORG, id, operator,
    stamp, unit_set, write,
};
use testkit::http::{Answer, Fleet, Platform, key_of, secret_of};
use testkit::{MemoryStore, Rng, Store, TestClock, World};

/// Items of each list when its walk begins.
const ITEMS: usize = 10_000;
/// Items that come, and that go, between two pages.
const COMINGS: usize = 10;

async fn ask<S: Store + Clone + 'static>(platform: &Platform<S>, path: &str) -> Answer {
    let request = HttpEvent::new("GET", path).by(&secret_of(&operator()));
    platform.call(request).await
}

/// A platform over this store, with the operator's key.
async fn platform<S: Store + Clone + 'static>(store: S) -> Platform<S> {
    let digest = secret_of(&operator()).digest();
    store.put_key(&digest, &key_of(&operator())).await.unwrap();
    Platform::new(store, TestClock::default(), 1)
}

/// A page of a list: the ids on it, and the cursor of the next.
async fn page<S: Store + Clone + 'static>(
    platform: &Platform<S>,
    path: &str,
    limit: usize,
    cursor: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}"));
    let query = format!("{path}?limit={limit}{}", cursor.unwrap_or_default());
    let answer = ask(platform, &query).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let body = answer.json();
    let items = body["items"].as_array().unwrap();
    assert!(items.len() <= limit, "{query}");
    let ids = items.iter().map(|item| item["id"].as_str().unwrap());
    let next = body["nextCursor"].as_str().map(str::to_owned);
    (ids.map(str::to_owned).collect(), next)
}

/// A list of a world in memory.
struct List {
    path: String,
    /// Puts the item of this number in; its id sorts as the number does.
    come: fn(&mut World, u64),
    /// Takes it out.
    go: fn(&mut World, u64),
    /// The id of the item of this number.
    named: fn(u64) -> String,
}

fn name(number: u64) -> String {
    format!("{number:016x}")
}

fn lists() -> Vec<List> {
    let of_node = format!("/v1/nodes/{NODE}/reservations");
    vec![
        List {
            path: of_node,
            come: |world, number| {
                let (mut reservation, _) = fixtures::reserved(&fixtures::node(1), [0]);
                reservation.id = id(&name(number));
                let key = (reservation.node.clone(), reservation.id.clone());
                world.reservations.insert(key, reservation);
            },
            go: |world, number| {
                world.reservations.remove(&(id(NODE), id(&name(number))));
            },
            named: name,
        },
        List {
            path: format!("/v1/orgs/{MANAGER_ORG}/reservations"),
            come: |world, number| {
                let (mut reservation, _) = fixtures::reserved(&fixtures::node(1), [0]);
                // On one of many nodes, now with one part in it and now with two.
                reservation.node = id(&format!("node-{}", number % 50));
                reservation.id = id(&name(number));
                if number % 2 == 0 {
                    reservation.audience.insert(id(MANAGER_ORG));
                }
                let key = (reservation.node.clone(), reservation.id.clone());
                world.reservations.insert(key, reservation);
            },
            go: |world, number| {
                let node = id(&format!("node-{}", number % 50));
                world.reservations.remove(&(node, id(&name(number))));
            },
            named: name,
        },
        List {
            path: format!("/v1/orgs/{STRANGER_ORG}/vms"),
            come: |world, number| {
                let vm = fixtures::spot(&name(number), [0]);
                world.vms.insert(vm.id.clone(), vm);
            },
            go: |world, number| {
                world.vms.remove(&id(&name(number)));
            },
            named: name,
        },
        List {
            path: "/v1/nodes".to_owned(),
            come: |world, number| {
                let node = Node {
                    id: id(&name(number)),
                    ..fixtures::node(1)
                };
                world.nodes.insert(node.id.clone(), node);
            },
            go: |world, number| {
                world.nodes.remove(&id(&name(number)));
            },
            named: name,
        },
    ]
}

/// Walks a list while items come and go.
async fn walk(list: &List, limit: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let platform = platform(MemoryStore::default()).await;
    let mut staying: BTreeSet<u64> = (0..ITEMS).map(|_| rng.next_u64()).collect();
    let mut ever = staying.clone();
    platform.store.tamper(|world| {
        for number in &staying {
            (list.come)(world, *number);
        }
    });
    let mut going: Vec<u64> = rng.some_of(&staying, 50);
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (ids, next) = page(&platform, &list.path, limit, cursor.as_deref()).await;
        seen.extend(ids);
        cursor = next;
        if cursor.is_none() {
            break;
        }
        for _ in 0..COMINGS {
            let comes = rng.next_u64();
            ever.insert(comes);
            let goes = going.pop();
            platform.store.tamper(|world| {
                (list.come)(world, comes);
                if let Some(goes) = goes {
                    (list.go)(world, goes);
                }
            });
            if let Some(goes) = goes {
                staying.remove(&goes);
            }
        }
    }
    let path = &list.path;
    assert!(
        seen.is_sorted_by(|a, b| a < b),
        "{path}: in order, none twice"
    );
    let seen: BTreeSet<String> = seen.into_iter().collect();
    let lost = staying
        .iter()
        .filter(|n| !seen.contains(&(list.named)(**n)));
    assert_eq!(lost.count(), 0, "{path}: of those that stayed");
    let ever: BTreeSet<String> = ever.into_iter().map(list.named).collect();
    assert!(seen.is_subset(&ever), "{path}: never there");
    assert!(seen.len() > ITEMS / 2, "{path}");
}

#[tokio::test]
async fn ten_thousand_items_are_each_seen_once_while_others_come_and_go() {
    for (seed, list) in (1..).zip(lists()) {
        walk(&list, 100, seed).await;
    }
}

/// The record of this version, in no chain: a page shows what is stored.
fn record(of: &Event, version: u64) -> Record {
    let event = Event {
        version: Version::stored(version).unwrap(),
        ..of.clone()
    };
    event.seal("")
}

#[tokio::test]
async fn a_trail_of_ten_thousand_records_is_read_whole_while_it_grows() {
    let platform = platform(MemoryStore::default()).await;
    let (reservation, node) = fixtures::reserved(&fixtures::node(1), [0]);
    let own = events(None, &reservation).remove(0);
    let put = |from: u64, to: u64| {
        platform.store.tamper(|world| {
            let chain = world.audit.entry(id(RESERVATION)).or_default();
            for version in from..to {
                let record = record(&own, version);
                chain.insert((record.event.version, None), record);
            }
        });
    };
    platform.store.tamper(|world| {
        world.nodes.insert(node.id.clone(), node);
        let key = (reservation.node.clone(), reservation.id.clone());
        world.reservations.insert(key, reservation);
    });
    let mut end = 1 + u64::try_from(ITEMS).unwrap();
    put(1, end);
    let path = format!("/v1/nodes/{NODE}/reservations/{RESERVATION}/audit");
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (ids, next) = page(&platform, &path, 100, cursor.as_deref()).await;
        seen.extend(ids);
        if next.is_none() {
            break;
        }
        cursor = next;
        put(end, end + 5);
        end += 5;
    }
    let expected: Vec<String> = (1..end)
        .map(|version| format!("{RESERVATION}:{version}"))
        .collect();
    assert_eq!(seen, expected);
}

/// Registers the node of this number.
async fn register(store: &impl Store, number: usize, units: usize) {
    let node = Node {
        id: id(&format!("n-{number:04}")),
        ..fixtures::node(units)
    };
    let put = store.put_node(&node, &write(0xe001)).await;
    assert_eq!(put, Ok(Write::Done(())));
}

/// Reserves the unit of this number of the first node.
async fn reserve(store: &impl Store, number: usize) {
    let node = store.load_node(&id("n-0000")).await.unwrap().unwrap();
    let command = domain::reservation::Reserve {
        id: id(&format!("r-{:04}", (number * 37) % 1_000)),
        units: unit_set([number]),
        stamp: stamp(fixtures::owner(), 0x1000 + u64::try_from(number).unwrap()),
        ..fixtures::reserve_command([0])
    };
    let (reservation, after) = fixtures::reserve_with(&node, &command);
    let change = CustodyMove {
        node_seen: node.version,
        node: after,
        reservation_seen: None,
        reservation,
        write: command.stamp.write,
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
}

/// Places the VM of this number on the second node.
async fn place(store: &impl Store, number: usize) {
    let name = format!("vm-{:04}", (number * 37) % 1_000);
    let mut vm = fixtures::vm(&name, Tier::Spot, STRANGER_ORG, [number]);
    vm.node = id("n-0001");
    let by = stamp(
        fixtures::stranger(),
        0x2000 + u64::try_from(number).unwrap(),
    );
    let placed = store.place(&vm, &Custodian::Pool, &by).await;
    assert_eq!(placed, Ok(Commit::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_real_store_lists_are_whole_while_items_come() {
    const FIRST: usize = 60;
    let engine = Engine::start().await;
    let store = engine.store();
    let platform = platform(store.clone()).await;
    let (reservation, _) = fixtures::reserved(&fixtures::node(1), [0]);
    let own = events(None, &reservation).remove(0);
    for number in 0..FIRST {
        register(&store, number, if number < 2 { 128 } else { 1 }).await;
        if number < 2 {
            continue;
        }
        reserve(&store, number).await;
        place(&store, number).await;
    }
    let trail = Event {
        reservation: id("r-0074"),
        ..own
    };
    for version in 1..=u64::try_from(FIRST).unwrap() {
        let put = store.put_record(&record(&trail, version)).await;
        assert!(put.is_ok());
    }
    let of_node = "/v1/nodes/n-0000/reservations".to_owned();
    for path in [
        "/v1/nodes".to_owned(),
        format!("{of_node}/r-0074/audit"),
        of_node,
        format!("/v1/orgs/{OWNER_ORG}/reservations"),
        format!("/v1/orgs/{STRANGER_ORG}/vms"),
    ] {
        let (before, more) = page(&platform, &path, 100, None).await;
        assert_eq!(more, None, "{path}");
        let (mut seen, mut cursor, mut comes) = (Vec::new(), None, 0);
        loop {
            let (ids, next) = page(&platform, &path, 5, cursor.as_deref()).await;
            seen.extend(ids);
            if next.is_none() {
                break;
            }
            cursor = next;
            let number = before.len() + comes + 3;
            match path.rsplit('/').next() {
                Some("nodes") => register(&store, number, 1).await,
                Some("reservations") => reserve(&store, number).await,
                Some("vms") => place(&store, number).await,
                _ => {
                    let version = u64::try_from(before.len() + comes + 1).unwrap();
                    let put = store.put_record(&record(&trail, version)).await;
                    assert!(put.is_ok());
                }
            }
            comes += 1;
        }
        let each: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(each.len(), seen.len(), "{path}: none twice");
        assert!(
            before.iter().all(|id| each.contains(id)),
            "{path}: none lost"
        );
        assert!(comes > 10, "{path}");
    }
}

/// A fleet on which every list has at least two items.
async fn furnished() -> (Platform<MemoryStore>, Fleet) {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let sent = |method: &'static str, path: String, body: Value| {
        let request = HttpEvent::new(method, &path).json(&body);
        platform.call(request.by(&secret_of(&operator())))
    };
    let answers = [
        sent(
            "PUT",
            "/v1/nodes/another".to_owned(),
            json!({ "ownerOrgId": OWNER_ORG, "gpuModelId": "a100", "units": [{ "id": "u" }] }),
        )
        .await,
        sent(
            "POST",
            format!("/v1/nodes/{NODE}/reservations"),
            json!({ "reservedUnitIds": ["u06"], "allowedOrgIds": [AUDIENCE_ORG] }),
        )
        .await,
        sent(
            "POST",
            format!("/v1/orgs/{AUDIENCE_ORG}/vms/create"),
            json!({ "name": "w", "tier": "spot", "nodeId": NODE, "unitIds": ["u07"] }),
        )
        .await,
        sent(
            "POST",
            format!("/v1/orgs/{AUDIENCE_ORG}/api-keys/create"),
            json!({ "name": "another", "role": "member" }),
        )
        .await,
    ];
    assert!(
        answers.iter().all(|answer| answer.status == 200),
        "{answers:?}"
    );
    (platform, fleet)
}

#[tokio::test]
async fn every_list_refuses_the_cursors_of_all_others_and_any_that_was_changed() {
    let (platform, fleet) = furnished().await;
    let mut cursors: Vec<(String, String)> = Vec::new();
    let lists = ROUTES
        .iter()
        .filter(|route| route.query.contains(&"cursor"));
    for route in lists {
        let event = fleet.call(route.operation).build();
        let path = event["rawPath"].as_str().unwrap().to_owned();
        let answer = ask(&platform, &format!("{path}?limit=1")).await;
        let cursor = answer.field("nextCursor");
        assert!(!cursor.is_empty(), "{path}: {answer:?}");
        cursors.push((path, cursor));
    }
    assert!(cursors.len() >= 5);
    let refused = async |path: &str, cursor: &str| {
        let answer = ask(&platform, &format!("{path}?cursor={cursor}")).await;
        let got = (answer.status, answer.code());
        assert_eq!(got, (400, "bad_request".to_owned()), "{path}: {cursor}");
    };
    for (path, cursor) in &cursors {
        let own = ask(&platform, &format!("{path}?cursor={cursor}")).await;
        assert_eq!(own.status, 200, "{path}: {own:?}");
        for (other, _) in cursors.iter().filter(|(other, _)| other != path) {
            refused(other, cursor).await;
        }
        for place in 0..cursor.len() {
            for other in ["A", "B", "9", "_", "-", "z"] {
                if cursor[place..=place] != *other {
                    let mut forged = cursor.clone();
                    forged.replace_range(place..=place, other);
                    refused(path, &forged).await;
                }
            }
            refused(path, &cursor[..place]).await;
        }
        refused(path, &format!("{cursor}A")).await;
    }
}

#[tokio::test]
async fn a_cursor_of_all_nodes_is_not_one_of_an_owners_own() {
    let (platform, _) = furnished().await;
    let all = ask(&platform, "/v1/nodes?limit=1")
        .await
        .field("nextCursor");
    let by_owner = |path: String| {
        let request = HttpEvent::new("GET", &path);
        platform.call(request.by(&secret_of(&fixtures::owner())))
    };
    let answer = by_owner(format!("/v1/nodes?cursor={all}")).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let own = by_owner("/v1/nodes?limit=1".to_owned()).await;
    let own = own.field("nextCursor");
    let answer = by_owner(format!("/v1/nodes?cursor={own}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}
