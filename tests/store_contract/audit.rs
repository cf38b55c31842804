//! The audit trail: appended to, never changed, read in the order of its chain.

use app::ports::Recorded;
use domain::audit::{Event, Record, events, verify};
use domain::reservation::{reclaim, release};
use domain::{ReservationId, Tier, Version};
use testkit::Store;
use testkit::fixtures::{self, RESERVATION, id, manager, node, stamp};

use super::{reclaim_of, release_of, version};

on_both!(
    a_record_is_written_once_and_known_again,
    another_record_does_not_take_its_place,
    the_last_record_before_a_version_is_found,
    a_trail_is_read_in_order_over_pages_of_any_length,
    trails_do_not_mix,
);

/// A trail of five records: made, released, sold, reclaimed, and the VM that this condemned.
fn trail(of: &str) -> Vec<Record> {
    let mut command = fixtures::reserve_command(0..4);
    command.id = id(of);
    command.stamp.reason = Some("hush: \u{fc}mlaut \"quoted\"".to_owned());
    let (first, _) = fixtures::reserve_with(&node(8), &command);
    let second = release(&first, &release_of(manager(), 0x11, [0, 1])).unwrap();
    let vm = fixtures::vm("vm-s", Tier::Spot, "org-buyer", [0]);
    let buyer = stamp(fixtures::stranger(), 0x12);
    let third = domain::reservation::place::place(&second, &vm, &buyer).unwrap();
    let fourth = reclaim(&third, &reclaim_of(manager(), 0x13, [0])).unwrap();
    let images = [
        None,
        Some(&first),
        Some(&second),
        Some(&third),
        Some(&fourth),
    ];
    let told = images.windows(2).flat_map(|pair| {
        let new = pair[1].unwrap_or_else(|| unreachable!("only the first has none before"));
        events(pair[0], new)
    });
    let mut prev_hash = String::new();
    let sealed = told.map(|event: Event| {
        let record = event.seal(&prev_hash);
        prev_hash.clone_from(&record.hash);
        record
    });
    sealed.collect()
}

async fn write(store: &impl Store, records: &[Record]) {
    for record in records {
        let written = store.put_record(record).await;
        assert_eq!(written, Ok(Recorded::Written), "{}", record.event.id());
    }
}

async fn read(store: &impl Store, of: &str, limit: usize) -> Vec<Record> {
    let of: ReservationId = id(of);
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.list_records(&of, after.as_deref(), limit).await;
        let page = page.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items);
        match page.next {
            None => return seen,
            next => after = next,
        }
    }
}

async fn a_record_is_written_once_and_known_again(store: impl Store) {
    let records = trail(RESERVATION);
    assert_eq!(records.len(), 5);
    assert!(verify(&records, version(4)).is_ok());
    write(&store, &records).await;
    for record in &records {
        assert_eq!(store.put_record(record).await, Ok(Recorded::Same));
    }
    assert_eq!(read(&store, RESERVATION, 100).await, records);
}

async fn another_record_does_not_take_its_place(store: impl Store) {
    let records = trail(RESERVATION);
    write(&store, &records).await;
    for record in &records {
        let mut other = record.clone();
        other.event.request_id = "forged".to_owned();
        assert_eq!(store.put_record(&other).await, Ok(Recorded::Different));
        let mut relinked = record.clone();
        relinked.hash = "0".repeat(64);
        assert_eq!(store.put_record(&relinked).await, Ok(Recorded::Different));
    }
    assert_eq!(read(&store, RESERVATION, 100).await, records);
}

async fn the_last_record_before_a_version_is_found(store: impl Store) {
    let (records, of) = (trail(RESERVATION), id(RESERVATION));
    let last = |before: Version| store.last_record_before(&of, before);
    assert_eq!(last(version(9)).await, Ok(None));
    write(&store, &records).await;
    assert_eq!(last(Version::FIRST).await, Ok(None));
    for before in 2..=4 {
        let place = usize::try_from(before).unwrap() - 2;
        let found = last(version(before)).await;
        assert_eq!(found, Ok(Some(records[place].clone())));
    }
    let beside = last(version(5)).await;
    assert_eq!(beside, Ok(Some(records[4].clone())), "that of the VM");
    assert_eq!(last(version(1_000)).await, Ok(Some(records[4].clone())));
}

async fn a_trail_is_read_in_order_over_pages_of_any_length(store: impl Store) {
    let records = trail(RESERVATION);
    let backwards: Vec<Record> = records.iter().rev().cloned().collect();
    write(&store, &backwards).await;
    for limit in 1..=6 {
        let seen = read(&store, RESERVATION, limit).await;
        assert_eq!(seen, records, "by pages of {limit}");
    }
}

async fn trails_do_not_mix(store: impl Store) {
    let (first, second) = (trail("res-1"), trail("res-10"));
    write(&store, &second).await;
    write(&store, &first).await;
    assert_eq!(read(&store, "res-1", 2).await, first);
    assert_eq!(read(&store, "res-10", 2).await, second);
    assert!(read(&store, "res", 2).await.is_empty());
}
