//! The command against servers that are down, slow, cut off, not the platform at all, or after its
//! key: a clear message and the right exit code, never a panic, never a hang.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod bytes;
mod corners;
mod retries;
mod server;
#[path = "../shared/terminal.rs"]
mod terminal;
mod watches;

use std::process::{Command, Output, Stdio};

/// A key that no platform has.
pub(crate) const KEY: &str = "or_0123456789abcdefghijABCDEFGHIJ01234567";

/// The command against a URL, with a key.
pub(crate) fn orl(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orl"));
    command
        .args(args)
        .env_clear()
        .env("ORL_URL", url)
        .env("ORL_API_KEY", KEY)
        .stdin(Stdio::null());
    command
}

/// Runs it to its end; the key is in nothing that it writes.
pub(crate) fn run(url: &str, args: &[&str]) -> Output {
    let output = orl(url, args).output().unwrap();
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        assert!(!text.contains(&KEY[3..]), "{args:?} shows the key: {text}");
        assert!(!text.contains("panicked"), "{args:?}: {text}");
    }
    output
}

/// Asserts an exit code and words of the message.
pub(crate) fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let flat = said.split_whitespace().collect::<Vec<&str>>().join(" ");
    for word in words {
        assert!(flat.contains(word), "no {word:?} in: {said}");
    }
    assert!(flat.contains("hint: "), "nothing to do next: {said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
