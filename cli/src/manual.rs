//! Manual pages, one for each command, made from the grammar.

use std::path::Path;

use clap::Command;

use crate::cli::grammar;
use crate::failure::Failure;

/// The commands with the names of their pages: `orl`, `orl-nodes`, `orl-nodes-get`.
#[must_use]
pub fn pages() -> Vec<(String, Command)> {
    let mut root = grammar();
    root.build();
    let mut found = Vec::new();
    collect(&root, &[], &mut found);
    found
}

fn collect(command: &Command, above: &[String], found: &mut Vec<(String, Command)>) {
    let mut path = above.to_vec();
    path.push(command.get_name().to_owned());
    found.push((path.join("-"), command.clone()));
    let visible = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    for below in visible {
        collect(below, &path, found);
    }
}

/// The page of a command.
///
/// # Errors
/// If it cannot be made.
pub fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    let made = clap_mangen::Man::new(command.clone()).render(&mut page);
    made.map_err(|error| Failure::local(format!("cannot make the page: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Writes all pages to a folder; their names.
///
/// # Errors
/// If the folder or a page cannot be written.
pub fn write(dir: &Path) -> Result<Vec<String>, Failure> {
    let failed = |error| Failure::local(format!("cannot write to {}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut names = Vec::new();
    for (name, command) in pages() {
        let file = format!("{name}.1");
        std::fs::write(dir.join(&file), page(&command)?).map_err(failed)?;
        names.push(file);
    }
    Ok(names)
}
