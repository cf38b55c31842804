//! Functions of two versions work on one table while a deploy runs: what a newer one has written
//! beside what is known today troubles none of today's functions.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use app::ports::LoadReservations as _;
use aws_sdk_dynamodb::types::AttributeValue;
use http_api::routes::{Operation, ROUTES};
use runtime::{orders, stream};
use serde_json::json;
use testkit::engine::{Engine, TABLE};
use testkit::events::{batch, failed};
use testkit::fixtures::{NODE, id, operator};
use testkit::http::{Fleet, Platform, good_status, secret_of};
use testkit::stream::StreamReader;
use testkit::{RecordingOrders, TestClock};

/// An attribute that only a newer version knows.
const LATER: &str = "later";

async fn stage() -> (Engine, Platform<dynamo::DynamoStore>, Fleet) {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    (engine, platform, fleet)
}

/// Writes the attribute into every item that there is. Returns how many there are.
async fn write_later(engine: &Engine) -> usize {
    let client = engine.client();
    let all = client.scan().table_name(TABLE).send().await.unwrap();
    for item in all.items() {
        let update = client.update_item().table_name(TABLE);
        let update = update
            .key("PK", item["PK"].clone())
            .key("SK", item["SK"].clone())
            .update_expression("SET #a = :v")
            .expression_attribute_names("#a", LATER)
            .expression_attribute_values(":v", AttributeValue::S("x".to_owned()));
        update.send().await.unwrap();
    }
    all.items().len()
}

async fn has_later(engine: &Engine, fleet: &Fleet) -> bool {
    let text = |text: String| AttributeValue::S(text);
    let get = engine.client().get_item().table_name(TABLE);
    let get = get
        .key("PK", text(format!("NODE#{NODE}")))
        .key("SK", text(format!("RES#{}", fleet.reservation)));
    get.send()
        .await
        .unwrap()
        .item()
        .unwrap()
        .contains_key(LATER)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attribute_that_is_not_known_troubles_no_call_and_is_lost_by_whole_writes_alone() {
    let (engine, platform, fleet) = stage().await;
    assert!(write_later(&engine).await > 10);
    let mut routes: Vec<Operation> = ROUTES.iter().map(|route| route.operation).collect();
    routes.sort_by_key(|operation| *operation == Operation::EndReservation);
    for operation in routes {
        let request = fleet.call(operation).by(&secret_of(&operator()));
        let answer = platform.call(request).await;
        assert_eq!(
            answer.status,
            good_status(operation),
            "{operation:?}: {answer:?}"
        );
        if operation == Operation::ReclaimUnits {
            assert!(has_later(&engine, &fleet).await, "an update keeps it");
        }
    }
    assert!(!has_later(&engine, &fleet).await, "a move writes it anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_function_reads_past_attributes_and_kinds_that_are_not_known() {
    let (engine, platform, fleet) = stage().await;
    write_later(&engine).await;
    for (pk, sk) in [("LATER#1", "LATER"), (&*format!("NODE#{NODE}"), "LATER#1")] {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = engine.client().put_item().table_name(TABLE);
        let put = put
            .item("PK", text(pk))
            .item("SK", text(sk))
            .item("type", text("later"));
        put.send().await.unwrap();
    }
    let store = Arc::new(engine.store());
    let sent = RecordingOrders::default();
    let function = stream::function(store, Arc::new(sent), platform.clock.clone());
    let records = StreamReader::start(&engine).await.drain().await;
    assert!(records.len() > 20);
    let reply = function.invoke(batch(&records)).await.unwrap();
    assert_eq!(failed(&reply), Some(Vec::new()));
    let found = engine
        .store()
        .load_reservation(&id(NODE), &id(&fleet.reservation))
        .await;
    assert!(found.unwrap().is_some());
    let list = fleet
        .call(Operation::ListReservations)
        .by(&secret_of(&operator()));
    assert_eq!(
        platform.call(list).await.status,
        200,
        "beside one of another kind"
    );
}

#[test]
fn an_order_with_a_field_more_is_an_order() {
    let mut order = json!({ "vmId": "vm-1", "nodeId": "n-1", "version": 7 });
    let known = orders::decode(&order.to_string()).unwrap();
    order[LATER] = json!({ "a": [1] });
    assert_eq!(orders::decode(&order.to_string()), Ok(known));
}
