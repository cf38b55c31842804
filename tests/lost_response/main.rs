//! The reply to a write is lost after the write was done, on every write call of the store: alone,
//! and with another actor's write in between. Nothing is done twice and nobody gets a wrong answer.
//!
//! Each case plays on two stages: on the first everything arrives, on the second the reply does
//! not. Both must hold the same in the end, and the caller must hear the same, or else that the
//! answer is unknown.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod custody;
mod keys;
mod others;
mod terms;
mod vms;

use std::collections::BTreeMap;
use std::sync::Arc;

use app::Error;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::BoxFuture;
use testkit::engine::{Fault, TABLE};
use testkit::stage::Stage;

/// Something that happens on a stage.
type Deed<T> = fn(Arc<Stage>) -> BoxFuture<'static, T>;

/// A write call of the store, as a use case makes it.
struct Case {
    /// What it is.
    name: &'static str,
    /// The request whose reply is lost.
    operation: &'static str,
    /// What happens before.
    before: Deed<()>,
    /// The call: what its caller hears of what does not depend on later writes.
    call: Deed<Result<String, Error>>,
    /// What others may do in between.
    meanwhile: &'static [Meanwhile],
}

/// What another actor does between the write and its next try.
struct Meanwhile {
    /// What it is.
    name: &'static str,
    /// Does it.
    deed: Deed<()>,
    /// Whether the answer can still be told after it: where it cannot, the caller must hear that.
    told: bool,
}

const fn told(name: &'static str, deed: Deed<()>) -> Meanwhile {
    Meanwhile {
        name,
        deed,
        told: true,
    }
}

const fn untold(name: &'static str, deed: Deed<()>) -> Meanwhile {
    Meanwhile {
        name,
        deed,
        told: false,
    }
}

/// Nothing happens.
const NOTHING: Meanwhile = told("nothing", |_| Box::pin(async {}));

/// Items by their keys.
type Held = BTreeMap<(String, String), BTreeMap<String, AttributeValue>>;

/// Fails unless both hold the same, and shows no more than what differs.
fn same(left: &Held, right: &Held, what: &str) {
    for key in left.keys().chain(right.keys()) {
        assert_eq!(left.get(key), right.get(key), "{what}: {key:?}");
    }
}

/// Everything that the table holds. The token of a counted attempt is random and left out.
async fn held(stage: &Stage) -> Held {
    let scanned = stage.engine().client().scan().table_name(TABLE).send();
    let scanned = scanned
        .await
        .unwrap_or_else(|error| panic!("no scan: {error:?}"));
    assert!(scanned.last_evaluated_key().is_none(), "all of it");
    let text = |value: Option<&AttributeValue>| match value {
        Some(AttributeValue::S(text)) => text.clone(),
        other => panic!("a key is a text: {other:?}"),
    };
    let items = scanned.items().iter().map(|item| {
        let key = (text(item.get("PK")), text(item.get("SK")));
        let attributes = item.iter().filter(|(name, _)| !name.starts_with("ct"));
        let sorted = attributes.map(|(name, value)| (name.clone(), sorted(value)));
        (key, sorted.collect())
    });
    items.collect()
}

/// The value with its sets in order.
fn sorted(value: &AttributeValue) -> AttributeValue {
    match value {
        AttributeValue::Ss(members) => {
            let mut members = members.clone();
            members.sort();
            AttributeValue::Ss(members)
        }
        other => other.clone(),
    }
}

/// A stage on which everything is ready for the call.
async fn ready(case: &Case, tokens_forgotten: bool) -> Arc<Stage> {
    let stage = Arc::new(Stage::set().await);
    (case.before)(Arc::clone(&stage)).await;
    if tokens_forgotten {
        stage.engine().wire().forget_tokens();
    }
    stage
}

/// The one reply of the call is lost, the next try arrives.
async fn one_reply_is_lost(case: &Case) {
    for forgotten in [false, true] {
        for meanwhile in std::iter::once(&NOTHING).chain(case.meanwhile) {
            let what = format!(
                "{}, meanwhile {}, tokens forgotten: {forgotten}",
                case.name, meanwhile.name
            );
            let plain = ready(case, forgotten).await;
            let expected = (case.call)(Arc::clone(&plain)).await;
            assert!(expected.is_ok(), "{what}: {expected:?}");
            (meanwhile.deed)(Arc::clone(&plain)).await;
            let lossy = ready(case, forgotten).await;
            let others = (meanwhile.deed)(Arc::clone(&lossy));
            let wire = lossy.engine().wire();
            wire.fail(case.operation, Fault::lost_reply_while(others));
            let answer = (case.call)(Arc::clone(&lossy)).await;
            assert_eq!(wire.faults_left(), 0, "{what}: a reply was lost");
            match answer {
                Err(Error::Unavailable(_)) if !meanwhile.told => {}
                answer if meanwhile.told => assert_eq!(answer, expected, "{what}"),
                answer => panic!("{what}: nobody can tell, and yet {answer:?}"),
            }
            same(&held(&lossy).await, &held(&plain).await, &what);
        }
    }
}

