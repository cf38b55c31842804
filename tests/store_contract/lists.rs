//! Lists over many nodes, and reads of many things at once.

use std::collections::BTreeSet;

use app::ports::{Commit, CustodyMove, Part, Write};
use domain::{GpuModelId, Node, NodeId, OrgId, ReservationId};
use testkit::Store;
use testkit::fixtures::{self, NODE, OWNER_ORG, RESERVATION, id, unit_set, write};

use super::{command_for, fleet, pool, present, registered, released, reserve};

on_both!(
    nodes_are_listed_in_order_page_by_page,
    an_owner_lists_its_own_nodes_alone,
    a_listed_node_is_as_it_stands,
    a_registration_that_is_refused_lists_nothing_more,
    models_are_listed_once_each_in_order,
    nodes_and_reservations_are_read_many_at_once,
    an_org_lists_the_reservations_it_has_a_part_in,
    a_reservation_with_all_the_orgs_there_may_be_is_listed_for_each,
    a_listed_reservation_is_as_it_stands,
    a_reservation_that_was_not_made_is_not_listed,
);

/// Registers a node of this owner and model.
async fn register(store: &impl Store, name: &str, owner: &str, model: &str) -> Node {
    let node = Node {
        id: id(name),
        owner: id(owner),
        gpu_model: id(model),
        ..fixtures::node(2)
    };
    let put = store.put_node(&node, &write(0xe001)).await;
    assert_eq!(put, Ok(Write::Done(())));
    node
}

/// All nodes of the list, by pages of so many.
async fn listed(store: &impl Store, owner: Option<&str>, limit: usize) -> Vec<Node> {
    let owner: Option<OrgId> = owner.map(id);
    let mut seen = Vec::new();
    let mut after: Option<NodeId> = None;
    loop {
        let page = store
            .list_nodes(owner.as_ref(), after.as_ref(), limit)
            .await;
        let page = page.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items);
        match page.next {
            None => return seen,
            next => after = next,
        }
    }
}

fn names(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().map(|node| node.id.as_str()).collect()
}

/// Ids that sort otherwise with what stands before or behind them in a key.
const ODD: [&str; 7] = ["-", ".", "0", ":", "a", "a-1", "a:1"];

async fn nodes_are_listed_in_order_page_by_page(store: impl Store) {
    assert_eq!(listed(&store, None, 3).await, []);
    for name in ODD.iter().rev() {
        register(&store, name, OWNER_ORG, "m").await;
    }
    let mut sorted = ODD.map(id::<NodeId>);
    sorted.sort();
    for limit in 1..=8 {
        let found = listed(&store, None, limit).await;
        assert_eq!(
            names(&found),
            sorted.each_ref().map(NodeId::as_str),
            "{limit}"
        );
    }
    let absent: NodeId = id("a-0");
    let rest = store.list_nodes(None, Some(&absent), 9).await.unwrap();
    assert_eq!(
        names(&rest.items),
        ["a-1", "a:1"],
        "it goes on behind what is not there"
    );
    assert_eq!(rest.next, None);
}

async fn an_owner_lists_its_own_nodes_alone(store: impl Store) {
    for (name, owner) in [("n1", "o"), ("n2", "o-1"), ("n3", "o"), ("n4", "p")] {
        register(&store, name, owner, "m").await;
    }
    assert_eq!(names(&listed(&store, Some("o"), 1).await), ["n1", "n3"]);
    assert_eq!(names(&listed(&store, Some("o-1"), 1).await), ["n2"]);
    assert_eq!(listed(&store, Some("q"), 1).await, []);
    assert_eq!(
        names(&listed(&store, None, 3).await),
        ["n1", "n2", "n3", "n4"]
    );
}

async fn a_listed_node_is_as_it_stands(store: impl Store) {
    fleet(&store).await;
    let now = pool(&store).await;
    let all = listed(&store, None, 1).await;
    assert_eq!(listed(&store, Some(OWNER_ORG), 1).await, all);
    assert_eq!(all, [now]);
}

async fn a_registration_that_is_refused_lists_nothing_more(store: impl Store) {
    registered(&store, 2).await;
    let other = Node {
        owner: id("org-other"),
        gpu_model: id("another-model"),
        ..fixtures::node(2)
    };
    let again = store.put_node(&other, &write(0xe101)).await;
    assert!(matches!(again, Ok(Write::Refused(_))), "{again:?}");
    assert_eq!(listed(&store, Some("org-other"), 1).await, []);
    assert_eq!(store.has_model(&other.gpu_model).await, Ok(false));
    assert_eq!(listed(&store, None, 1).await.len(), 1);
}

async fn models_are_listed_once_each_in_order(store: impl Store) {
    for (number, model) in ["b", "a-1", "a", "b", "a:1", "a"].iter().enumerate() {
        register(&store, &format!("n{number}"), OWNER_ORG, model).await;
    }
    for limit in 1..=5 {
        let mut seen: Vec<GpuModelId> = Vec::new();
        loop {
            let page = store.list_models(seen.last(), limit).await.unwrap();
            assert!(page.items.len() <= limit);
            seen.extend(page.items);
            if page.next.is_none() {
                break;
            }
            assert_eq!(page.next.as_ref(), seen.last());
        }
        assert_eq!(seen, ["a", "a-1", "a:1", "b"].map(id), "{limit}");
    }
    assert_eq!(store.has_model(&id("a")).await, Ok(true));
    assert_eq!(store.has_model(&id("a-")).await, Ok(false));
}

