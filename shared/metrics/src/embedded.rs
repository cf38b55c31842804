//! CloudWatch's embedded metric format: a line of JSON whose member `_aws` says which of the other
//! members are metrics. The service reads them out of the log, so writing one costs no call.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::registry::{Cell, Cells, seconds, word};
use crate::table::{DIMENSIONS_MAX, Metric, Unit};

/// Most values of one metric on a line: the format's bound.
const VALUES_MAX: usize = 100;

/// The metrics of a line, each with its value or its values.
type Members = BTreeMap<&'static str, (&'static Metric, String)>;

/// The lines: one for each set of dimension values, and more where one holds too many times.
pub(crate) fn lines(cells: &Cells, namespace: &str, now_ms: i64) -> String {
    let mut groups: BTreeMap<_, Vec<(&'static Metric, &Cell)>> = BTreeMap::new();
    for (place, (metric, cell)) in cells {
        let group = (metric.dimensions, place.values);
        groups.entry(group).or_default().push((metric, cell));
    }
    let mut out = String::new();
    for ((dimensions, values), group) in groups {
        let mut from = 0;
        loop {
            let members = members(&group, from);
            if members.is_empty() {
                break;
            }
            let head = (namespace, now_ms);
            line(&mut out, head, dimensions, values, &members);
            from = from.saturating_add(VALUES_MAX);
        }
    }
    out
}

/// What a group has for the line that begins with the time at this place. Numbers are on the first.
fn members(group: &[(&'static Metric, &Cell)], from: usize) -> Members {
    let each = group.iter().filter_map(|(metric, cell)| {
        let text = match cell {
            Cell::Number(_) if from > 0 => return None,
            Cell::Number(number) => match metric.unit {
                Unit::Count => number.to_string(),
                Unit::Seconds => seconds(*number),
            },
            Cell::Singles(all) => {
                let some = all.iter().skip(from).take(VALUES_MAX);
                let texts: Vec<String> = some.map(|us| seconds(*us)).collect();
                match texts.as_slice() {
                    [] => return None,
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(",")),
                }
            }
            // Kept where nobody takes them, and so never here.
            Cell::Buckets(_) => return None,
        };
        Some((metric.name, (*metric, text)))
    });
    each.collect()
}

fn line(
    out: &mut String,
    (namespace, now_ms): (&str, i64),
    dimensions: &[&str],
    values: [&str; DIMENSIONS_MAX],
    members: &Members,
) {
    let quoted: Vec<String> = dimensions.iter().map(|d| format!("\"{d}\"")).collect();
    let defined: Vec<String> = members
        .values()
        .map(|(metric, _)| {
            let unit = metric.unit.as_str();
            format!("{{\"Name\":\"{}\",\"Unit\":\"{unit}\"}}", metric.name)
        })
        .collect();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "{{\"_aws\":{{\"Timestamp\":{now_ms},\"CloudWatchMetrics\":[{{\
         \"Namespace\":\"{}\",\"Dimensions\":[[{}]],\"Metrics\":[{}]}}]}}",
        plain(namespace),
        quoted.join(","),
        defined.join(",")
    );
    for (dimension, value) in dimensions.iter().zip(values) {
        let _ = write!(out, ",\"{dimension}\":\"{}\"", word(value));
    }
    for (name, (_, value)) in members {
        let _ = write!(out, ",\"{name}\":{value}");
    }
    out.push_str("}\n");
}

/// Whether CloudWatch has such namespaces: 1 to 255 of `A-Z a-z 0-9 . _ - / # :`.
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.chars().all(of_namespace)
}

fn of_namespace(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-/#:".contains(c)
}

