//! `relet demo`.

use crate::support::{relet, run};

#[test]
fn the_demo_plays_every_step_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["demo"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
    for told in [
        "PUT /v1/nodes/gpu-node-1",
        "wouldTerminate",
        "insufficient_capacity",
        "the process is gone",
        "the tenant's VM still runs",
        "reservation.ended",
        "the chain holds",
    ] {
        assert!(text.contains(told), "{told} is not in:\n{text}");
    }
    assert!(!text.contains('✗') && errors.is_empty(), "{text}\n{errors}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn colours_are_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&["demo"], folder.path());
    assert!(!plain.stdout.contains(&0x1b), "colours in a pipe");
    let coloured = relet()
        .arg("demo")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(coloured.stdout.contains(&0x1b), "no colours when asked for");
}
