//! Manual pages and completions: made from the grammar, whole, and of use to what reads them.

use std::collections::BTreeSet;
use std::process::Command;

use orl::cli::grammar;

/// The command, which needs no platform for these.
fn orl(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_orl"))
        .args(args)
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The paths of all commands, groups among them.
fn paths() -> Vec<Vec<String>> {
    fn collect(command: &clap::Command, above: &[String], found: &mut Vec<Vec<String>>) {
        let mut path = above.to_vec();
        path.push(command.get_name().to_owned());
        found.push(path.clone());
        for below in command.get_subcommands() {
            collect(below, &path, found);
        }
    }
    let mut found = Vec::new();
    collect(&grammar(), &[], &mut found);
    found
}

#[test]
fn every_command_has_its_page_with_its_flags_and_its_example() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("man1");
    orl(&["man", dir.to_str().unwrap()]);
    let files = std::fs::read_dir(&dir).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = paths()
        .into_iter()
        .map(|path| format!("{}.1", path.join("-")));
    assert_eq!(files, expected.collect());
    for path in paths() {
        let page = std::fs::read_to_string(dir.join(format!("{}.1", path.join("-")))).unwrap();
        let text = page.replace('\\', "");
        assert!(text.starts_with(".ie ") || text.contains(".TH"), "{path:?}");
        assert!(text.contains(&path.join(" ")), "{path:?}: {text}");
        assert!(text.contains("--timeout"), "{path:?}");
        assert!(text.contains("xample"), "{path:?}: {text}");
    }
    let own = orl(&["man"]);
    assert!(own.contains("Exit codes") && own.contains("130"), "{own}");
}

#[test]
fn every_shell_gets_completions_that_name_every_command_and_flag() {
    for shell in ["bash", "zsh", "fish"] {
        let script = orl(&["completions", shell]);
        for path in paths() {
            let name = path.last().unwrap();
            assert!(script.contains(name.as_str()), "{shell}: {name}");
        }
        let flags = [
            "unit-ids",
            "if-match",
            "watch",
            "reserved-unit-ids",
            "api-key-file",
        ];
        for flag in flags {
            assert!(script.contains(flag), "{shell}: {flag}");
        }
    }
}

#[test]
fn bash_completes_what_is_typed() {
    let script = orl(&["completions", "bash"]);
    let ask = |words: &str| {
        let last = words.split(' ').count() - 1;
        let text = format!(
            "{script}\nCOMP_WORDS=({words})\nCOMP_CWORD={last}\n\
             _orl orl \"${{COMP_WORDS[$COMP_CWORD]}}\" x\necho \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &text])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(ask("orl reserv"), "reservations");
    assert_eq!(ask("orl reservations unit rec"), "reclaim");
    assert_eq!(ask("orl reservations unit reclaim --dry"), "--dry-run");
}
