//! What a sweep costs grows with what is due, not with what there is.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use domain::ReservationId;
use testkit::Play;
use testkit::engine::{Engine, TABLE};
use testkit::fixtures::{NODE, manager};
use testkit::play::MINUTE_MS;

/// Items that one batch may write.
const BATCH: usize = 25;
/// Batches on their way at once.
const BATCHES_AT_ONCE: usize = 2;

type Item = BTreeMap<String, AttributeValue>;

/// Ten terms that are over and a VM that is condemned, among so many other reservations whose terms
/// end another day. Returns the requests of the sweep by operation, with the items it finished.
async fn sweep_among(others: usize) -> (BTreeMap<String, usize>, usize) {
    let engine = Engine::start().await;
    let play = Play::set(engine.store(), 12).await;
    let ends = play.from_now(MINUTE_MS);
    for unit in 0..10 {
        play.reserve(unit..=unit, None, Some(ends)).await;
    }
    let drained = play
        .reserve(10..11, None, Some(ends.plus_ms(86_400_000)))
        .await;
    play.release(&drained, 10..11, manager()).await.unwrap();
    play.buy_spot(10..11).await.unwrap();
    play.reclaim(&drained, 10..11, manager()).await.unwrap();
    crowd(&engine, &drained, others).await;
    play.clock.advance_ms(MINUTE_MS);
    let _ = engine.wire().take_calls();
    let swept = play.sweep().await;
    assert_eq!((swept.expired, swept.orders), (10, 1));
    assert_eq!((swept.failed, swept.behind), (0, false));
    let mut counted = BTreeMap::new();
    for call in engine.wire().take_calls() {
        *counted.entry(call.operation).or_default() += 1;
    }
    (counted, swept.items)
}

/// Puts so many reservations like this one beside it, on nodes of their own, all of them in the
/// index of what is due, but next year.
async fn crowd(engine: &Engine, like: &ReservationId, count: usize) {
    let text = |value: String| AttributeValue::S(value);
    let found = engine
        .client()
        .get_item()
        .table_name(TABLE)
        .key("PK", text(format!("NODE#{NODE}")))
        .key("SK", text(format!("RES#{like}")))
        .send()
        .await;
    // What a query or an index could see of it; the rest would only take time to write.
    let mut pattern: Item = found.unwrap().item.unwrap().into_iter().collect();
    let seen = ["PK", "SK", "type", "ver", "status", "duePk", "dueAt"];
    pattern.retain(|name, _| seen.contains(&&**name));
    assert_eq!(pattern.len(), seen.len());
    let copy = |number: usize| {
        let mut item = pattern.clone();
        item.insert("PK".to_owned(), text(format!("NODE#other-{}", number / 50)));
        item.insert("SK".to_owned(), text(format!("RES#{number:08}")));
        item.insert("duePk".to_owned(), text(format!("DUE#{}", number % 16)));
        let next_year = "2027-07-01T12:00:00.000Z".to_owned();
        item.insert("dueAt".to_owned(), text(next_year));
        item
    };
    let numbers: Vec<usize> = (0..count).collect();
    let batches: Vec<Vec<Item>> = numbers
        .chunks(BATCH)
        .map(|chunk| chunk.iter().map(|number| copy(*number)).collect())
        .collect();
    for group in batches.chunks(BATCHES_AT_ONCE) {
        let each = group.iter().map(|items| put(engine, items));
        futures_util::future::join_all(each).await;
    }
}

async fn put(engine: &Engine, items: &[Item]) {
    let requests = items.iter().map(|item| {
        let put = PutRequest::builder().set_item(Some(item.clone().into_iter().collect()));
        WriteRequest::builder()
            .put_request(put.build().unwrap())
            .build()
    });
    let written = engine
        .client()
        .batch_write_item()
        .request_items(TABLE, requests.collect())
        .send()
        .await
        .unwrap();
    let left = written.unprocessed_items.unwrap_or_default();
    assert!(left.is_empty(), "the engine takes all of a batch");
}

async fn assert_costs_the_same(others: usize) {
    let (few, done) = sweep_among(100).await;
    let (many, done_among_many) = sweep_among(others).await;
    assert_eq!(done, done_among_many);
    assert_eq!(many, few, "requests among {others} against those among 100");
    assert_eq!(many["Query"], 16, "one for each shard of the index");
}

#[tokio::test]
async fn a_sweep_costs_the_same_among_a_hundred_reservations_and_ten_thousand() {
    assert_costs_the_same(10_000).await;
}

#[tokio::test]
#[ignore = "takes minutes to seed: cargo test -p relet-tests --test sweep -- --ignored"]
async fn a_sweep_costs_the_same_among_a_hundred_reservations_and_a_hundred_thousand() {
    assert_costs_the_same(100_000).await;
}
