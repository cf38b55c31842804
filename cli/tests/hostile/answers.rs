//! Answers that are none.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::server::{Server, json, problem, send};
use crate::{KEY, assert_fails, run};

const READ: [&str; 2] = ["nodes", "list"];
const CHANGE: [&str; 3] = ["vms", "terminate", "vm-1"];
const BRIEFLY: [&str; 2] = ["--timeout", "700ms"];

/// Asserts that something is over soon.
fn soon<T>(what: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = what();
    assert!(began.elapsed() < Duration::from_secs(15), "it hangs");
    done
}

#[test]
fn a_server_that_is_down_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = soon(|| run(&url, &READ));
    assert_fails(&output, 6, &["cannot reach", &url, "is it running"]);
    let output = soon(|| run("http://orl.invalid", &["health", "--timeout", "5s"]));
    assert_fails(&output, 6, &["orl.invalid"]);
}

#[test]
fn a_server_that_is_slow_is_given_up_after_the_time_that_was_set() {
    let silent = Server::start(|_, _, _| std::thread::sleep(Duration::from_secs(20)));
    let args = [&READ[..], &BRIEFLY].concat();
    let output = soon(|| run(&silent.url, &args));
    assert_fails(
        &output,
        6,
        &["no answer from", &silent.url, "within 0.7s", "--timeout"],
    );
    let args = [&CHANGE[..], &BRIEFLY].concat();
    let output = soon(|| run(&silent.url, &args));
    assert_fails(&output, 6, &["within 0.7s", "the outcome is not known"]);
}

