//! Reservations, read and listed.

use app::ports::{Commit, CustodyMove, Page};
use domain::reservation::expire;
use domain::{Reservation, ReservationId};
use testkit::Store;
use testkit::fixtures::{self, NODE, id, now, unit_set};

use super::{command_for, fleet, pool, present, registered, reservation_id, reserve};

on_both!(
    a_reservation_is_read_back_as_it_was_made,
    one_that_is_not_there_is_none,
    those_asked_for_come_in_order_and_the_others_are_left_out,
    more_than_a_hundred_are_read_at_once,
    a_list_runs_in_the_order_of_ids_over_pages_of_any_length,
    a_list_starts_after_an_id_that_is_not_there,
    an_empty_list_is_an_empty_page,
);

async fn a_reservation_is_read_back_as_it_was_made(store: impl Store) {
    registered(&store, 128).await;
    let mut full = command_for("res-full", 0x21, unit_set(0..64));
    full.ends = Some(now().plus_ms(1));
    full.contract_ref = Some("contract \u{fc} \"7\"".to_owned());
    full.stamp.reason = Some("hush".repeat(128));
    full.audience = (0..32).map(|n| id(&format!("org-{n}"))).collect();
    full.managers.clear();
    let made = reserve(&store, &full).await;
    let found = store.load_reservation(&id(NODE), &id("res-full")).await;
    assert_eq!(found, Ok(Some(made)));
}

async fn one_that_is_not_there_is_none(store: impl Store) {
    fleet(&store).await;
    for (node, reservation) in [(NODE, "res-2"), ("node-2", "res-1"), (NODE, "res")] {
        let found = store.load_reservation(&id(node), &id(reservation)).await;
        assert_eq!(found, Ok(None), "{reservation} on {node}");
    }
}

async fn those_asked_for_come_in_order_and_the_others_are_left_out(store: impl Store) {
    fleet(&store).await;
    let first = reserve(&store, &command_for("res-0", 0x21, unit_set([4]))).await;
    reserve(&store, &command_for("res-2", 0x22, unit_set([5]))).await;
    let asked = [reservation_id(), id("res-0"), id("res-none")].into();
    let found = store.load_reservations(&id(NODE), &asked).await;
    assert_eq!(found, Ok(vec![first, present(&store).await]));
    let nothing = store.load_reservations(&id(NODE), &[].into()).await;
    assert_eq!(nothing, Ok(vec![]));
    let elsewhere = store.load_reservations(&id("node-2"), &asked).await;
    assert_eq!(elsewhere, Ok(vec![]));
}

async fn more_than_a_hundred_are_read_at_once(store: impl Store) {
    registered(&store, 128).await;
    let mut made = Vec::new();
    for number in 0..105 {
        let name = format!("res-{number:03}");
        let write = 0x100 + u64::try_from(number).unwrap();
        let mut command = command_for(&name, write, unit_set([number]));
        // So many are not live at once: the first ones are over when the last ones are made.
        command.ends = (number < 20).then(|| now().plus_ms(1));
        command.stamp.now = now().plus_ms(i64::from(number >= 20));
        let reservation = reserve(&store, &command).await;
        made.push(reservation);
        if number == 20 {
            for over in &mut made[..20] {
                expire_now(&store, over, write).await;
            }
        }
    }
    let asked = made.iter().map(|r| r.id.clone()).collect();
    let found = store.load_reservations(&id(NODE), &asked).await;
    assert_eq!(found, Ok(made.clone()));
    let page = store.list_reservations(&id(NODE), None, 100).await.unwrap();
    assert_eq!(page.next, Some(id("res-099")));
    assert_eq!(page.items, made[..100]);
}

/// Ends the term of this reservation, which is over.
async fn expire_now(store: &impl Store, reservation: &mut Reservation, number: u64) {
    let node = pool(store).await;
    let mut stamp = fixtures::system_stamp(0x1000 * number + node.version.get());
    stamp.now = now().plus_ms(1);
    let (after, node_after) = expire(reservation, &node, &stamp).unwrap();
    let change = CustodyMove {
        node_seen: node.version,
        node: node_after,
        reservation_seen: Some(reservation.version),
        reservation: after.clone(),
        write: stamp.write,
    };
    assert_eq!(store.move_custody(&change).await, Ok(Commit::Done));
    *reservation = after;
}

/// Ids that sort by their bytes, and not by their words.
const NAMES: [&str; 7] = ["-", ".", "a", "a-", "a.b", "a0", "b"];

async fn listed(store: &impl Store, after: Option<&str>, limit: usize) -> (Vec<String>, bool) {
    let after: Option<ReservationId> = after.map(id);
    let node = id(NODE);
    let page = store.list_reservations(&node, after.as_ref(), limit).await;
    let page: Page<Reservation, ReservationId> = page.unwrap();
    let names: Vec<String> = page.items.iter().map(|r| r.id.to_string()).collect();
    if let Some(next) = &page.next {
        assert_eq!(Some(next.as_str()), names.last().map(String::as_str));
    }
    (names, page.next.is_some())
}

async fn named(store: &impl Store) {
    registered(store, 8).await;
    for (number, name) in NAMES.iter().enumerate() {
        let write = 0x100 + u64::try_from(number).unwrap();
        reserve(store, &command_for(name, write, unit_set([number]))).await;
    }
    let mut other = fixtures::node(8);
    other.id = id("node-2");
    store.put_node(&other, &fixtures::write(1)).await.unwrap();
}

async fn a_list_runs_in_the_order_of_ids_over_pages_of_any_length(store: impl Store) {
    named(&store).await;
    for limit in 1..=8 {
        let mut seen: Vec<String> = Vec::new();
        loop {
            let (names, more) = listed(&store, seen.last().map(String::as_str), limit).await;
            assert!(names.len() <= limit);
            seen.extend(names);
            if !more {
                break;
            }
        }
        assert_eq!(seen, NAMES, "by pages of {limit}");
    }
    let (names, more) = listed(&store, None, NAMES.len()).await;
    assert_eq!((names.len(), more), (NAMES.len(), false), "an exact page");
}

async fn a_list_starts_after_an_id_that_is_not_there(store: impl Store) {
    named(&store).await;
    for (after, first) in [("a.", "a.b"), ("a-0", "a.b"), ("a.bb", "a0"), ("aa", "b")] {
        let (names, _) = listed(&store, Some(after), 1).await;
        assert_eq!(names, [first], "after {after}");
    }
    assert_eq!(listed(&store, Some("b"), 5).await, (vec![], false));
}

async fn an_empty_list_is_an_empty_page(store: impl Store) {
    let nowhere = store.list_reservations(&id(NODE), None, 5).await;
    let empty = Page {
        items: vec![],
        next: None,
    };
    assert_eq!(nowhere, Ok(empty.clone()), "no node");
    registered(&store, 8).await;
    let none = store.list_reservations(&id(NODE), None, 5).await;
    assert_eq!(none, Ok(empty));
}
