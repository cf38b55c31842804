//! Where the engines themselves differ, as `docs/engines.md` tells: nothing of the product leans on
//! it. What is told there is looked at here, so that it stays true.

use aws_sdk_dynamodb::types::AttributeValue;
use dynamo::DynamoStore;
use testkit::engine::{ELSEWHERE, Engine, elsewhere};
use testkit::stream::StreamReader;

/// Writes an item and once more the same; how many records the stream has of it.
async fn records_of_the_same_twice(endpoint: &str, store: &DynamoStore) -> usize {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    for _ in 0..2 {
        let update = store.client().update_item().table_name(store.table());
        let update = update.key("PK", text("ENGINE")).key("SK", text("ENGINE"));
        let update = update.update_expression("SET seen = :seen");
        let written = update.expression_attribute_values(":seen", text("yes"));
        written.send().await.unwrap();
    }
    let mut reader = StreamReader::of(endpoint, store.table()).await;
    reader.drain().await.len()
}

#[tokio::test]
async fn the_embedded_engine_records_an_update_that_changes_nothing() {
    let engine = Engine::start().await;
    let records = records_of_the_same_twice(engine.endpoint(), &engine.store()).await;
    assert_eq!(records, 2, "docs/engines.md says otherwise");
}

#[tokio::test]
#[ignore = "needs RELET_CONTRACT_ENDPOINT, the address of an engine"]
async fn elsewhere_an_update_that_changes_nothing_is_not_recorded() {
    let store = elsewhere().await;
    let endpoint = std::env::var(ELSEWHERE).unwrap();
    let records = records_of_the_same_twice(&endpoint, &store).await;
    assert_eq!(records, 1, "as DynamoDB's documentation has it");
}
