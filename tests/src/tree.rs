//! The tree of the workspace: where it is, and what is tracked in it.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
///
/// # Panics
/// Never: this crate is in a folder of it.
#[must_use]
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .expect("this crate is in a folder of the workspace")
}

/// The tracked files, relative to the root; all files where there is no repository.
///
/// # Panics
/// If a folder cannot be read: then no test of the tree can run.
#[must_use]
pub fn tracked() -> BTreeSet<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output();
    let listed = listed.ok().filter(|output| output.status.success());
    let Some(output) = listed else {
        let mut found = BTreeSet::new();
        walk(root(), Path::new(""), &mut found);
        return found;
    };
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let paths = names.split_terminator('\0').map(PathBuf::from);
    // A file taken away and not yet committed as such is listed too.
    paths.filter(|path| root().join(path).is_file()).collect()
}

fn walk(root: &Path, inside: &Path, found: &mut BTreeSet<PathBuf>) {
    let entries = std::fs::read_dir(root.join(inside)).expect("a folder can be read");
    for entry in entries {
        let name = entry.expect("a folder can be read").file_name();
        let path = inside.join(&name);
        let skipped = ["target", ".git", ".relet"]
            .iter()
            .any(|skipped| name == *skipped);
        if root.join(&path).is_dir() && !skipped {
            walk(root, &path, found);
        } else if root.join(&path).is_file() {
            found.insert(path);
        }
    }
}
