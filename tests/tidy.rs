//! The tree is tidy: what every tracked file must be, rule by rule, each with what to do instead.
//!
//! The lengths of functions are held by clippy (`too_many_lines`, 70), which knows where one ends.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use relet_tests::{root, tracked};

/// Most columns of a line of Rust, as `rustfmt.toml` has it.
const COLUMNS_MAX: usize = 100;
/// Most lines of a file of Rust.
const LINES_MAX: usize = 600;

/// Words that no file may have, each with what to do instead. They are put together here so that
/// this file does not have them either.
const BANNED_ANYWHERE: [(&str, &str); 3] = [
    (
        concat!("TO", "DO"),
        "do it now, or file it where work is planned",
    ),
    (concat!("FIX", "ME"), "mend it now"),
    (
        concat!("X", "XX"),
        "say in a sentence what is odd, and why it stays",
    ),
];

/// Texts that no file of Rust may have, each with what to do instead.
const BANNED_IN_RUST: [(&str, &str); 5] = [
    (concat!("to", "do!("), "write the code"),
    (
        concat!("unimpl", "emented!("),
        "write the code, or return an error",
    ),
    (concat!("db", "g!("), "use tracing, or take it out"),
    (concat!("#[al", "low("), "#[expect(lint, reason = \"…\")]"),
    (concat!("#![al", "low("), "#![expect(lint, reason = \"…\")]"),
];

/// Texts that shipped code may not have outside its tests.
const BANNED_IN_SHIPPED: [(&str, &str); 2] = [
    (
        concat!(".unw", "rap()"),
        "`?`, `let … else`, or a default that is right",
    ),
    (
        concat!(".exp", "ect(\""),
        "`?`, `let … else`, or a default that is right",
    ),
];

/// Folders of one machine.
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

/// Hosts of package registries and their mirrors: which one serves a build is the machine's affair.
const REGISTRY_HOSTS: [&str; 6] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("registry.", "npmjs"),
    concat!("pypi", ".org"),
    concat!("artif", "actory"),
    concat!("proxy.golang", ".org"),
];

/// Where every package of the lock file comes from.
const LOCK_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// Something untidy: where, and what to do.
type Finding = String;

/// A file of Rust opens with what it is about.
fn opening(text: &str) -> Option<Finding> {
    let opens = text.starts_with("//!") || text.starts_with("#![doc = include_str!(\"");
    (!opens).then(|| "1: open the file with `//!` and what it is about".to_owned())
}

fn lengths(text: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = numbered(text)
        .filter(|(_, line)| line.chars().count() > COLUMNS_MAX)
        .map(|(number, _)| format!("{number}: over {COLUMNS_MAX} columns; break the line"))
        .collect();
    if text.lines().count() > LINES_MAX {
        found.push(format!("over {LINES_MAX} lines; split the file by subject"));
    }
    found
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Whether `word` stands in `line` by itself, not inside a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !part(before) && !part(after)
    })
}

fn leftovers(text: &str) -> Vec<Finding> {
    let each = numbered(text).flat_map(|(number, line)| {
        let banned = BANNED_ANYWHERE
            .iter()
            .filter(|(word, _)| has_word(line, word));
        banned.map(move |(word, instead)| format!("{number}: `{word}`: {instead}"))
    });
    each.collect()
}

fn rust_leftovers(text: &str) -> Vec<Finding> {
    texts(numbered(text), &BANNED_IN_RUST)
}

/// Looks at code outside tests: up to the test module, comments left out.
fn shipped_leftovers(text: &str) -> Vec<Finding> {
    let code = numbered(text)
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"));
    texts(code, &BANNED_IN_SHIPPED)
}

fn texts<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    banned: &[(&str, &str)],
) -> Vec<Finding> {
    let each = lines.flat_map(|(number, line)| {
        let hits = banned.iter().filter(move |(text, _)| line.contains(text));
        hits.map(move |(text, instead)| format!("{number}: `{text}`: {instead}"))
    });
    each.collect()
}