/// All tries of the SDK.
fn tries() -> u32 {
    dynamo::retries().max_attempts()
}

/// Every reply is lost: the caller hears that nobody knows, and the write is done once.
async fn every_reply_is_lost(case: &Case) {
    for forgotten in [false, true] {
        let plain = ready(case, forgotten).await;
        let expected = (case.call)(Arc::clone(&plain)).await;
        assert!(expected.is_ok(), "{}: {expected:?}", case.name);
        let lossy = ready(case, forgotten).await;
        for _ in 0..tries() {
            let wire = lossy.engine().wire();
            wire.fail(case.operation, Fault::lost_reply());
        }
        let answer = (case.call)(Arc::clone(&lossy)).await;
        let unknown = matches!(answer, Err(Error::Unavailable(_)));
        assert!(unknown, "{}: {answer:?}", case.name);
        same(&held(&lossy).await, &held(&plain).await, case.name);
    }
}

/// Requests fail before anything is done: nothing is done, and the caller hears why; one that
/// arrives after a failure is done once.
async fn requests_fail_before_the_write(case: &Case) {
    let plain = ready(case, false).await;
    let before = held(&plain).await;
    let expected = (case.call)(Arc::clone(&plain)).await;
    let after = held(&plain).await;
    let faults: [fn() -> Fault; 2] = [|| Fault::Broken, || Fault::Throttled];
    for (place, fault) in faults.into_iter().enumerate() {
        let stage = ready(case, false).await;
        for _ in 0..tries() {
            stage.engine().wire().fail(case.operation, fault());
        }
        let answer = (case.call)(Arc::clone(&stage)).await;
        match (place, answer) {
            (0, Err(Error::Unavailable(_))) | (1, Err(Error::Throttled(_))) => {}
            (_, answer) => panic!("{}: {:?}: {answer:?}", case.name, fault()),
        }
        same(&held(&stage).await, &before, case.name);
    }
    let faults: [fn() -> Fault; 3] = [|| Fault::Broken, || Fault::Throttled, || Fault::Conflict];
    for fault in faults {
        let stage = ready(case, false).await;
        stage.engine().wire().fail(case.operation, fault());
        let answer = (case.call)(Arc::clone(&stage)).await;
        assert_eq!(answer, expected, "{}: {:?}", case.name, fault());
        same(&held(&stage).await, &after, case.name);
    }
}

/// Makes a test of each way to fail out of a case.
macro_rules! each_way {
    ($($name:ident: $case:expr),+ $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn one_reply_is_lost() {
                crate::one_reply_is_lost(&$case).await;
            }

            #[tokio::test]
            async fn every_reply_is_lost() {
                crate::every_reply_is_lost(&$case).await;
            }

            #[tokio::test]
            async fn requests_fail_before_the_write() {
                crate::requests_fail_before_the_write(&$case).await;
            }
        }
    )+};
}

each_way!(
    release: crate::custody::RELEASE,
    release_of_a_version: crate::custody::RELEASE_OF_A_VERSION,
    reclaim: crate::custody::RECLAIM,
    reclaim_of_a_version: crate::custody::RECLAIM_OF_A_VERSION,
    end: crate::custody::END,
    reserve: crate::custody::RESERVE,
    begin: crate::terms::BEGIN,
    expire: crate::terms::EXPIRE,
    topology: crate::terms::TOPOLOGY,
    reaffirm: crate::terms::REAFFIRM,
    place_on_a_reservation: crate::vms::PLACE_ON_A_RESERVATION,
    place_in_the_pool: crate::vms::PLACE_IN_THE_POOL,
    stop: crate::vms::STOP,
    confirm: crate::vms::CONFIRM,
    confirm_with_a_note: crate::vms::CONFIRM_WITH_A_NOTE,
    condemn: crate::vms::CONDEMN,
    count: crate::vms::COUNT,
    put_node: crate::others::PUT_NODE,
    put_record: crate::others::PUT_RECORD,
    make_key: crate::keys::MAKE_KEY,
    revoke_key: crate::keys::REVOKE_KEY,
);

/// A reaction is several writes, so that a failure may leave some of them done; one lost reply may
/// not.
mod react {
    #[tokio::test]
    async fn one_reply_is_lost_as_it_condemns() {
        crate::one_reply_is_lost(&crate::others::REACT_AS_IT_CONDEMNS).await;
    }

    #[tokio::test]
    async fn one_reply_is_lost_as_a_stop_is_noted_as_overdue() {
        crate::one_reply_is_lost(&crate::terms::STUCK).await;
    }

    #[tokio::test]
    async fn one_reply_is_lost_as_it_records() {
        crate::one_reply_is_lost(&crate::others::REACT_AS_IT_RECORDS).await;
    }
}
