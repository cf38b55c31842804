//! The fleet is what it says, and answers are read rightly.

use super::*;
use crate::fixtures::{NODE, operator, owner};
use crate::memory::MemoryStore;

#[tokio::test]
async fn a_fleet_stands_on_its_own_and_is_whole() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let world = platform.store.world();
    assert_eq!(world.violations(), []);
    assert_eq!(world.vms.len(), 5);
    assert_eq!(world.audit.len(), 1);
    let node = format!("/v1/nodes/{NODE}");
    let answer = platform
        .call(HttpEvent::new("GET", &node).by(&secret_of(&owner())))
        .await;
    let states: Vec<String> = (0..5)
        .map(|at| answer.json()["units"][at]["state"].to_string())
        .collect();
    let expected = ["released", "reserved", "reserved", "reserved", "free"];
    assert_eq!(states, expected.map(|state| format!("{state:?}")));
    assert_eq!(answer.json()["units"][0]["vmId"], *fleet.spot_vm);
}

#[tokio::test]
async fn answers_look_the_same_without_their_ids() {
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    Fleet::build(&platform).await;
    let ask = || HttpEvent::new("GET", "/v1/vms/none").by(&secret_of(&operator()));
    let (one, two) = (platform.call(ask()).await, platform.call(ask()).await);
    assert_ne!(one, two);
    assert_eq!(one.without_id(), two.without_id());
    assert_eq!((one.status, &*one.code()), (404, "not_found"));
}

#[test]
fn bodies_are_set_as_text_or_as_bytes() {
    let event = HttpEvent::new("POST", "/").build();
    let text = with_text(event.clone(), "{}");
    assert_eq!(
        (&text["body"], &text["isBase64Encoded"]),
        (&json!("{}"), &json!(false))
    );
    let bytes = with_bytes(event, &[0xff, 0xfe]);
    assert_eq!(
        (&bytes["body"], &bytes["isBase64Encoded"]),
        (&json!("//4="), &json!(true))
    );
}

#[test]
#[should_panic(expected = "GetHealth is not documented to answer 409 vm_not_condemned")]
fn an_answer_that_the_api_document_does_not_have_fails_whatever_test_meets_it() {
    let answer = Answer {
        status: 409,
        headers: BTreeMap::new(),
        text: r#"{"code":"vm_not_condemned"}"#.to_owned(),
    };
    let route = http_api::routes::ROUTES
        .iter()
        .find(|route| route.path == "/healthz");
    assert_documented(route.unwrap(), &answer);
}
