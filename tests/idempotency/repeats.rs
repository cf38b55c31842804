//! Repeats: one after the other, and a thousand at the same time.

use app::auth::Permission;
use app::ports::PutKey as _;
use domain::Caller;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use http_api::routes::Operation;
use serde_json::json;
use testkit::engine::Engine;
use testkit::fixtures::{api_key, id, operator, owner, secret, stranger};
use testkit::http::{Fleet, Platform, secret_of};
use testkit::{MemoryStore, TestClock};

use super::{good, keyed, repeatable, seen, stage};

/// Calls with one key at the same time.
const CALLS: usize = 1_000;
/// So many of them are under way at any moment: more would only wait for the engine's one writer
/// until the store's bound on time is over.
const UNDER_WAY: usize = 50;

#[tokio::test]
async fn a_call_that_comes_again_is_answered_the_same_and_does_nothing() {
    for operation in repeatable() {
        let (platform, fleet) = stage().await;
        let first = good(&platform, keyed(&fleet, operation, "once")).await;
        let world = platform.store.world();
        platform.clock.advance_ms(86_399_999);
        let again = good(&platform, keyed(&fleet, operation, "once")).await;
        assert_eq!(seen(&again), seen(&first), "{operation:?}");
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
        assert!(platform.store.world() == world, "{operation:?}: changed");
    }
}

#[tokio::test]
async fn after_a_day_the_key_is_forgotten() {
    let (platform, fleet) = stage().await;
    let buy = || keyed(&fleet, Operation::CreateVm, "once");
    let first = good(&platform, buy()).await;
    platform.clock.advance_ms(86_400_000);
    let answer = platform.call(buy()).await;
    assert_eq!(answer.code(), "insufficient_capacity", "it is a new call");
    assert_ne!(answer.text, first.text);
}

#[tokio::test]
async fn a_key_belongs_to_one_call_of_one_org() {
    for operation in repeatable() {
        let (platform, fleet) = stage().await;
        good(&platform, keyed(&fleet, operation, "once")).await;
        let world = platform.store.world();
        let other_body =
            keyed(&fleet, operation, "once").json(&json!({ "reason": "hush: another" }));
        let answer = platform.call(other_body).await;
        assert_eq!(
            (answer.status, answer.code()),
            (422, "idempotency_key_reused".to_owned()),
            "{operation:?}"
        );
        assert!(platform.store.world() == world, "{operation:?}: changed");
    }
    let (platform, fleet) = stage().await;
    good(&platform, keyed(&fleet, Operation::ReleaseUnits, "once")).await;
    // The same text in the hands of another org is another key.
    let theirs = fleet
        .call(Operation::ReleaseUnits)
        .by(&secret_of(&owner()))
        .header("Idempotency-Key", "once");
    let before = platform.store.world();
    good(&platform, theirs).await;
    assert!(platform.store.world() != before, "it was done");
}

#[tokio::test]
async fn if_match_and_query_are_part_of_the_call() {
    let (platform, fleet) = stage().await;
    good(&platform, keyed(&fleet, Operation::ReleaseUnits, "once")).await;
    let matched = keyed(&fleet, Operation::ReleaseUnits, "once").header("If-Match", "\"6\"");
    assert_eq!(
        platform.call(matched).await.code(),
        "idempotency_key_reused"
    );
}

#[tokio::test]
async fn a_refusal_is_not_kept_since_nothing_was_done() {
    let (platform, fleet) = stage().await;
    let stale = || keyed(&fleet, Operation::ReleaseUnits, "once").header("If-Match", "\"2\"");
    assert_eq!(platform.call(stale()).await.code(), "version_mismatch");
    // With another call under the same key it would be refused, had the first been kept.
    good(&platform, keyed(&fleet, Operation::ReleaseUnits, "once")).await;
}

