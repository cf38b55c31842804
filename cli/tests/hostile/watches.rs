//! Watches over a platform that fails now and then.

use std::process::Output;
use std::time::{Duration, Instant};

use crate::server::{Request, Server, json, problem, send};
use crate::terminal::Terminal;
use crate::{KEY, orl, run};

const ARGS: [&str; 8] = [
    "reservations",
    "unit",
    "reclaim",
    "n",
    "r",
    "--unit-ids",
    "u1,u2",
    "--watch",
];

/// What a platform answers: a reclaim of two VMs, then these to each look in turn; the last again
/// and again.
fn watched(looks: Vec<Vec<u8>>) -> Server {
    let mut seen = 0;
    Server::start(move |_, request: &Request, stream| {
        if !request.body.contains("dryRun") && request.head.starts_with("post") {
            let body = r#"{"id":"r","terminated":["vm-1","vm-2"]}"#;
            return send(stream, &json("200 OK", "etag: \"7\"\r\n", body));
        }
        send(stream, &looks[seen.min(looks.len() - 1)]);
        seen += 1;
    })
}

fn left(vms: &[&str]) -> Vec<u8> {
    let body = serde_json::json!({ "id": "r", "wouldTerminate": vms, "wouldSkip": [] });
    json("200 OK", "etag: \"7\"\r\n", &body.to_string())
}