/// Paths and hosts that mean something on one machine alone.
fn machine_traces(text: &str) -> Vec<Finding> {
    let rooted = |line: &str, path: &str| {
        line.match_indices(path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}'))
        })
    };
    let each = numbered(text).flat_map(|(number, line)| {
        let paths = MACHINE_PATHS.iter().filter(move |path| rooted(line, path));
        let hosts = REGISTRY_HOSTS.iter().filter(|host| line.contains(*host));
        paths
            .chain(hosts)
            .map(move |trace| format!("{number}: `{trace}` is of one machine"))
    });
    each.collect()
}

fn control_characters(text: &str) -> Vec<Finding> {
    let odd = |line: &str| line.contains(|c: char| c.is_control());
    numbered(text)
        .filter(|(_, line)| odd(line))
        .map(|(number, _)| format!("{number}: a control character; take it out or escape it"))
        .chain(
            text.contains('\r')
                .then(|| "ends lines with CR; use LF alone".to_owned()),
        )
        .collect()
}

/// Folders with a manifest and no README.
fn without_readme(files: &BTreeSet<PathBuf>) -> Vec<Finding> {
    files
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .map(|path| path.with_file_name("README.md"))
        .filter(|readme| !files.contains(readme))
        .map(|readme| format!("{}: say what the crate is for", readme.display()))
        .collect()
}

fn lock_sources(lock: &str) -> Vec<Finding> {
    numbered(lock)
        .filter_map(|(number, line)| Some((number, line.strip_prefix("source = ")?)))
        .filter(|(_, source)| source.trim_matches('"') != LOCK_SOURCE)
        .map(|(number, source)| format!("{number}: {source}: only the public registry"))
        .collect()
}

/// Whether a file of Rust is code that is deployed or run for users.
fn is_shipped(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let product = ["shared/", "functions/", "infra/local/", "cli/"]
        .iter()
        .any(|top| text.starts_with(top));
    let test = text.starts_with("shared/testkit/")
        || text.contains("/tests/")
        || path.file_name().is_some_and(|name| name == "tests.rs");
    product && !test
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "Cargo.lock")
}

/// Runs a rule over the text of all tracked files that `wanted` takes.
fn findings(wanted: impl Fn(&Path) -> bool, rule: impl Fn(&str) -> Vec<Finding>) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tracked().into_iter().filter(|path| wanted(path)) {
        let bytes = std::fs::read(root().join(&path)).expect("a tracked file can be read");
        let here = path.display();
        match String::from_utf8(bytes) {
            Ok(text) => found.extend(rule(&text).into_iter().map(|f| format!("{here}:{f}"))),
            Err(_) => found.push(format!("{here}: is not UTF-8; keep binaries out")),
        }
    }
    found
}