#[tokio::test]
async fn a_dry_run_uses_no_key_up() {
    let (platform, fleet) = stage().await;
    let event = keyed(&fleet, Operation::ReclaimUnits, "once");
    let dry = event.json(&json!({ "unitIds": ["u00"], "dryRun": true }));
    good(&platform, dry).await;
    let real = good(&platform, keyed(&fleet, Operation::ReclaimUnits, "once")).await;
    assert_eq!(real.json()["terminated"], json!([fleet.spot_vm]));
}

#[tokio::test]
async fn whoever_may_not_do_it_learns_nothing_by_a_key() {
    let (platform, fleet) = stage().await;
    for operation in [Operation::ReleaseUnits, Operation::EndReservation] {
        let event = fleet.call(operation).by(&secret_of(&stranger()));
        let with = platform.call(event.clone().header("Idempotency-Key", "k"));
        let (with, without) = (with.await, platform.call(event).await);
        assert_eq!(with.without_id(), without.without_id(), "{operation:?}");
        assert_eq!(with.status, 404);
    }
}

#[tokio::test]
async fn what_an_operator_was_told_is_not_told_to_another_key_of_the_same_org() {
    let (platform, fleet) = stage().await;
    let lesser = Caller {
        key: id("key-lesser"),
        operator: false,
        ..operator()
    };
    let held = api_key(&lesser, &Permission::ALL);
    let digest = secret(200).digest();
    platform.store.put_key(&digest, &held).await.unwrap();
    for operation in repeatable() {
        let key = format!("{operation:?}");
        let first = platform.call(keyed(&fleet, operation, &key)).await;
        let theirs = fleet.call(operation).by(&secret(200));
        let theirs = theirs.header("Idempotency-Key", &key);
        let answer = platform.call(theirs).await;
        let refused = [403, 422].contains(&answer.status);
        assert!(first.status != 200 || refused, "{operation:?}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_have_one_effect_and_equal_answers() {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    for (operation, key) in [
        (Operation::ReclaimUnits, "reclaim"),
        (Operation::CreateVm, "buy"),
    ] {
        let calls = (0..CALLS).map(|_| platform.call(keyed(&fleet, operation, key)));
        let answers: Vec<_> = iter(calls).buffer_unordered(UNDER_WAY).collect().await;
        for answer in &answers {
            assert_eq!(seen(answer), seen(&answers[0]), "{operation:?}");
        }
        assert_eq!(answers[0].status, 200, "{:?}", answers[0]);
    }
    // The reclaim was the seventh change of the reservation, and there was none after it.
    let get = fleet.call(Operation::GetReservation);
    let get = get.by(&secret_of(&owner()));
    assert_eq!(platform.call(get).await.header("etag"), "\"7\"");
}

#[tokio::test]
async fn a_call_that_meets_another_under_way_says_so() {
    use app::StoreError;
    use testkit::memory::Fault;
    let platform = Platform::new(MemoryStore::default(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let world = platform.store.world();
    // The key, the kept answer and the reservation are read; then another writer is in the way.
    let conflict = Fault::Before(StoreError::Conflict);
    let faults = [Fault::Pass, Fault::Pass, Fault::Pass, conflict];
    platform.store.inject(&faults);
    let answer = platform
        .call(keyed(&fleet, Operation::ReleaseUnits, "once"))
        .await;
    let got = (answer.status, answer.code());
    assert_eq!(got, (409, "idempotency_key_in_flight".to_owned()));
    assert_eq!(answer.header("retry-after"), "1");
    assert!(platform.store.world() == world, "nothing was done");
    let throttled = Fault::Before(StoreError::Throttled);
    let faults = [Fault::Pass, Fault::Pass, Fault::Pass, throttled];
    platform.store.inject(&faults);
    let answer = platform
        .call(keyed(&fleet, Operation::ReleaseUnits, "once"))
        .await;
    let got = (answer.status, answer.code());
    assert_eq!(got, (429, "throttled".to_owned()), "nobody is in the way");
    good(&platform, keyed(&fleet, Operation::ReleaseUnits, "once")).await;
}
