//! Links between documents lead somewhere: every relative link of every tracked page of Markdown
//! names a file that is there, and a heading that it has.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use relet_tests::{root, tracked};

/// The tracked pages of Markdown with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let paths = tracked().into_iter();
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    };
    pages.map(read).collect()
}

/// The lines of a page outside of fenced blocks, from 1.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut out = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            out.push((index + 1, line));
        }
    }
    out
}

/// A line without what stands between back-ticks.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let kept = parts.filter(|(index, _)| index % 2 == 0);
    kept.map(|(_, part)| part).collect::<Vec<_>>().join("`")
}

/// What the links and pictures of a page lead to, with their lines.
fn targets(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(page) {
        let line = without_code(line);
        for (open, close) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            for (at, _) in line.match_indices(open) {
                let behind = &line[at + open.len()..];
                let target = behind.split(close).next().unwrap();
                found.push((number, target.trim().to_owned()));
            }
        }
    }
    found
}

/// The anchors of a page's headings, as they are made of their words.
fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = Vec::new();
    for (_, line) in prose(page) {
        let words = line.trim_start_matches('#');
        let level = line.len() - words.len();
        if !(1..=6).contains(&level) || !words.starts_with(' ') {
            continue;
        }
        let kept = words.trim().to_lowercase();
        let slug: String = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let times = seen.entry(slug.clone()).or_default();
        out.push(match *times {
            0 => slug,
            times => format!("{slug}-{times}"),
        });
        *times += 1;
    }
    out
}

/// A path without `.` and `..`; `None` if it leads out of the tree.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir if out.pop() => {}
            _ => return None,
        }
    }
    Some(out)
}

/// What is wrong with a link of a page; `None` if nothing is.
fn wrong(page: &Path, target: &str, text_of: impl Fn(&Path) -> Option<String>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Some(format!(
            "`{target}` leads to another machine; link what is in the tree"
        ));
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let to = match path {
        "" => page.to_owned(),
        path => match resolved(&page.with_file_name("").join(path)) {
            Some(to) => to,
            None => return Some(format!("`{target}` leads out of the tree")),
        },
    };
    let Some(text) = text_of(&to) else {
        return Some(format!("`{target}` leads to nothing"));
    };
    let anchor = anchor?;
    let found = anchors(&text);
    (!found.iter().any(|known| known == anchor)).then(|| {
        format!(
            "`{target}`: no such heading; there are {}",
            found.join(", ")
        )
    })
}

/// The text of a page, empty for a folder or another file that is there.
fn text_of(path: &Path) -> Option<String> {
    let path = root().join(path);
    match path.extension().is_some_and(|extension| extension == "md") {
        true => std::fs::read_to_string(path).ok(),
        false => path.exists().then(String::new),
    }
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let mut found = Vec::new();
    let mut links = 0;
    for (page, text) in pages() {
        for (line, target) in targets(&text) {
            links += 1;
            let fault = wrong(&page, &target, text_of);
            found.extend(fault.map(|fault| format!("{}:{line}: {fault}", page.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(links > 40, "not where the links are: {links}");
}

#[test]
fn links_are_found_and_judged() {
    let page = "# A `b` c, d\n[x](docs/y.md#two-words) ![p](p.svg)\n```\n[no](no)\n```\n\
                ## Two words\n## Two words\n`[no](no)` <img src=\"q.svg\">\n";
    let found: Vec<String> = targets(page)
        .into_iter()
        .map(|(_, target)| target)
        .collect();
    assert_eq!(found, ["docs/y.md#two-words", "p.svg", "q.svg"]);
    assert_eq!(anchors(page), ["a-b-c-d", "two-words", "two-words-1"]);
    let tree = |path: &Path| match path.to_str().unwrap() {
        "docs/y.md" => Some(page.to_owned()),
        "p.svg" => Some(String::new()),
        _ => None,
    };
    let judged = |from: &str, target: &str| wrong(Path::new(from), target, tree);
    for fine in ["docs/y.md", "docs/y.md#two-words-1", "./p.svg"] {
        assert_eq!(judged("README.md", fine), None, "{fine}");
    }
    assert_eq!(judged("docs/y.md", "#a-b-c-d"), None);
    assert_eq!(judged("docs/y.md", "../p.svg"), None);
    for bad in ["y.md", "docs/y.md#three", "../p.svg", "https://host/x"] {
        assert!(judged("README.md", bad).is_some(), "{bad}");
    }
}
