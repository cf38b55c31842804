//! What is tried again, and what is not.

use std::time::{Duration, Instant};

use crate::server::{Server, json, problem, send};
use crate::{assert_fails, run};

const READ: [&str; 3] = ["nodes", "get", "n"];
const KEYED: [&str; 6] = ["reservations", "unit", "release", "n", "r", "--unit-ids=u"];
const PLAIN: [[&str; 4]; 3] = [
    ["vms", "terminate", "vm-1", "--no-color"],
    ["api-keys", "delete", "org", "id"],
    ["nodes", "terminations", "confirm", "n"],
];

/// A server that fails so often before it works.
fn failing(times: usize, failure: Vec<u8>) -> Server {
    Server::start(move |number, _, stream| match number < times {
        true => send(stream, &failure),
        false => send(stream, &json("200 OK", "", r#"{"id":"n"}"#)),
    })
}

fn unavailable(headers: &str) -> Vec<u8> {
    problem("503 Service Unavailable", headers, "unavailable", "later")
}

#[test]
fn reads_and_keyed_changes_are_tried_again_with_the_same_key() {
    let gateway = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nbad";
    let in_flight = problem("409 Conflict", "", "idempotency_key_in_flight", "wait");
    for failure in [
        unavailable(""),
        problem(
            "429 Too Many",
            "retry-after: 0\r\n",
            "throttled",
            "slow down",
        ),
        in_flight,
        gateway.into(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"id".to_vec(),
        Vec::new(),
    ] {
        for args in [&READ[..], &KEYED] {
            let server = failing(2, failure.clone());
            let output = run(&server.url, args);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
            let got = server.got();
            assert_eq!(got.len(), 3, "{args:?}");
            let keys: Vec<Option<&str>> = got
                .iter()
                .map(|request| request.header("idempotency-key"))
                .collect();
            assert_eq!(keys[0].is_some(), args == KEYED, "{args:?}");
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
            assert!(got.iter().all(|request| request.body == got[0].body));
        }
    }
}

#[test]
fn each_command_has_a_key_of_its_own() {
    let server = failing(0, Vec::new());
    for _ in 0..2 {
        run(&server.url, &KEYED);
    }
    let got = server.got();
    let keys: Vec<&str> = got
        .iter()
        .filter_map(|request| request.header("idempotency-key"))
        .collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn other_changes_are_tried_once() {
    let confirm = [&PLAIN[2][..], &["vm"]].concat();
    for args in [&PLAIN[0][..], &PLAIN[1], &confirm] {
        for failure in [unavailable("retry-after: 0\r\n"), Vec::new()] {
            let server = failing(9, failure);
            let output = run(&server.url, args);
            assert_fails(&output, 6, &["the outcome is not known"]);
            assert_eq!(server.got().len(), 1, "{args:?}");
            assert_eq!(server.got()[0].header("idempotency-key"), None);
        }
    }
}

#[test]
fn what_would_fail_alike_is_tried_once() {
    for (status, code, exit) in [
        ("400 Bad Request", "bad_request", 2),
        ("404 Not Found", "not_found", 4),
        ("409 Conflict", "unit_draining", 5),
        ("412 Precondition Failed", "version_mismatch", 5),
        ("422 Unprocessable", "unit_not_reserved", 2),
        ("500 Internal", "internal", 6),
    ] {
        for args in [&READ[..], &KEYED] {
            let server = failing(9, problem(status, "", code, "no"));
            let output = run(&server.url, args);
            assert_eq!(output.status.code(), Some(exit), "{code}: {output:?}");
            assert_eq!(server.got().len(), 1, "{code}");
        }
    }
}

#[test]
fn tries_have_an_end() {
    let server = failing(99, unavailable(""));
    let output = run(&server.url, &READ);
    assert_fails(&output, 6, &["later", "unavailable (HTTP 503)"]);
    assert_eq!(server.got().len(), 4);
}

#[test]
fn the_platform_is_left_alone_for_as_long_as_it_asks() {
    let server = failing(1, unavailable("retry-after: 1\r\n"));
    let began = Instant::now();
    assert_eq!(run(&server.url, &READ).status.code(), Some(0));
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[test]
fn who_asks_for_more_time_than_there_is_is_not_waited_for() {
    for wait in ["31", "86400", "99999999999", "99999999999999999999999999"] {
        let server = failing(9, unavailable(&format!("retry-after: {wait}\r\n")));
        let began = Instant::now();
        let output = run(&server.url, &READ);
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{wait}: it waits"
        );
        assert_fails(&output, 6, &["asks to be left alone for"]);
        assert_eq!(server.got().len(), 1);
    }
    // What is no number of seconds is no wish.
    for odd in ["soon", "-1", "", "Wed, 21 Oct 2099 07:28:00 GMT"] {
        let server = failing(1, unavailable(&format!("retry-after: {odd}\r\n")));
        assert_eq!(run(&server.url, &READ).status.code(), Some(0), "{odd}");
    }
}
