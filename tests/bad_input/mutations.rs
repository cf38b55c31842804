//! Thousands of calls with something changed at random: never a 500, and a refusal changes nothing.

use http_api::routes::{Operation, ROUTES};
use serde_json::Value;
use testkit::Rng;
use testkit::http::{with_bytes, with_text};

use crate::{Stage, assert_envelope, with_header, with_query};

/// Calls in each test.
const CALLS: u64 = 4_000;

/// Pieces that parsers trip over.
const PIECES: [&str; 26] = [
    "null",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "1e999",
    "0.5",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "ü",
    "\u{0}",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "true",
    "unitIds",
    "dryRun",
    " ",
    "%",
    "\u{feff}",
];

/// The bytes with something changed, a few times over.
fn mutated(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(out.len() + 1);
        let until = at + rng.below(out.len() - at + 1).min(12);
        match rng.below(7) {
            0 => drop(out.drain(at..until)),
            1 => drop(out.splice(at..at, rng.pick(&PIECES).bytes())),
            2 => drop(out.splice(at..until, rng.pick(&PIECES).bytes())),
            3 => {
                let again = out[at..until].to_vec();
                drop(out.splice(at..at, again));
            }
            4 => out.truncate(at),
            5 => out.insert(at, u8::try_from(rng.below(256)).unwrap_or(0)),
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
    out
}

impl Stage {
    /// Sends an event of which nobody knows what comes of it.
    async fn survives(&self, event: Value, what: &str) -> u16 {
        let answer = self.platform.send(event).await;
        match answer.status {
            200 | 204 => {
                let broken = self.platform.store.world().violations();
                assert!(broken.is_empty(), "{what}: {broken:?}");
                self.restore();
            }
            400..500 => {
                assert_envelope(&answer, what);
                assert!(self.platform.store.world() == self.world, "{what}: changed");
            }
            _ => panic!("{what}: {answer:?}"),
        }
        answer.status
    }
}

#[tokio::test]
async fn bodies_changed_at_random_do_no_harm() {
    let stage = Stage::set().await;
    let mut refused = 0;
    for seed in 0..CALLS {
        let mut rng = Rng::new(seed);
        let event = stage.event(rng.pick(ROUTES).operation);
        let good = event["body"].as_str().unwrap_or_default();
        let bytes = mutated(&mut rng, good.as_bytes());
        let event = match str::from_utf8(&bytes) {
            Ok(text) if rng.chance(80) => with_text(event, text),
            _ => with_bytes(event, &bytes),
        };
        let what = format!("seed {seed}: {}", String::from_utf8_lossy(&bytes));
        refused += u64::from(stage.survives(event, &what).await >= 400);
    }
    assert!(
        (CALLS / 4..CALLS).contains(&refused),
        "some pass, most do not: {refused}"
    );
}

#[tokio::test]
async fn paths_queries_and_headers_changed_at_random_do_no_harm() {
    let stage = Stage::set().await;
    let queries = [
        "dryRun=true",
        "limit=10&cursor=abc",
        "status=active",
        "a=b&c=d",
    ];
    let headers = [
        "if-match",
        "idempotency-key",
        "authorization",
        "content-type",
        "host",
        "x-any",
    ];
    let values = [
        "\"7\"",
        "*",
        "application/json; charset=utf-8",
        "Bearer or_x",
        "localhost:80",
    ];
    for seed in 0..CALLS {
        let mut rng = Rng::new(seed);
        let mut event = stage.event(rng.pick(ROUTES).operation);
        let text = |rng: &mut Rng, good: &str| {
            String::from_utf8_lossy(&mutated(rng, good.as_bytes())).into_owned()
        };
        if rng.chance(50) {
            let path = event["rawPath"].as_str().unwrap_or_default().to_owned();
            event["rawPath"] = Value::from(text(&mut rng, &path));
        }
        if rng.chance(50) {
            let query = rng.pick(&queries);
            event = with_query(event, &text(&mut rng, query));
        }
        if rng.chance(50) {
            let (name, value) = (rng.pick(&headers), rng.pick(&values));
            event = with_header(event, name, &text(&mut rng, value));
        }
        stage
            .survives(event.clone(), &format!("seed {seed}: {event}"))
            .await;
    }
}

/// The one mistake that must never be forgiven: a dry run that is none because it was mistyped.
#[tokio::test]
async fn no_slip_of_the_pen_turns_a_dry_run_into_a_reclaim() {
    let stage = Stage::set().await;
    let event = stage.event(Operation::ReclaimUnits);
    let (before, flag, after) = (r#"{"unitIds":["u00"],"#, r#""dryRun":true"#, "}");
    let query = "dryRun=true";
    for slip in [
        "", "\"", "x", "R", "_", "-", " ", "0", "&", "=", ":", ",", "%", "é", "\u{0}",
    ] {
        for at in 0..flag.len() {
            let mut mistyped = flag.to_owned();
            mistyped.replace_range(at..=at, slip);
            let body = format!("{before}{mistyped}{after}");
            stage
                .survives_unchanged(with_text(event.clone(), &body), &body)
                .await;
        }
        for at in 0..query.len() {
            let mut mistyped = query.to_owned();
            mistyped.replace_range(at..=at, slip);
            let event = with_query(event.clone(), &mistyped);
            stage.survives_unchanged(event, &mistyped).await;
        }
    }
}

impl Stage {
    async fn survives_unchanged(&self, event: Value, what: &str) {
        let answer = self.platform.send(event).await;
        assert!(answer.status < 500, "{what}: {answer:?}");
        assert!(
            self.platform.store.world() == self.world,
            "{what}: {answer:?}"
        );
    }
}