fn watch(server: &Server, more: &[&str]) -> (Output, String) {
    let output = run(&server.url, &[&ARGS[..], &["--yes"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn each_vm_is_shown_as_it_goes() {
    let looks = vec![
        left(&["vm-1", "vm-2"]),
        left(&["vm-2"]),
        left(&["vm-2", "vm-9"]),
        left(&[]),
    ];
    let (output, said) = watch(&watched(looks), &[]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = |text: &[&str]| {
        words
            .windows(text.len())
            .position(|there| there == text)
            .unwrap()
    };
    assert!(
        at(&["VM", "vm-2", "condemned"]) < at(&["VM", "vm-1", "gone"]),
        "{said}"
    );
    assert!(
        at(&["VM", "vm-1", "gone"]) < at(&["VM", "vm-2", "gone"]),
        "{said}"
    );
    assert!(
        at(&["VM", "vm-2", "gone"]) < at(&["Usable:", "u1,", "u2,"]),
        "{said}"
    );
}

#[test]
fn failures_of_the_platform_do_not_end_a_watch() {
    let down = || problem("503 No", "retry-after: 0\r\n", "unavailable", "later");
    let gateway = b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n".to_vec();
    let mut looks = vec![down(); 5];
    looks.extend([gateway.clone(), Vec::new(), gateway, left(&["vm-1"])]);
    looks.extend(vec![problem("500 No", "", "internal", "a bug"); 2]);
    looks.push(left(&[]));
    let (output, said) = watch(&watched(looks), &["--timeout", "60s"]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("Usable: u1, u2"), "{said}");
}

#[test]
fn a_platform_that_stays_away_ends_it_in_time_and_says_so() {
    let server = watched(vec![problem("500 No", "", "internal", "a bug")]);
    let (output, said) = watch(&server, &["--timeout", "2s"]);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(
        said.contains("2 of 2 VMs are still there after 2s"),
        "{said}"
    );
    assert!(said.contains("the last look failed: a bug"), "{said}");
}

#[test]
fn a_key_that_is_revoked_meanwhile_ends_it() {
    let looks = vec![
        left(&["vm-1"]),
        problem("401 No", "", "unauthorized", "send a key"),
    ];
    let (output, said) = watch(&watched(looks), &[]);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the units are reclaimed, but"), "{said}");
}

#[test]
fn an_answer_without_the_list_does_not_mean_that_all_are_gone() {
    let strange = || json("200 OK", "", "{}");
    let looks = vec![strange(), left(&["vm-1"]), strange(), left(&[])];
    let server = watched(looks);
    let (output, said) = watch(&server, &["--timeout", "60s"]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(server.got().len(), 5, "{said}");
    let (output, said) = watch(&watched(vec![strange()]), &["--timeout", "2s"]);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(
        words.join(" ").contains("it has no wouldTerminate"),
        "{said}"
    );
}

#[test]
fn a_watch_goes_on_where_nobody_reads_the_answer() {
    let server = watched(vec![left(&["vm-1", "vm-2"]), left(&[])]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = orl(&server.url, &[&ARGS[..], &["--yes"]].concat());
    let output = command.stdout(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("Usable: u1, u2"), "{said}");
}

#[test]
fn a_line_of_progress_leaves_nothing_behind_without_colours() {
    let trouble = || problem("500 No", "", "internal", &"数 trouble ".repeat(30));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "xterm")] {
        let server = watched(vec![trouble(), left(&["vm-1"]), left(&[])]);
        let variables = [
            ("ORL_URL", server.url.as_str()),
            ("ORL_API_KEY", KEY),
            (name, value),
        ];
        let ended = Terminal::start(&[&ARGS[..], &["--yes"]].concat(), &variables).end();
        assert_eq!(ended.code, 0, "{}", ended.screen);
        assert!(ended.raw.contains("trouble"), "{}", ended.raw);
        assert!(!ended.screen.contains("trouble"), "{}", ended.screen);
        assert!(!ended.screen.contains("of 2 gone"), "{}", ended.screen);
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let server = Server::start(move |_, _, stream| {
        wait.recv().unwrap();
        send(stream, &left(&["vm-1"]));
    });
    let variables = [("ORL_URL", server.url.as_str()), ("ORL_API_KEY", KEY)];
    let mut terminal = Terminal::start(&ARGS[..7], &variables);
    terminal.enter("y\r");
    terminal.wait_for("y\r\n");
    go.send(()).unwrap();
    terminal.wait_for("[y/N]");
    terminal.enter("n\r");
    let ended = terminal.end();
    assert_eq!(ended.code, 1, "{}", ended.screen);
    assert_eq!(server.got().len(), 1, "nothing but the plan was asked for");
}

#[test]
fn a_plan_without_a_version_is_not_asked_about_and_a_weak_one_is_sent_as_it_is_meant() {
    let body = r#"{"id":"r","wouldTerminate":["vm-1"],"wouldSkip":[]}"#;
    for tag in ["", "etag: \"\"\r\n", "etag: W/\"\"\r\n"] {
        let server = Server::saying(json("200 OK", tag, body));
        let variables = [("ORL_URL", server.url.as_str()), ("ORL_API_KEY", KEY)];
        let ended = Terminal::start(&ARGS[..7], &variables).end();
        assert_eq!(ended.code, 6, "{}", ended.screen);
        assert!(
            ended.screen.contains("without a version"),
            "{}",
            ended.screen
        );
        assert_eq!(server.got().len(), 1);
    }
    let server = Server::saying(json("200 OK", "etag: W/\"7\"\r\n", body));
    let variables = [("ORL_URL", server.url.as_str()), ("ORL_API_KEY", KEY)];
    let mut terminal = Terminal::start(&ARGS[..7], &variables);
    terminal.wait_for("[y/N]");
    terminal.enter("y\r");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(server.got()[1].header("if-match"), Some("\"7\""));
}

#[test]
fn a_reservation_that_is_over_is_followed_by_its_records() {
    let over = || problem("409 No", "", "reservation_not_active", "it is over");
    let records = |vms: &[&str], next: Option<&str>| {
        let items: Vec<_> = vms
            .iter()
            .map(|vm| serde_json::json!({ "type": "vm.terminated", "vmIds": [vm] }))
            .collect();
        let mut body = serde_json::json!({ "items": items });
        if let Some(next) = next {
            body["nextCursor"] = next.into();
        }
        json("200 OK", "", &body.to_string())
    };
    let looks = vec![
        over(),
        records(&["vm-7"], Some("more")),
        records(&["vm-1"], None),
        over(),
        records(&["vm-7", "vm-1", "vm-2"], None),
    ];
    let server = watched(looks);
    let (output, said) = watch(&server, &[]);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(!said.contains("Usable"), "{said}");
    assert!(
        server
            .got()
            .iter()
            .any(|request| request.head.contains("cursor=more"))
    );
}

#[test]
fn ctrl_c_while_the_reclaim_is_on_its_way_says_that_it_may_be_done() {
    let server = Server::start(|_, _, _| std::thread::sleep(Duration::from_secs(20)));
    let variables = [("ORL_URL", server.url.as_str()), ("ORL_API_KEY", KEY)];
    let args = [&ARGS[..], &["--yes"]].concat();
    let mut terminal = Terminal::start(&args, &variables);
    let began = Instant::now();
    while server.got().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing is sent");
        std::thread::sleep(Duration::from_millis(5));
    }
    terminal.enter("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, 130, "{}", ended.screen);
    assert!(ended.screen.contains("it may be done"), "{}", ended.screen);
    assert!(!ended.raw.contains(&KEY[3..]));
}

#[test]
fn a_question_about_a_reservation_that_never_rests_is_given_up() {
    let server = Server::start(|_, request, stream| match request.body.contains("dryRun") {
        true => send(stream, &left(&["vm-1"])),
        false => {
            assert_eq!(request.header("if-match"), Some("\"7\""));
            let changed = problem("412 No", "", "version_mismatch", "it has changed");
            send(stream, &changed);
        }
    });
    let variables = [("ORL_URL", server.url.as_str()), ("ORL_API_KEY", KEY)];
    let mut terminal = Terminal::start(&ARGS[..7], &variables);
    terminal.wait_for("[y/N]");
    terminal.enter("y\r");
    for round in 2..=5 {
        terminal.wait_for_times("[y/N]", round);
        terminal.enter("y\r");
    }
    let ended = terminal.end();
    assert_eq!(ended.code, 5, "{}", ended.screen);
    let keys: std::collections::BTreeSet<String> = server
        .got()
        .iter()
        .filter(|request| !request.body.contains("dryRun"))
        .filter_map(|request| request.header("idempotency-key").map(str::to_owned))
        .collect();
    assert_eq!(keys.len(), 5, "another condition is another call");
}