/// Fails with all findings, one a line.
fn assert_tidy(found: &[Finding]) {
    assert!(
        found.is_empty(),
        "{} findings:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_file_says_what_it_is_about() {
    assert_tidy(&findings(is_rust, |text| {
        opening(text).into_iter().collect()
    }));
    assert_eq!(opening("//! About.\nfn f() {}"), None);
    assert_eq!(opening("#![doc = include_str!(\"../README.md\")]\n"), None);
    for bad in ["", "fn f() {}", "// About.", "/// About.", "\n//! About."] {
        assert!(opening(bad).is_some(), "{bad:?}");
    }
}

#[test]
fn lines_and_files_are_short() {
    assert_tidy(&findings(is_rust, lengths));
    let wide = "ü".repeat(COLUMNS_MAX);
    assert_eq!(lengths(&format!("{wide}\n{wide}")), [""; 0]);
    assert_eq!(lengths(&format!("{wide}x\n{wide}")).len(), 1);
    assert_eq!(lengths(&"\n".repeat(LINES_MAX)), [""; 0]);
    assert_eq!(lengths(&"\n".repeat(LINES_MAX + 1)).len(), 1);
}

#[test]
fn nothing_is_left_over() {
    assert_tidy(&findings(|path| !is_lock(path), leftovers));
    assert_tidy(&findings(is_rust, rust_leftovers));
    assert_tidy(&findings(
        |path| is_rust(path) && is_shipped(path),
        shipped_leftovers,
    ));
    for (word, _) in BANNED_ANYWHERE {
        assert_eq!(
            leftovers(&format!("fine\n// {word}: later")).len(),
            1,
            "{word}"
        );
        assert_eq!(
            leftovers(&format!("MY_{word} and {word}S")),
            [""; 0],
            "{word}"
        );
    }
    for (text, _) in BANNED_IN_RUST {
        assert_eq!(
            rust_leftovers(&format!("fn f() {{ {text}) }}")).len(),
            1,
            "{text}"
        );
    }
    for (text, _) in BANNED_IN_SHIPPED {
        let code = format!("fn f() {{ x{text} }}");
        assert_eq!(shipped_leftovers(&code).len(), 1, "{text}");
        let tested = format!("/// x{text}\n#[cfg(test)]\nmod tests {{ {code} }}");
        assert_eq!(shipped_leftovers(&tested), [""; 0], "{text}");
    }
    let shipped = |path: &str| is_shipped(Path::new(path));
    assert!(shipped("shared/app/src/lib.rs") && shipped("functions/end/src/main.rs"));
    assert!(!shipped("shared/testkit/src/lib.rs") && !shipped("tests/tidy.rs"));
    assert!(!shipped("shared/app/tests/flow.rs") && !shipped("shared/app/src/tests.rs"));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    assert_tidy(&findings(|_| true, machine_traces));
    for path in MACHINE_PATHS {
        assert_eq!(machine_traces(&format!("see {path}x")).len(), 1, "{path}");
        assert_eq!(machine_traces(&format!("\"{path}x\"")).len(), 1, "{path}");
        assert_eq!(machine_traces(&format!("target{path}x")), [""; 0], "{path}");
    }
    for host in REGISTRY_HOSTS {
        assert_eq!(
            machine_traces(&format!("https://{host}/x")).len(),
            1,
            "{host}"
        );
    }
}

#[test]
fn no_file_has_control_characters() {
    assert_tidy(&findings(|_| true, control_characters));
    assert_eq!(control_characters("fine ü …\nfine\n"), [""; 0]);
    for bad in ["a\u{7}b", "a\tb", "a\u{1b}[1m", "a\u{0}", "\u{85}"] {
        assert_eq!(control_characters(bad).len(), 1, "{bad:?}");
    }
    assert!(!control_characters("a\r\nb\r\n").is_empty());
}

#[test]
fn every_crate_has_a_readme() {
    assert_tidy(&without_readme(&tracked()));
    let files = |names: &[&str]| -> BTreeSet<PathBuf> { names.iter().map(PathBuf::from).collect() };
    assert_eq!(
        without_readme(&files(&["a/Cargo.toml", "a/README.md", "b/x.rs"])),
        [""; 0]
    );
    assert_eq!(
        without_readme(&files(&["a/Cargo.toml", "README.md"])).len(),
        1
    );
}

#[test]
fn the_lock_file_is_tracked_and_names_the_public_registry_alone() {
    assert!(
        tracked().contains(Path::new("Cargo.lock")),
        "commit Cargo.lock"
    );
    assert_tidy(&findings(is_lock, lock_sources));
    assert_eq!(
        lock_sources(&format!("source = \"{LOCK_SOURCE}\"\n")),
        [""; 0]
    );
    assert_eq!(
        lock_sources("source = \"registry+https://mirror.example/index\"").len(),
        1
    );
    assert_eq!(
        lock_sources("source = \"git+https://git.example/x\"").len(),
        1
    );
}
