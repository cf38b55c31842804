//! The server spoken to over a plain socket, and processes that are no functions at all.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const LONG: Duration = Duration::from_secs(10);

/// Makes one request on a connection of its own and returns the whole answer as text.
async fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} /2018-06-01/runtime/{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

fn header(answer: &str, name: &str) -> String {
    let line = answer.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then(|| value.to_owned())
    });
    line.unwrap_or_else(|| panic!("no {name} in {answer}"))
}

/// Takes one invocation and answers it on `verb` with `body`; returns the invocation as received.
async fn serve_one(address: SocketAddr, verb: &str, body: &str) -> String {
    let next = http(address, "GET", "invocation/next", "").await;
    let id = header(&next, "lambda-runtime-aws-request-id");
    let path = format!("invocation/{id}/{verb}");
    let first = http(address, "POST", &path, body).await;
    assert!(first.starts_with("HTTP/1.1 202"), "{first}");
    let second = http(address, "POST", &path, body).await;
    assert!(
        second.starts_with("HTTP/1.1 400"),
        "an id is answered once: {second}"
    );
    next
}

#[tokio::test]
async fn an_event_goes_out_with_its_headers_and_the_answer_comes_back() {
    let mut api = RuntimeApi::start().await.unwrap();
    let address = api.address();
    assert!(address.ip().is_loopback());
    let function = tokio::spawn(async move { serve_one(address, "response", r#"{"ok":1}"#).await });
    assert_eq!(
        api.invoke(&json!({"n": 7}), LONG).await,
        Ok(json!({"ok": 1}))
    );
    let seen = function.await.unwrap();
    assert!(seen.ends_with(r#"{"n":7}"#), "{seen}");
    let deadline: u64 = header(&seen, "lambda-runtime-deadline-ms").parse().unwrap();
    assert!(deadline > 1_700_000_000_000, "{deadline}");
    assert!(header(&seen, "lambda-runtime-invoked-function-arn").ends_with(FUNCTION_NAME));
    assert!(header(&seen, "lambda-runtime-trace-id").starts_with("Root="));
}

#[tokio::test]
async fn a_failed_invocation_tells_its_kind_and_the_next_one_goes_on() {
    let mut api = RuntimeApi::start().await.unwrap();
    let address = api.address();
    let function = tokio::spawn(async move {
        let report = r#"{"errorType":"Panic","errorMessage":"it panicked"}"#;
        serve_one(address, "error", report).await;
        serve_one(address, "response", "this is no JSON").await;
        serve_one(address, "response", "2").await;
    });
    let failure = Failure::Function {
        kind: "Panic".to_owned(),
        message: "it panicked".to_owned(),
    };
    assert_eq!(api.invoke(&json!(1), LONG).await, Err(failure));
    let answer = api.invoke(&json!(1), LONG).await;
    assert!(matches!(answer, Err(Failure::Function { kind, .. }) if kind == "NotJson"));
    assert_eq!(api.invoke(&json!(1), LONG).await, Ok(json!(2)));
    function.await.unwrap();
}

#[tokio::test]
async fn a_function_that_cannot_start_fails_whoever_waits_and_silence_runs_out() {
    let mut api = RuntimeApi::start().await.unwrap();
    let silent = api.invoke(&json!(1), Duration::from_millis(50)).await;
    assert_eq!(silent, Err(Failure::TimedOut));
    http(api.address(), "POST", "init/error", "no table").await;
    let failed = api.invoke(&json!(1), LONG).await;
    assert_eq!(failed, Err(Failure::Init("no table".to_owned())));
}

#[tokio::test]
async fn a_process_that_ends_says_how_and_what_it_wrote() {
    let script = [
        "-c",
        "echo $AWS_LAMBDA_FUNCTION_NAME $EXTRA $CARGO_PKG_NAME; exit 3",
    ];
    let started = FunctionProcess::start_with(Path::new("/bin/sh"), &script, &[("EXTRA", "more")]);
    let mut process = started.await.unwrap();
    let Err(Failure::Exited(text)) = process.invoke(&json!({})).await else {
        panic!("it asks for nothing");
    };
    assert!(text.contains("exit status: 3"), "{text}");
    assert_eq!(process.logs(), [format!("{FUNCTION_NAME} more")]);
}

#[tokio::test]
async fn a_process_that_never_asks_runs_out_of_time_and_ends_with_its_owner() {
    let started = FunctionProcess::start_with(Path::new("/bin/sleep"), &["600"], &[]);
    let mut process = started.await.unwrap();
    let silent = process.invoke_within("{}".to_owned(), Duration::from_millis(50));
    assert_eq!(silent.await, Err(Failure::TimedOut));
    let stat = format!("/proc/{}/stat", process.pid().unwrap());
    drop(process);
    // Gone, or ended and only waiting to be taken note of.
    let ended = || std::fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
    for _ in 0..500 {
        if ended() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process outlived its owner by 5 seconds");
}