async fn nodes_and_reservations_are_read_many_at_once(store: impl Store) {
    fleet(&store).await;
    reserve(&store, &command_for("res-0", 0x21, unit_set([5]))).await;
    // More than the store reads in one batch.
    let mut wanted: BTreeSet<NodeId> = [id(NODE), id("absent")].into();
    for number in 0..120 {
        let node = register(&store, &format!("n{number}"), OWNER_ORG, "m").await;
        wanted.insert(node.id);
    }
    let found = store.load_nodes(&wanted).await.unwrap();
    assert_eq!(found.len(), 121);
    assert!(found.iter().map(|node| &node.id).is_sorted());
    let pair =
        |node: &str, reservation: &str| (id::<NodeId>(node), id::<ReservationId>(reservation));
    let pairs = [
        pair(NODE, RESERVATION),
        pair(NODE, "res-0"),
        pair(NODE, "absent"),
        pair("n1", RESERVATION),
    ];
    let found = store.load_reservations_of(&pairs.into()).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["res-0", RESERVATION]);
    assert_eq!(found[1], present(&store).await);
}

/// The reservations of an org in these parts, by pages of so many.
async fn of_org(store: &impl Store, org: &str, parts: &[Part], limit: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after: Option<ReservationId> = None;
    loop {
        let org = id(org);
        let page = store.list_org_reservations(&org, parts, after.as_ref(), limit);
        let page = page.await.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items.iter().map(|r| r.id.to_string()));
        match page.next {
            None => return seen,
            next => after = next,
        }
    }
}

async fn an_org_lists_the_reservations_it_has_a_part_in(store: impl Store) {
    const ALL: [Part; 3] = Part::ALL;
    registered(&store, 8).await;
    // Ids whose order is another one than that in which they were made; `x` has all parts.
    for (number, (name, audience, managers)) in [
        ("r4", &["x", "y"][..], &["z"][..]),
        ("r1", &["y"], &["x"]),
        ("r3", &["y"], &["z"]),
        ("r2", &["x"], &["x", "y"]),
        ("r0", &["x-1"], &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = command_for(
            name,
            0x30 + u64::try_from(number).unwrap(),
            unit_set([number]),
        );
        command.audience = audience.iter().map(|org| id(org)).collect();
        command.managers = managers.iter().map(|org| id(org)).collect();
        reserve(&store, &command).await;
    }
    for limit in 1..=6 {
        let listed = async |org: &str, parts: &[Part]| of_org(&store, org, parts, limit).await;
        assert_eq!(listed("x", &[Part::Audience]).await, ["r2", "r4"]);
        assert_eq!(listed("x", &[Part::Manager]).await, ["r1", "r2"]);
        assert_eq!(listed("x", &[Part::Owner]).await, [""; 0]);
        assert_eq!(listed("x", &ALL).await, ["r1", "r2", "r4"], "each once");
        assert_eq!(listed("y", &ALL).await, ["r1", "r2", "r3", "r4"]);
        assert_eq!(
            listed("x-1", &ALL).await,
            ["r0"],
            "an org is not the start of another"
        );
        let all = ["r0", "r1", "r2", "r3", "r4"];
        assert_eq!(listed(OWNER_ORG, &[Part::Owner]).await, all);
        assert_eq!(listed("nobody", &ALL).await, [""; 0]);
    }
    let (org, absent) = (id("x"), id("r1-"));
    let after = store.list_org_reservations(&org, &ALL, Some(&absent), 9);
    let after = after.await.unwrap();
    assert_eq!(after.items.len(), 2, "it goes on behind what is not there");
}

async fn a_reservation_with_all_the_orgs_there_may_be_is_listed_for_each(store: impl Store) {
    registered(&store, 8).await;
    let orgs = |prefix: &str| -> BTreeSet<OrgId> {
        let max = domain::limits::ORGS_PER_LIST_MAX;
        (0..max).map(|n| id(&format!("{prefix}-{n}"))).collect()
    };
    let mut command = command_for("res-full", 0x31, unit_set([0]));
    command.audience = orgs("a");
    command.managers = orgs("m");
    reserve(&store, &command).await;
    for (role, orgs) in [(Part::Audience, orgs("a")), (Part::Manager, orgs("m"))] {
        for org in orgs {
            assert_eq!(of_org(&store, org.as_str(), &[role], 1).await, ["res-full"]);
        }
    }
    assert_eq!(of_org(&store, OWNER_ORG, &Part::ALL, 1).await, ["res-full"]);
}

async fn a_listed_reservation_is_as_it_stands(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x41, [0]).await;
    let owner = id(OWNER_ORG);
    let page = store.list_org_reservations(&owner, &Part::ALL, None, 5);
    assert_eq!(page.await.unwrap().items, [present(&store).await]);
}

async fn a_reservation_that_was_not_made_is_not_listed(store: impl Store) {
    let before = registered(&store, 8).await;
    let command = command_for("res-new", 0x51, unit_set([0]));
    let (reservation, node) = fixtures::reserve_with(&before, &command);
    let change = CustodyMove {
        node_seen: before.version.next(),
        node,
        reservation_seen: None,
        reservation,
        write: command.stamp.write,
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Lost));
    assert_eq!(of_org(&store, OWNER_ORG, &Part::ALL, 1).await, [""; 0]);
}