#[test]
fn a_server_that_drips_is_given_up_too() {
    let dripping = Server::start(|_, _, stream| {
        send(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
        for _ in 0..400 {
            send(stream, b"[");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let args = [&READ[..], &BRIEFLY].concat();
    let output = soon(|| run(&dripping.url, &args));
    assert_fails(&output, 6, &["within 0.7s"]);
}

#[test]
fn an_answer_that_is_cut_off_is_told_as_that() {
    let whole =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n{\"i";
    for length in [0, 1, 9, 30, whole.len()] {
        let server = Server::saying(&whole[..length]);
        let output = soon(|| run(&server.url, &READ));
        assert_fails(&output, 6, &[&server.url, "try again"]);
        let output = soon(|| run(&server.url, &CHANGE));
        assert_fails(&output, 6, &[&server.url, "the outcome is not known"]);
    }
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n[1,2,";
    let output = soon(|| run(&Server::saying(chunked).url, &READ));
    assert_fails(&output, 6, &["was cut off"]);
}

#[test]
fn what_is_not_the_platform_is_told_as_that() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n\
                <html>\n<title>Welcome to the hotel</title>";
    let output = run(&Server::saying(html).url, &READ);
    assert_fails(
        &output,
        6,
        &[
            "answered 200",
            "not as this API does",
            "<html>",
            "text/html",
        ],
    );
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot here\n";
    let output = run(&Server::saying(missing).url, &READ);
    assert_fails(&output, 6, &["answered 404", "not here", "no content type"]);
    let wall = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
    let output = run(&Server::saying(wall).url, &READ);
    assert_fails(&output, 3, &["answered 403", "nothing"]);
    let other = "SSH-2.0-OpenSSH_9.2\r\n";
    let output = soon(|| run(&Server::saying(other).url, &READ));
    assert_fails(&output, 6, &["gave no answer"]);
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n{\"\xff\xfe\"}".to_vec();
    let output = run(&Server::saying(bytes).url, &READ);
    assert_fails(&output, 6, &["no UTF-8"]);
    let deep = json("200 OK", "", &"[".repeat(500_000));
    let output = run(&Server::saying(deep).url, &READ);
    assert_fails(&output, 6, &["not as this API does"]);
}

#[test]
fn an_answer_without_end_is_bounded() {
    let endless = Server::start(|_, _, stream| {
        send(stream, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        let piece = vec![b' '; 1024 * 1024];
        for _ in 0..64 {
            send(stream, &piece);
        }
    });
    let output = soon(|| run(&endless.url, &READ));
    assert_fails(&output, 6, &["longer than 16 MiB"]);
    let claimed = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n{}";
    let output = soon(|| run(&Server::saying(claimed).url, &READ));
    assert_fails(&output, 6, &["was cut off"]);
    let header = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(4_000_000));
    let output = soon(|| run(&Server::saying(header).url, &READ));
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[test]
fn json_of_another_shape_is_no_panic_and_no_empty_list() {
    for body in [
        "null",
        "true",
        "[]",
        "\"x\"",
        "7",
        "{}",
        r#"{"items":7}"#,
        r#"{"items":[1,null,"x",[]]}"#,
        r#"{"items":[{"id":{"a":[1]}}]}"#,
        r#"{"items":[],"nextCursor":7}"#,
        r#"{"units":{"a":1},"id":7}"#,
        r#"{"wouldTerminate":"x","terminated":{}}"#,
    ] {
        let server = Server::saying(json("200 OK", "etag: W/\"\"\r\n", body));
        for args in [
            &["nodes", "list"][..],
            &["nodes", "list", "--all"],
            &["nodes", "get", "n"],
            &["whoami"],
            &["gpu-availability", "get"],
            &["reservations", "audit", "n", "r"],
            &[
                "reservations",
                "unit",
                "reclaim",
                "n",
                "r",
                "--unit-ids",
                "u",
                "--yes",
                "--watch",
            ],
            &["auth", "status"],
        ] {
            for form in ["table", "json", "yaml", "id"] {
                let args = [args, &["--output", form]].concat();
                let output = soon(|| run(&server.url, &args));
                let list = body.starts_with(r#"{"items":["#);
                let code = match args[..2] {
                    ["nodes", "get"] | ["whoami", _] => 0,
                    ["auth", _] | ["reservations", "unit"] => 6,
                    _ if list => 0,
                    _ => 6,
                };
                let said = format!("{args:?} {body}: {output:?}");
                assert_eq!(output.status.code(), Some(code), "{said}");
                assert!(!said.contains("Usable"), "{said}");
            }
        }
    }
}

#[test]
fn a_list_that_does_not_end_is_left() {
    for round in 1..=3 {
        let server = Server::start(move |number, _, stream| {
            let next = number % round;
            let page = format!(r#"{{"items":[],"nextCursor":"again{next}"}}"#);
            send(stream, &json("200 OK", "", &page));
        });
        let output = soon(|| run(&server.url, &["nodes", "list", "--all"]));
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("does not end"));
    }
}

#[test]
fn a_list_of_very_many_rows_is_laid_out_at_once() {
    let item = format!(r#"{{"id":"vm-1","name":"{}"}}"#, "word ".repeat(400));
    let items = vec![item; 5_000].join(",");
    let server = Server::saying(json("200 OK", "", &format!("{{\"items\":[{items}]}}")));
    let output = soon(|| run(&server.url, &["vms", "list", "org"]));
    assert_eq!(output.status.code(), Some(0));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(shown.matches("vm-1").count(), 5_000);
}

#[test]
fn a_redirect_is_not_followed_and_the_key_stays() {
    let other = Server::saying(json("200 OK", "", "{}"));
    for status in [
        "301 Moved",
        "302 Found",
        "303 See",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = format!("location: {}/v1/nodes\r\n", other.url);
        let server = Server::saying(json(status, &location, "{}"));
        for args in [&READ[..], &CHANGE] {
            let output = run(&server.url, args);
            assert_fails(
                &output,
                6,
                &["points elsewhere", &other.url, "not sent there"],
            );
        }
        assert_eq!(server.got().len(), 2, "once each");
    }
    assert_eq!(other.got().len(), 0, "nothing came there");
}

#[test]
fn a_server_that_repeats_the_key_does_not_get_it_onto_the_screen() {
    let echo = |status: &str| {
        let body = serde_json::json!({
            "error": format!("bad key {KEY}"), "code": format!("code_{KEY}"), "requestId": KEY,
            "id": KEY, "items": [{ "id": KEY }], "organizationId": KEY,
        });
        Server::saying(json(
            status,
            &format!("x-request-id: {KEY}\r\n"),
            &body.to_string(),
        ))
    };
    for status in ["200 OK", "400 Bad", "401 No", "409 No", "500 No"] {
        let server = echo(status);
        for form in ["table", "json", "yaml", "id"] {
            run(
                &server.url,
                &["nodes", "list", "--verbose", "--output", form],
            );
            run(&server.url, &["whoami", "-v", "--output", form]);
        }
    }
    let html = format!("HTTP/1.1 500 No\r\ncontent-type: x/{KEY}\r\n\r\nAuthorization: {KEY}");
    run(&Server::saying(html).url, &["whoami", "-v"]);
    let location = format!("location: http://127.0.0.1/{KEY}\r\n");
    run(
        &Server::saying(json("302 Found", &location, "{}")).url,
        &["whoami", "-v"],
    );
}

#[test]
fn a_refused_key_names_the_host() {
    let server = Server::saying(problem(
        "401 Unauthorized",
        "",
        "unauthorized",
        "send a key",
    ));
    let output = run(&server.url, &READ);
    let from = format!(
        "{} refuses the API key from ORL_API_KEY: send a key",
        server.url
    );
    assert_fails(
        &output,
        3,
        &[&from, "orl auth login", "unauthorized (HTTP 401)", "req-1"],
    );
    assert_eq!(server.got().len(), 1);
    assert_eq!(
        server.got()[0].header("authorization"),
        Some(&*format!("bearer {KEY}").to_lowercase())
    );
}

#[test]
fn text_from_a_server_does_not_control_the_terminal() {
    let odd = "\u{1b}]0;owned\u{7}\u{1b}[2J\rall is well\u{9b}2J\u{202e}\u{7f}";
    let bad = problem("409 Conflict", "", odd, odd);
    let item =
        serde_json::json!({ "items": [{ "id": odd, "ownerOrgId": odd }], "nextCursor": odd });
    let good = json("200 OK", "", &item.to_string());
    for (answer, form) in [
        (&bad, "table"),
        (&bad, "json"),
        (&good, "table"),
        (&good, "json"),
        (&good, "yaml"),
        (&good, "id"),
    ] {
        let args = ["nodes", "list", "--output", form];
        let output = run(&Server::saying(answer.clone()).url, &args);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(stream);
            // YAML keeps what turns writing around: there it stands in quotes.
            let turned = |c| c == '\u{202e}' && form != "yaml";
            let odd = |c: char| (c.is_control() && c != '\n') || turned(c);
            assert!(!text.contains(odd), "{text:?}");
        }
        if form == "json" && !output.stdout.is_empty() {
            let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(shown, item, "and nothing of it is lost");
        }
    }
}

#[test]
fn a_key_does_not_go_over_an_open_line_unless_asked() {
    let refused = run("http://10.255.255.1", &READ);
    assert_fails(&refused, 2, &["plain HTTP", "--insecure-http"]);
    // What needs no key may go anywhere.
    let open = run("http://orl.invalid", &["health", "--timeout", "5s"]);
    assert_eq!(open.status.code(), Some(6), "{open:?}");
    let server = Server::saying(json("200 OK", "", r#"{"status":"ok"}"#));
    run(&server.url, &["health"]);
    assert_eq!(server.got()[0].header("authorization"), None);
}
