//! What a sweep costs grows with what is due, not with what there is.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::ReservationId;
use serde_json::json;
use testkit::Play;
use testkit::engine::{Engine, TABLE};
use testkit::fixtures::{NODE, manager};
use testkit::play::MINUTE_MS;

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
    let found = found.unwrap().item.unwrap();
    // What a query or an index could see of it; the rest would only take time to write.
    let told = |name: &str| found[name].as_s().unwrap().clone();
    let (kind, status) = (told("type"), told("status"));
    assert!(found.contains_key("dueAt") && found.contains_key("duePk"));
    let copy = |number: usize| {
        json!({
            "PK": { "S": format!("NODE#other-{}", number / 50) },
            "SK": { "S": format!("RES#{number:08}") },
            "type": { "S": kind },
            "status": { "S": status },
            "ver": { "N": "1" },
            "duePk": { "S": format!("DUE#{}", number % 16) },
            "dueAt": { "S": "2027-07-01T12:00:00.000Z" },
        })
    };
    engine.import((0..count).map(copy).collect());
}

async fn assert_costs_the_same(others: usize) {
    let (few, done) = sweep_among(100).await;
    let (many, done_among_many) = sweep_among(others).await;
    assert_eq!(done, done_among_many);
    assert_eq!(many, few, "requests among {others} against those among 100");
    assert_eq!(many["Query"], 16, "one for each shard of the index");
}

#[tokio::test]
async fn a_sweep_costs_the_same_among_a_hundred_reservations_and_a_hundred_thousand() {
    assert_costs_the_same(100_000).await;
}
