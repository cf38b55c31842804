//! Nodes, and the market's hints.

use std::collections::BTreeSet;

use app::StoreError;
use app::ports::{Commit, Custodian, Write};
use domain::{Node, Tier};
use testkit::Store;
use testkit::fixtures::{self, GPU_MODEL, NODE, id, unit_set, write};

use super::{command_for, fleet, held, place, pool, present, registered, released, reserve, spot};

on_both!(
    a_node_is_read_back_as_it_was_put,
    a_node_is_registered_once,
    a_registration_that_comes_again_is_known_even_after_others_wrote,
    an_unsound_node_is_not_written,
    what_has_nothing_for_sale_gives_no_hint,
    a_pool_and_a_release_are_hinted_at,
    hints_are_of_the_model_asked_for_and_no_more_than_asked_for,
    callers_are_spread_over_the_market,
);

async fn a_node_is_read_back_as_it_was_put(store: impl Store) {
    assert_eq!(store.load_node(&id(NODE)).await, Ok(None));
    let node = registered(&store, 128).await;
    assert_eq!(store.load_node(&id(NODE)).await, Ok(Some(node)));
    assert_eq!(store.load_node(&id("node-2")).await, Ok(None));
}

async fn a_node_is_registered_once(store: impl Store) {
    let node = registered(&store, 8).await;
    let other = Node {
        owner: id("org-other"),
        ..fixtures::node(2)
    };
    let again = store.put_node(&other, &write(0xe101)).await;
    assert_eq!(again, Ok(Write::Refused(node.clone())));
    assert_eq!(store.load_node(&id(NODE)).await, Ok(Some(node)));
}

async fn a_registration_that_comes_again_is_known_even_after_others_wrote(store: impl Store) {
    let node = registered(&store, 8).await;
    spot(&store, "vm-1", [0], &Custodian::Pool, 0x12).await;
    let present = pool(&store).await;
    let again = store.put_node(&node, &write(0xe001)).await;
    assert_eq!(again, Ok(Write::Done(())));
    assert_eq!(pool(&store).await, present, "and nothing was undone");
}

async fn an_unsound_node_is_not_written(store: impl Store) {
    registered(&store, 8).await;
    reserve(&store, &command_for("res-2", 0x21, unit_set([0]))).await;
    let mut unsound = pool(&store).await;
    unsound.id = id("node-2");
    let unit = fixtures::unit(0);
    unsound.slots.insert(unit, domain::Slot::empty(1));
    let put = store.put_node(&unsound, &write(0x22)).await;
    assert!(matches!(put, Err(StoreError::Corrupt(_))), "{put:?}");
    assert_eq!(store.load_node(&id("node-2")).await, Ok(None));
}

async fn what_has_nothing_for_sale_gives_no_hint(store: impl Store) {
    let hints = store.find_market(&id(GPU_MODEL), &write(1), 10).await;
    assert_eq!(hints, Ok(vec![]));
    fleet(&store).await;
    let hints = store.find_market(&id(GPU_MODEL), &write(1), 10).await;
    let hints = hints.unwrap();
    assert!(
        !hints.contains(&(id(NODE), held())),
        "nothing is released: {hints:?}"
    );
}

async fn a_pool_and_a_release_are_hinted_at(store: impl Store) {
    fleet(&store).await;
    released(&store, 0x11, [0]).await;
    let hints = store.find_market(&id(GPU_MODEL), &write(1), 10).await;
    let hints: BTreeSet<_> = hints.unwrap().into_iter().collect();
    let expected = [(id(NODE), Custodian::Pool), (id(NODE), held())];
    assert_eq!(hints, expected.into());
    let tenant = ("tenant", Tier::Community, fixtures::STRANGER_ORG);
    let placed = place(&store, tenant, 4..8, &Custodian::Pool, 0x13).await;
    assert_eq!(placed, Commit::Done);
    let hints = store.find_market(&id(GPU_MODEL), &write(1), 10).await;
    let full = (id(NODE), Custodian::Pool);
    assert!(
        hints.unwrap().contains(&full),
        "its reservations are found by it"
    );
    let buyer = ("vm-1", Tier::Spot, fixtures::STRANGER_ORG);
    let placed = place(&store, buyer, [0], &held(), 0x12).await;
    assert_eq!(placed, Commit::Done, "{:?}", present(&store).await);
}

/// Registers so many nodes of this model.
async fn nodes(store: &impl Store, model: &str, count: usize) {
    for number in 0..count {
        let node = Node {
            id: id(&format!("{model}-{number}")),
            gpu_model: id(model),
            ..fixtures::node(1)
        };
        let put = store.put_node(&node, &write(0xe001)).await;
        assert_eq!(put, Ok(Write::Done(())));
    }
}

async fn hints_are_of_the_model_asked_for_and_no_more_than_asked_for(store: impl Store) {
    nodes(&store, "a100", 12).await;
    nodes(&store, "a100-80", 3).await;
    let of = |hints: Vec<(domain::NodeId, Custodian)>| -> BTreeSet<String> {
        hints.iter().map(|(node, _)| node.to_string()).collect()
    };
    for spread in 0..8 {
        let spread = write(spread);
        let all = store.find_market(&id("a100"), &spread, 100).await.unwrap();
        let expected = (0..12).map(|n| format!("a100-{n}"));
        assert_eq!(of(all), expected.collect());
        let some = store.find_market(&id("a100"), &spread, 5).await.unwrap();
        assert_eq!(some.len(), 5);
        assert_eq!(of(some).len(), 5, "no hint comes twice");
        let other = store.find_market(&id("a100-80"), &spread, 100).await;
        assert_eq!(other.unwrap().len(), 3);
    }
    let none = store.find_market(&id("a10"), &write(1), 100).await;
    assert_eq!(none, Ok(vec![]), "a model is not the start of another");
}

async fn callers_are_spread_over_the_market(store: impl Store) {
    nodes(&store, "a100", 16).await;
    let mut first = BTreeSet::new();
    for spread in 0..32 {
        let hints = store.find_market(&id("a100"), &write(spread), 1).await;
        first.extend(hints.unwrap().into_iter().map(|(node, _)| node));
    }
    assert!(first.len() >= 4, "all go to the same few: {first:?}");
}
