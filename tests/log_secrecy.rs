//! After a whole test run: no log of it, at level `info`, has an API key or a reason in it.
//!
//! Processes that tests start, and code that runs inside tests, leave their logs in the folder
//! that `RELET_TEST_LOG_DIR` names (`testkit::logs`). Every reason that a test gives carries one
//! word or is listed here, which another test here holds. The search comes last, when all logs are
//! there: it is ignored by a run of all tests, and `.ci/run` asks for it.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use testkit::logs::{FOLDER, HUSH};

/// Reasons that people read, in the demo and in the API document: they do not hush, and are
/// searched for as they are.
const READ_REASONS: [&str; 7] = [
    "idle until Monday",
    "launch day",
    "contract over",
    "third quarter",
    "needed for training",
    "looked at: the same board",
    "contract cancelled",
];

/// Characters of a key after its prefix: of a key of today, and the fewest of a legacy one.
const KEY_CHARS: usize = 38;
const LEGACY_CHARS_MIN: usize = 13;

/// What of a line must not be in a log, told without repeating it.
fn secrets(line: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let follows = |prefix: &str, chars: usize, part: fn(u8) -> bool| {
        line.match_indices(prefix).any(|(at, _)| {
            let rest = line.as_bytes().iter().skip(at + prefix.len());
            rest.take_while(|byte| part(**byte)).count() >= chars
        })
    };
    let url_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if follows("or_", KEY_CHARS, |b| b.is_ascii_alphanumeric()) {
        found.push("an API key");
    }
    if follows("vl_", LEGACY_CHARS_MIN, url_safe) {
        found.push("a legacy API key");
    }
    let read = READ_REASONS.iter().any(|reason| line.contains(reason));
    if read || line.contains(HUSH) {
        found.push("a reason");
    }
    found
}

/// What kind of line it is, in JSON or in the form for people.
fn kind(line: &str) -> Option<&'static str> {
    ["call", "reaction", "order"].into_iter().find(|kind| {
        line.contains(&format!(r#""message":"{kind}""#)) || line.contains(&format!(" {kind} "))
    })
}

fn files(folder: &Path, wanted: impl Fn(&Path) -> bool + Copy, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            files(&path, wanted, found);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "it searches the logs of a whole run, so it comes after that"]
fn no_log_of_the_run_has_a_key_or_a_reason() {
    let folder = std::env::var_os(FOLDER).unwrap_or_default();
    assert!(
        !folder.is_empty(),
        "name the folder of the logs in {FOLDER}"
    );
    let mut logs = Vec::new();
    files(
        Path::new(&folder),
        |path| path.extension() == Some(OsStr::new("log")),
        &mut logs,
    );
    let mut findings = Vec::new();
    let mut seen: Vec<(String, &str)> = Vec::new();
    for path in logs {
        let bytes = std::fs::read(&path).expect("a log can be read");
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // The name without its numbers: which program.
        let program = name.rsplitn(3, '-').nth(2).unwrap_or(&name).to_owned();
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            for what in secrets(line) {
                findings.push(format!("{}:{}: {what}", path.display(), number + 1));
            }
            if let Some(kind) = kind(line) {
                let there = (program.clone(), kind);
                if !seen.contains(&there) {
                    seen.push(there);
                }
            }
        }
    }
    // A search of nothing finds nothing: every source must have said something.
    for (program, kind) in [
        ("inside", "call"),
        ("relet", "call"),
        ("relet", "reaction"),
        ("relet", "order"),
        ("relet-release", "call"),
        ("relet-reclaim", "call"),
        ("relet-stream", "reaction"),
        ("relet-terminate", "order"),
    ] {
        let told = seen.iter().any(|(of, what)| of == program && *what == kind);
        assert!(
            told,
            "no {kind:?} line of {program}: has the whole run left its logs here?"
        );
    }
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn the_search_finds_keys_and_reasons_and_nothing_else() {
    let key = testkit::fixtures::secret(3);
    for (line, expected) in [
        (format!("key={}", key.reveal()), "an API key"),
        (
            format!(r#"{{"a":"Bearer {}"}}"#, key.reveal()),
            "an API key",
        ),
        ("x vl_legacy-key-0001 y".to_owned(), "a legacy API key"),
        (format!("reason=\"{HUSH}: idle\""), "a reason"),
        (format!("statusReason: {}", READ_REASONS[1]), "a reason"),
    ] {
        assert_eq!(secrets(&line), [expected], "{line}");
    }
    let prefix: String = key.reveal().chars().take(40).collect();
    for line in [
        "or_…",
        "key_id=key-manager",
        "error_or_nothing_that_matters_whatever_it_says_here",
        "vl_short",
        &prefix,
        "",
    ] {
        assert_eq!(secrets(line), [""; 0], "{line}");
    }
    assert_eq!(
        kind(r#"{"message":"reaction","orders":1}"#),
        Some("reaction")
    );
    assert_eq!(
        kind("12:00:00.000 INFO  order        1.5 ms  confirmed"),
        Some("order")
    );
    assert_eq!(kind("a recall"), None);
}

/// Texts that stand before a reason in a test.
const BEFORE_A_REASON: [&str; 5] = [
    concat!("\"reas", "on\": \""),
    concat!("\"reas", "on\":\""),
    concat!("\\\"reas", "on\\\":\\\""),
    concat!("reas", "on = Some(\""),
    concat!("[\"reas", "on\"] = json!(\""),
];

/// Reasons in a text that the search would not find, by their lines.
fn loud(text: &str) -> Vec<usize> {
    let numbered = text.lines().enumerate();
    let loud = numbered.filter(|(_, line)| {
        BEFORE_A_REASON.iter().any(|before| {
            let mut reasons = line
                .match_indices(before)
                .map(|(at, _)| &line[at + before.len()..]);
            // Escapes stand for what is no reason at all.
            let found = |reason: &str| {
                reason.starts_with(HUSH) || READ_REASONS.iter().any(|read| reason.starts_with(read))
            };
            reasons.any(|reason| !found(reason) && !reason.starts_with('\\'))
        })
    });
    loud.map(|(index, _)| index + 1).collect()
}

#[test]
fn every_reason_that_a_test_gives_carries_the_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace");
    let mut sources = Vec::new();
    let is_source = |path: &Path| {
        let extension = path.extension().and_then(OsStr::to_str);
        matches!(extension, Some("rs" | "json"))
    };
    for folder in [
        "tests",
        "shared/testkit/src",
        "shared/app/tests",
        "infra/local/tests",
        "cli/tests",
    ] {
        files(&root.join(folder), is_source, &mut sources);
    }
    for entry in std::fs::read_dir(root.join("functions")).expect("there are functions") {
        let tests = entry.expect("a folder can be read").path().join("tests");
        if tests.is_dir() {
            files(&tests, is_source, &mut sources);
        }
    }
    assert!(sources.len() > 50, "not where the tests are");
    for path in sources {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        let lines = loud(&text);
        let here = path.display();
        assert!(
            lines.is_empty(),
            "{here}: begin the reasons of lines {lines:?} with {HUSH:?}, or name them as read"
        );
    }
    let spoken = format!("{}idle\"", BEFORE_A_REASON[0]);
    assert_eq!(loud(&format!("x\n{spoken}")), [2]);
    assert_eq!(loud(&spoken.replace("idle", "hush: idle")), [0; 0]);
}
