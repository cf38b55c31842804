//! Every command of the README and of `docs/` does what the page says.
//!
//! Each `sh` block of a page is run by a shell, in order, in a scratch folder, beside a platform of
//! its own. The `text` or `json` block right behind it is what it prints, on both of its streams;
//! see `compare.rs` for what may differ. `sh exit=4` says that the commands end with that code.
//! With `RELET_WRITE_PAGES=1` a page that shows something else is rewritten with what was printed.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod compare;
mod page;
mod run;

use std::path::PathBuf;
use std::process::Command;

use page::Block;
use relet_tests::root;
use run::Binaries;

/// Blocks of commands that are shown and not run: the page, the first line, and why.
const SHOWN_ONLY: [(&str, &str, &str); 5] = [
    (
        "docs/functions.md",
        "tests/deploy/run.sh           # builds, deploys, and at the end measures; by itself:",
        "`.ci/run` runs it; it takes minutes",
    ),
    (
        "docs/iam.md",
        "RELET_REWRITE=1 cargo test -p relet-tests --test infra",
        "writes into the tree; the same test compares without it",
    ),
    (
        "docs/openapi.md",
        "pip install openapi-python-client==0.29.1",
        "downloads; `tests/api/run.py` does the same",
    ),
    (
        "docs/openapi.md",
        "RELET_WRITE_DOCS=1 cargo test -p relet-tests --test openapi",
        "writes into the tree; the same test compares without it",
    ),
    (
        "docs/openapi.md",
        "tests/api/run.py                              # about four minutes; what it installs goes \
         to target/api",
        "`.ci/run` runs it",
    ),
];

/// The README and the pages of `docs/`, by their paths.
fn pages() -> Vec<(String, String)> {
    let listed = std::fs::read_dir(root().join("docs")).unwrap();
    let names = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    paths.push("README.md".to_owned());
    paths.sort();
    let each = paths.into_iter();
    each.map(|path| {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    })
    .collect()
}

/// Builds the commands, and says where they are.
///
/// They are built as `cargo test` builds them, for the tests named `platform` that run them too:
/// with other features the same crates would be compiled once more.
fn binaries() -> Binaries {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--locked", "--no-run", "--test", "platform"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build the commands: {said}");
    let messages = cargo_metadata::Message::parse_stream(output.stdout.as_slice());
    let made: Vec<PathBuf> = messages
        .filter_map(|message| match message.unwrap() {
            cargo_metadata::Message::CompilerArtifact(made) if made.target.is_bin() => {
                Some(made.executable?.into_std_path_buf())
            }
            _ => None,
        })
        .collect();
    let of = |name: &str| made.iter().find(|path| path.ends_with(name));
    let (relet, orl) = (of("relet").unwrap(), of("orl").unwrap());
    assert_eq!(relet.parent(), orl.parent());
    Binaries(relet.parent().unwrap().to_owned())
}

/// What is wrong with a page; empty if nothing is.
fn findings(path: &str, text: &str, binaries: &Binaries) -> Vec<String> {
    let steps = page::steps(text);
    let folder = tempfile::tempdir().unwrap();
    let outcome = run::run(&steps, binaries, folder.path());
    let mut found = Vec::new();
    let ended = outcome.printed.len() - usize::from(outcome.failure.is_some());
    let shown = steps.iter().zip(&outcome.printed[..ended]);
    let shown = shown.filter_map(|(step, printed)| Some((step.shown.as_ref()?, printed)));
    let shown: Vec<(&Block, &String)> = shown.collect();
    for (block, printed) in &shown {
        if !compare::agree(&block.text, printed) {
            let (line, text) = (block.line, &block.text);
            found.push(format!(
                "{path}:{line}: shows\n{text}but it prints\n{printed}"
            ));
        }
    }
    if std::env::var_os("RELET_WRITE_PAGES").is_some() && !found.is_empty() {
        std::fs::write(root().join(path), rewritten(text, &shown)).unwrap();
    }
    if let Some(failure) = &outcome.failure {
        let at = outcome.printed.len().saturating_sub(1);
        let line = steps.get(at).map_or(0, |step| step.commands.line);
        let printed = outcome.printed.last().map_or("", String::as_str);
        found.push(format!(
            "{path}:{line}: {failure}, having printed\n{printed}"
        ));
    }
    found
}

/// The page with what was printed. All that it shows is of one run then, so that an id is the same
/// wherever it comes again; what agrees and leaves something out stays as it is.
fn rewritten(page: &str, shown: &[(&Block, &String)]) -> String {
    let mut page = page.to_owned();
    // From the end, so that the lines of those before stay where they are.
    for (block, printed) in shown.iter().rev() {
        if !block.text.contains('…') || !compare::agree(&block.text, printed) {
            page = page::replaced(&page, block, &compare::presentable(printed));
        }
    }
    page
}

#[test]
fn every_command_of_every_page_does_what_the_page_says() {
    let binaries = binaries();
    let pages = pages();
    let with_commands = pages
        .iter()
        .filter(|(_, text)| !page::steps(text).is_empty());
    let found: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = with_commands
            .map(|(path, text)| scope.spawn(|| findings(path, text, &binaries)))
            .collect();
        let ended = running.into_iter().flat_map(|page| page.join().unwrap());
        ended.collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn commands_that_are_not_run_are_listed_with_a_reason_and_nothing_else_is() {
    let mut there: Vec<(String, String)> = Vec::new();
    for (path, text) in pages() {
        let blocks = page::shown_only(&text);
        there.extend(
            blocks
                .iter()
                .map(|block| (path.clone(), block.first_line().to_owned())),
        );
    }
    there.sort();
    let listed = SHOWN_ONLY.map(|(page, line, _)| (page.to_owned(), line.to_owned()));
    let mut listed = listed.to_vec();
    listed.sort();
    assert_eq!(
        there, listed,
        "fence what can be run as `sh`; list the rest with its reason"
    );
    assert!(SHOWN_ONLY.iter().all(|(_, _, reason)| !reason.is_empty()));
}

#[test]
fn pages_are_read_block_by_block() {
    let page = "a\n```sh\none\ntwo\n```\n\n```text\nout\n```\nb\n```sh exit=4\nthree\n```\n\
                words\n```text\nno output of it\n```\n```console\nfour\n```\n";
    let steps = page::steps(page);
    let commands: Vec<(&str, i32)> = steps
        .iter()
        .map(|step| (step.commands.text.as_str(), step.exit))
        .collect();
    assert_eq!(commands, [("one\ntwo\n", 0), ("three\n", 4)]);
    let shown = steps[0].shown.as_ref().unwrap();
    assert_eq!((shown.text.as_str(), &steps[1].shown), ("out\n", &None));
    assert_eq!(page::shown_only(page)[0].first_line(), "four");
    let replaced = page::replaced(page, shown, "new\nlines\n");
    assert_eq!(replaced, page.replace("out\n", "new\nlines\n"));
}
