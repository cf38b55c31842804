//! An environment, files and streams that nobody expects.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::server::{Server, json, problem};
use crate::terminal::Terminal;
use crate::{assert_fails, orl};

#[test]
fn a_variable_that_is_no_text_is_refused_and_not_passed_over() {
    let server = Server::saying(json("200 OK", "", "{}"));
    let odd = OsStr::from_bytes(b"or_\xff");
    for name in ["ORL_URL", "ORL_API_KEY"] {
        let mut command = orl(&server.url, &["whoami"]);
        let output = command.env(name, odd).output().unwrap();
        assert_fails(&output, 2, &[&format!("{name} is no UTF-8")]);
    }
    assert_eq!(server.got().len(), 0);
}

#[test]
fn a_pipe_in_the_place_of_the_config_file_is_not_waited_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orl/config.json");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut command = orl("", &["whoami"]);
    command.env("XDG_CONFIG_HOME", folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no file"));
}

#[test]
fn a_change_whose_answer_cannot_be_written_is_told_as_done() {
    let answer = json("200 OK", "", r#"{"id":"r","terminated":[]}"#);
    let server = Server::saying(answer);
    let release = ["reservations", "unit", "release", "n", "r", "--unit-ids=u"];
    let reclaim = [
        "reservations",
        "unit",
        "reclaim",
        "n",
        "r",
        "--unit-ids=u",
        "--yes",
    ];
    for (args, done) in [
        (&release[..], true),
        (&reclaim, true),
        (&["nodes", "get", "n"], false),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = orl(&server.url, args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.contains("the change is done"), done, "{said}");
    }
}

#[test]
fn a_signal_at_the_question_for_a_key_does_not_leave_the_terminal_silent() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("ORL_URL", "http://127.0.0.1:1"),
        ("HOME", folder.path().to_str().unwrap()),
    ];
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = Terminal::start(&["auth", "login"], &variables);
        terminal.wait_for("API key for");
        let id = i32::try_from(terminal.child.process_id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
        let ended = terminal.end();
        // It has ended by itself, behind what puts the terminal right.
        assert_eq!(ended.code, 130, "{}", ended.screen);
        assert!(
            ended.screen.contains("nothing was changed"),
            "{}",
            ended.screen
        );
    }
}

#[test]
fn a_key_of_any_look_stays_off_the_screen_however_it_comes_back() {
    let key = "hunter2.of-no-shape";
    let escaped = key.replace('h', "\\u0068");
    let body =
        format!(r#"{{"error":"{escaped}","code":"{escaped}","items":[{{"id":"{escaped}"}}]}}"#);
    let location = format!("location: http://127.0.0.1/{key}\r\n");
    for answer in [
        json("200 OK", "", &body),
        problem("409 No", "", key, key),
        json("409 No", "", &body),
        json("302 Found", &location, "{}"),
        format!("HTTP/1.1 500 No\r\ncontent-type: x/{key}\r\n\r\n{key}").into_bytes(),
    ] {
        let server = Server::saying(answer);
        for form in ["table", "json", "yaml", "id"] {
            let args = ["nodes", "list", "--verbose", "--output", form];
            let mut command = orl(&server.url, &args);
            let output = command.env("ORL_API_KEY", key).output().unwrap();
            let all = [output.stdout, output.stderr].concat();
            let all = String::from_utf8_lossy(&all);
            assert!(!all.contains("unter2"), "{form}: {all}");
        }
    }
}
