//! Prometheus text, version 0.0.4: for each metric its help, its type and its samples.

use std::fmt::Write as _;

use crate::registry::{BOUNDS_US, Buckets, Cell, Cells, seconds, word};
use crate::table::{DIMENSIONS_MAX, Kind, Metric, TABLE, Unit};

/// The whole table. A metric without dimensions that adds up is there from the beginning, as 0: a
/// first event is a step up, not a line out of nowhere.
pub(crate) fn text(cells: &Cells) -> String {
    let mut out = String::new();
    for metric in TABLE {
        let name = metric.prometheus_name();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {}", metric.help);
        let _ = writeln!(out, "# TYPE {name} {}", metric.kind.as_str());
        let mut any = false;
        let own = cells.iter().filter(|(_, (of, _))| of.name == metric.name);
        for (place, (_, cell)) in own {
            any = true;
            sample(&mut out, metric, &name, place.values, cell);
        }
        let zero = match metric.kind {
            Kind::Counter => Cell::Number(0),
            Kind::Histogram => Cell::Buckets(Box::default()),
            Kind::Gauge => continue,
        };
        if !any && metric.dimensions.is_empty() {
            sample(&mut out, metric, &name, [""; DIMENSIONS_MAX], &zero);
        }
    }
    out
}

fn sample(
    out: &mut String,
    metric: &Metric,
    name: &str,
    values: [&str; DIMENSIONS_MAX],
    cell: &Cell,
) {
    let labels: Vec<String> = metric
        .dimensions
        .iter()
        .zip(values)
        .map(|(dimension, value)| format!("{dimension}=\"{}\"", word(value)))
        .collect();
    match cell {
        Cell::Number(number) => {
            let value = match metric.unit {
                Unit::Count => number.to_string(),
                Unit::Seconds => seconds(*number),
            };
            let _ = writeln!(out, "{name}{} {value}", braced(&labels, None));
        }
        Cell::Buckets(buckets) => distribution(out, name, &labels, buckets),
        // Kept where nobody reads them, and so never here.
        Cell::Singles(_) => {}
    }
}

fn distribution(out: &mut String, name: &str, labels: &[String], buckets: &Buckets) {
    let mut so_far = 0_u64;
    let bounds = BOUNDS_US.iter().map(|us| trimmed(*us));
    let bounds = bounds.chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(buckets.counts) {
        so_far = so_far.saturating_add(count);
        let labels = braced(labels, Some(&bound));
        let _ = writeln!(out, "{name}_bucket{labels} {so_far}");
    }
    let labels = braced(labels, None);
    let _ = writeln!(out, "{name}_sum{labels} {}", seconds(buckets.sum_us));
    let _ = writeln!(out, "{name}_count{labels} {so_far}");
}

/// The labels in braces, with the bound of a bucket where there is one.
fn braced(labels: &[String], bound: Option<&str>) -> String {
    let bound = bound.map(|bound| format!("le=\"{bound}\""));
    let all: Vec<&str> = labels.iter().chain(&bound).map(String::as_str).collect();
    match all.as_slice() {
        [] => String::new(),
        all => format!("{{{}}}", all.join(",")),
    }
}

fn trimmed(us: u64) -> String {
    let text = seconds(us);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use crate::table::{CALL_DURATION, CALLS, DRAINS_OPEN, DUE_LAG, EVICTIONS};

    /// A sample read back: name, labels and value.
    type Sample = (String, Vec<(String, String)>, f64);

    /// Reads the text back by the rules of the format.
    fn parsed(text: &str) -> Vec<Sample> {
        let mut samples = Vec::new();
        let (mut helped, mut typed) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                helped = rest.split_once(' ').unwrap().0.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, helped, "its help stands before its type");
                assert!(["counter", "gauge", "histogram"].contains(&kind));
                typed = name.to_owned();
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                assert!(name.starts_with(&typed), "{name} under {typed}");
                let labels = labels.strip_suffix('}').unwrap();
                let labels = labels.split_terminator(',').map(|label| {
                    let (name, value) = label.split_once('=').unwrap();
                    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
                    (name.to_owned(), value.unwrap().to_owned())
                });
                samples.push((name.to_owned(), labels.collect(), value.parse().unwrap()));
            }
        }
        assert!(text.ends_with('\n'));
        samples
    }

    fn value(samples: &[Sample], name: &str) -> Option<f64> {
        let mut found = samples.iter().filter(|(of, ..)| of == name);
        found.next().map(|(.., value)| *value)
    }

    #[test]
    fn every_metric_has_its_help_and_type_before_anything_happened() {
        let text = Registry::new().read(text);
        let samples = parsed(&text);
        for metric in TABLE {
            let name = metric.prometheus_name();
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
            let kind = metric.kind.as_str();
            assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        }
        assert_eq!(value(&samples, "relet_evictions_total"), Some(0.0));
        assert_eq!(
            value(&samples, "relet_drains_open"),
            None,
            "nobody looked yet"
        );
    }

    #[test]
    fn what_was_counted_is_read_back() {
        let registry = Registry::new();
        let values = ["reclaim", "ReclaimUnits", "ok"];
        registry.add(CALLS.metric(), &values, 2);
        for us in [900, 3_000, 700_000_000] {
            registry.observe(CALL_DURATION.metric(), &values, us);
        }
        registry.add(EVICTIONS.metric(), &[], 3);
        registry.set(DRAINS_OPEN.metric(), &[], 1);
        registry.set(DUE_LAG.metric(), &[], 2_250_000);
        let samples = parsed(&registry.read(text));
        assert_eq!(value(&samples, "relet_calls_total"), Some(2.0));
        assert_eq!(value(&samples, "relet_evictions_total"), Some(3.0));
        assert_eq!(value(&samples, "relet_drains_open"), Some(1.0));
        assert_eq!(value(&samples, "relet_due_lag_seconds"), Some(2.25));
        assert_eq!(
            value(&samples, "relet_call_duration_seconds_count"),
            Some(3.0)
        );
        assert_eq!(
            value(&samples, "relet_call_duration_seconds_sum"),
            Some(700.0039)
        );
        let buckets: Vec<(String, f64)> = samples
            .iter()
            .filter(|(name, ..)| name == "relet_call_duration_seconds_bucket")
            .map(|(_, labels, value)| (labels.last().unwrap().1.clone(), *value))
            .collect();
        assert_eq!(buckets.len(), BOUNDS_US.len() + 1);
        assert_eq!(buckets[0], ("0.001".to_owned(), 1.0));
        assert_eq!(buckets[2], ("0.005".to_owned(), 2.0));
        assert_eq!(buckets[buckets.len() - 2], ("600".to_owned(), 2.0));
        assert_eq!(buckets[buckets.len() - 1], ("+Inf".to_owned(), 3.0));
        let labels = |name: &str| {
            samples
                .iter()
                .find(|(of, ..)| of == name)
                .unwrap()
                .1
                .clone()
        };
        let pairs = [
            ("function", "reclaim"),
            ("operation", "ReclaimUnits"),
            ("outcome", "ok"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(labels("relet_calls_total"), pairs);
    }
}
