//! Each alarm has its page in the runbook, and each page is of an alarm.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::alarms::names;
use crate::{read, template};

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

#[test]
fn the_page_on_deploying_names_every_parameter_with_its_default_and_counts_the_alarms() {
    let document = read("infra/README.md");
    assert!(document.contains(&format!("{} alarms", names().len())));
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let mut told = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let parameters: Vec<&str> = cells[1].split('`').skip(1).step_by(2).collect();
        let defaults: Vec<&str> = cells[2].split(", ").collect();
        for (place, name) in parameters.iter().enumerate() {
            let default = defaults.get(place).or(defaults.first()).copied();
            told.insert(
                (*name).to_owned(),
                default.unwrap_or_default().replace('`', ""),
            );
        }
    }
    let template = template();
    let parameters = template["Parameters"].as_object().unwrap();
    let expected = parameters.iter().map(|(name, parameter)| {
        let default = match &parameter["Default"] {
            Value::Null => String::new(),
            Value::String(text) if text.is_empty() => "none".to_owned(),
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        (name.clone(), default)
    });
    assert_eq!(told, expected.collect());
}
