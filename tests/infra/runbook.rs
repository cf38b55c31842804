//! Each alarm has its page in the runbook, and each page is of an alarm.

use std::collections::BTreeSet;

use crate::alarms::names;
use crate::read;

/// What every page has.
const PARTS: [&str; 4] = [
    "**What it means.** ",
    "**What to look at.** ",
    "**What to do.** ",
    "**It is over when** ",
];

#[test]
fn every_alarm_has_a_page_that_tells_what_it_means_what_to_do_and_when_it_is_over() {
    let document = read("docs/runbook.md");
    let mut told = BTreeSet::new();
    for page in document.split("\n## ").skip(1) {
        let (title, text) = page.split_once('\n').unwrap();
        for name in title.split(", ") {
            assert!(told.insert(name.to_owned()), "{name} has two pages");
        }
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| text.find(part)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{title}: {places:?}"
        );
    }
    assert_eq!(told, names());
}
