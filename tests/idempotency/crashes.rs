//! The first call ends in the middle, at every request it makes to the store; the second one
//! completes it.

use http_api::routes::Operation;
use testkit::TestClock;
use testkit::engine::{Engine, Fault};
use testkit::fixtures::owner;
use testkit::http::{Answer, Fleet, Platform, secret_of};
use tokio::sync::oneshot;

use super::{good, keyed, repeatable, seen};

/// More requests than any of these calls makes.
const REQUESTS_MAX: usize = 60;

/// How a call ends in the middle.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Its process is gone once the request has been carried out.
    Crash,
    /// All replies from that one on are lost, until the caller is told that nobody knows.
    LostReply,
    /// The store fails the request and does nothing.
    Broken,
}

/// What is there after the calls: what the caller sees of the reservations, and the VMs of the org.
async fn state(platform: &Platform<dynamo::DynamoStore>, fleet: &Fleet) -> Vec<(u16, String)> {
    let mut out = Vec::new();
    for operation in [
        Operation::GetReservation,
        Operation::ListReservations,
        Operation::GetNode,
        Operation::ListVms,
    ] {
        let event = fleet.call(operation);
        let by = match operation {
            Operation::ListVms => testkit::fixtures::audience(),
            _ => owner(),
        };
        let answer: Answer = platform.call(event.by(&secret_of(&by))).await;
        let items = answer.json()["items"].as_array().map(Vec::len);
        let told = items.map_or(answer.header("etag").to_owned(), |count| count.to_string());
        out.push((answer.status, told));
    }
    out
}

/// Ends the first call at request `number`, then sends it again. Returns whether it came that far.
async fn ended_at(
    operation: Operation,
    end: End,
    number: usize,
    undisturbed: &[(u16, String)],
) -> bool {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    let first = platform.call(keyed(&fleet, operation, "once"));
    let reached = match end {
        End::Crash => {
            let (carried_out, told) = oneshot::channel();
            let crash = Fault::lost_reply_while(async move {
                let _ = carried_out.send(());
                std::future::pending().await
            });
            engine.wire().fail_number(number, crash);
            tokio::select! {
                _ = first => false,
                told = told => told.is_ok(),
            }
        }
        End::LostReply | End::Broken => {
            let fault = match end {
                End::Broken => Fault::Broken,
                _ => Fault::lost_reply(),
            };
            engine.wire().fail_number(number, fault);
            first.await;
            engine.wire().faults_left() == 0
        }
    };
    if !reached {
        return false;
    }
    let what = format!("{operation:?} {end:?} at {number}");
    let second = good(&platform, keyed(&fleet, operation, "once")).await;
    let after = state(&platform, &fleet).await;
    let third = good(&platform, keyed(&fleet, operation, "once")).await;
    assert_eq!(seen(&third), seen(&second), "{what}");
    assert_eq!(state(&platform, &fleet).await, after, "{what}");
    assert_eq!(after, undisturbed, "{what}: done once");
    true
}

/// What is there after one call that nothing disturbs.
async fn undisturbed(operation: Operation) -> Vec<(u16, String)> {
    let engine = Engine::start().await;
    let platform = Platform::new(engine.store(), TestClock::default(), 1);
    let fleet = Fleet::build(&platform).await;
    good(&platform, keyed(&fleet, operation, "once")).await;
    state(&platform, &fleet).await
}

async fn ended_everywhere(end: End) {
    for operation in repeatable() {
        let undisturbed = undisturbed(operation).await;
        let mut number = 0;
        while ended_at(operation, end, number, &undisturbed).await {
            number += 1;
            assert!(
                number < REQUESTS_MAX,
                "{operation:?} never comes to its end"
            );
        }
        assert!(number >= 3, "{operation:?} was ended {number} times");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_request_is_completed_by_the_next_call() {
    ended_everywhere(End::Crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_at_any_request_is_completed_by_the_next_call() {
    ended_everywhere(End::LostReply).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_leaves_nothing_stuck() {
    ended_everywhere(End::Broken).await;
}