/// A namespace of such characters alone; nothing in it can end the text that it stands in.
fn plain(namespace: &str) -> String {
    let chars = namespace.chars();
    chars
        .map(|c| if of_namespace(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::Registry;
    use crate::table::{
        CALL_DURATION, CALLS, DRAINS_OPEN, DUE_LAG, Kind, STORE_RETRIES, STREAM_AGE, TABLE,
    };

    const NOW_MS: i64 = 1_790_000_000_123;
    const NAMESPACE: &str = "Relet/a";

    fn sound(line: &str) -> Value {
        let root = testkit::logs::embedded(line).unwrap();
        assert_eq!(root["_aws"]["Timestamp"], json!(NOW_MS));
        assert_eq!(root["_aws"]["CloudWatchMetrics"][0]["Namespace"], NAMESPACE);
        root
    }

    fn taken(registry: &Registry) -> Vec<Value> {
        let text = lines(&registry.take(), NAMESPACE, NOW_MS);
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(sound).collect()
    }

    fn embedded() -> Registry {
        let registry = Registry::new();
        registry.embed();
        registry
    }

    #[test]
    fn a_call_is_one_line_with_all_that_shares_its_dimensions() {
        let registry = embedded();
        let values = ["reclaim", "ReclaimUnits", "ok"];
        registry.add(CALLS.metric(), &values, 1);
        registry.observe(CALL_DURATION.metric(), &values, 3_120);
        let lines = taken(&registry);
        let expected = json!({
            "_aws": { "Timestamp": NOW_MS, "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["function", "operation", "outcome"]],
                "Metrics": [
                    { "Name": "call_duration", "Unit": "Seconds" },
                    { "Name": "calls", "Unit": "Count" },
                ],
            }] },
            "function": "reclaim", "operation": "ReclaimUnits", "outcome": "ok",
            "calls": 1, "call_duration": 0.00312,
        });
        assert_eq!(lines, [expected]);
        assert_eq!(taken(&registry), [json!(null); 0], "told once");
    }

    #[test]
    fn every_metric_of_the_table_makes_a_sound_line() {
        let registry = embedded();
        for metric in TABLE {
            let values = ["one", "two", "three"];
            let values = &values[..metric.dimensions.len()];
            match metric.kind {
                Kind::Counter => registry.add(metric, values, u64::MAX),
                Kind::Gauge => registry.set(metric, values, u64::MAX),
                Kind::Histogram => registry.observe(metric, values, u64::MAX),
            }
        }
        let lines = taken(&registry);
        for metric in TABLE {
            let there = lines.iter().filter(|line| line.get(metric.name).is_some());
            assert_eq!(there.count(), 1, "{}", metric.name);
        }
    }

    #[test]
    fn many_times_take_several_lines_and_numbers_are_told_once() {
        let registry = embedded();
        (0..250).for_each(|us| registry.observe(STREAM_AGE.metric(), &[], us * 1_000_000));
        registry.add(STORE_RETRIES.metric(), &[], 4);
        registry.set(DRAINS_OPEN.metric(), &[], 2);
        registry.set(DUE_LAG.metric(), &[], 1_500_000);
        let lines = taken(&registry);
        let sizes: Vec<usize> = lines
            .iter()
            .map(|line| line["stream_age"].as_array().unwrap().len())
            .collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!(lines[2]["stream_age"][49], json!(249.0));
        assert_eq!(lines[0]["store_retries"], 4);
        assert_eq!(lines[0]["drains_open"], 2);
        assert_eq!(lines[0]["due_lag"], json!(1.5));
        assert!(
            lines[1..]
                .iter()
                .all(|line| line.get("drains_open").is_none())
        );
    }

    #[test]
    fn a_namespace_cannot_end_its_text() {
        assert_eq!(plain("Relet/a-b.c"), "Relet/a-b.c");
        assert_eq!(plain("a\"b c\n"), "a_b_c_");
        let long = "a".repeat(255);
        assert!(is_namespace("Relet/a-b.c") && is_namespace(&long));
        for wrong in ["", "a b", "a\"b", "\u{e4}", &*(long + "a")] {
            assert!(!is_namespace(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_for_reading_is_not_taken() {
        let registry = Registry::new();
        registry.add(STORE_RETRIES.metric(), &[], 4);
        assert_eq!(taken(&registry), [json!(null); 0]);
        assert_eq!(registry.read(Cells::len), 1);
    }
}
