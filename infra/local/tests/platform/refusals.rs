//! Command lines that cannot be followed: one line, exit code 2, nothing done.

use std::path::Path;

use crate::support::{Platform, run};

/// Runs the command and wants it refused with a line that has these words.
fn refused(args: &[&str], folder: &Path, words: &[&str]) {
    let output = run(args, folder);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    assert!(text.starts_with("relet: "), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?}: {word} is not in {text}");
    }
    assert!(output.stdout.is_empty(), "{args:?}");
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &[&str]| refused(args, folder.path(), words);
    refused(&["--wrong"], &["--wrong", "relet --help"]);
    refused(
        &["serve", "--lisen", "127.0.0.1:0"],
        &["--lisen", "--listen"],
    );
    refused(&["serv"], &["serv", "serve"]);
    refused(&["serve", "--listen", "nowhere"], &["nowhere", "--listen"]);
    refused(&["serve", "--listen", "127.0.0.1:70000"], &["70000"]);
    refused(&["serve", "--grace-ms", "-1"], &["-1"]);
    refused(&["--memory", "--data", "d"], &["--memory", "--data"]);
    refused(&["demo", "--memory"], &["--memory"]);
    refused(&["key"], &["<PART>", "relet --help"]);
    refused(&["key", "boss"], &["boss", "operator, owner"]);
    refused(
        &["key", "owner"],
        &[".relet/keys.json", "start `relet`", "--data"],
    );
    let audit = |args: &[&str], words: &[&str]| {
        refused(&[&["audit", "verify"], args].concat(), words);
    };
    audit(&[], &["<NODE>", "relet --help"]);
    audit(&["n"], &["<RESERVATION>"]);
    audit(&["n", "a/b"], &["a/b"]);
    audit(&["n", "r", "--head", "abc"], &["64 digits"]);
    audit(&["n", "r", "--file", "f"], &["--file"]);
    audit(&["--file", "f", "--at-version", "0"], &["0"]);
    audit(&["--file", "absent.json"], &["absent.json"]);
    audit(&["n", "r", "--data", "d"], &["d/keys.json", "--key"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_or_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    let data = [&listen[..], &["--data", "file/data"]].concat();
    refused(&data, folder.path(), &["file/data"]);
    let itself = [&listen[..], &["--data", "file"]].concat();
    refused(&itself, folder.path(), &["file"]);
    let ready = [&listen[..], &["--memory", "--ready-file", "file/ready"]].concat();
    refused(&ready, folder.path(), &["file/ready"]);
    std::fs::create_dir(folder.path().join("other")).unwrap();
    std::fs::write(folder.path().join("other/relet.db"), "not a table").unwrap();
    let other = [&listen[..], &["--data", "other"]].concat();
    refused(&other, folder.path(), &["other/relet.db"]);
}

#[tokio::test]
async fn a_busy_port_and_a_busy_folder_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform::start(folder.path(), &["--data", "d", "--no-demo"]).await;
    let busy = platform.url.strip_prefix("http://").unwrap();
    refused(
        &["serve", "--memory", "--listen", busy],
        folder.path(),
        &[busy],
    );
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", "d"];
    refused(&args, folder.path(), &["another relet", "--data"]);
    assert_eq!(platform.interrupt().await, Some(0));
}
