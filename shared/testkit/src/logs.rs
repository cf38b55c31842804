//! Logs of a test run, kept for the search that ends it: nothing in them may be secret.
//!
//! With `RELET_TEST_LOG_DIR` set to a folder, what processes say that tests start, and what code
//! says that runs inside a test, goes there as well, one file for each. Without it nothing is kept.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

/// The variable with the folder.
pub const FOLDER: &str = "RELET_TEST_LOG_DIR";

/// A word that every reason carries which a test gives: what must be in no log. Tests that need a
/// reason of exactly their own making go without.
pub const HUSH: &str = "hush";

/// A fresh file for the log of something of this name; `None` where logs are not kept.
///
/// # Errors
/// If the folder is named and no file can be made in it.
pub fn file(name: &str) -> io::Result<Option<File>> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let path = PathBuf::from(folder).join(format!("{name}-{process}-{number}.log"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map(Some)
}

/// From now on keeps what code says that runs inside this process, if logs are kept; a further call
/// changes nothing.
#[cfg(any(feature = "engine", feature = "http"))]
pub fn collect() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let made = file("inside");
        let made = made.unwrap_or_else(|error| unreachable!("{FOLDER}: no file: {error}"));
        let Some(file) = made else { return };
        let format = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(std::sync::Mutex::new(file));
        // A test with a subscriber of its own keeps that.
        let _ = format.try_init();
    });
}

/// A line of CloudWatch's embedded metric format, read back and checked against its specification;
/// `None` for a line that is none.
///
/// # Panics
/// If the service would not take it as it is meant.
#[must_use]
pub fn embedded(line: &str) -> Option<Value> {
    let root: Value = serde_json::from_str(line).ok()?;
    let metadata = root.get("_aws")?;
    assert!(
        line.len() < 256 * 1024,
        "longer than an event of the log may be"
    );
    // The year 2001 in milliseconds: any later instant in seconds is less.
    let at_ms = metadata["Timestamp"].as_i64();
    assert!(
        at_ms.is_some_and(|ms| ms > 1_000_000_000_000),
        "milliseconds: {line}"
    );
    assert_eq!(members(metadata), 2, "no further member is allowed: {line}");
    for directive in list(&metadata["CloudWatchMetrics"], 1..=100) {
        assert_eq!(
            members(directive),
            3,
            "no further member is allowed: {line}"
        );
        assert!(
            directive["Namespace"]
                .as_str()
                .is_some_and(|name| !name.is_empty())
        );
        for dimension in list(&directive["Dimensions"], 1..=30) {
            for name in list(dimension, 0..=30) {
                let value = member(&root, name).as_str();
                assert!(
                    value.is_some_and(|text| (1..=1_024).contains(&text.len())),
                    "{line}"
                );
            }
        }
        for metric in list(&directive["Metrics"], 1..=100) {
            let unit = metric["Unit"].as_str();
            assert!(
                unit.is_some_and(|unit| ["Count", "Seconds"].contains(&unit)),
                "{line}"
            );
            match member(&root, &metric["Name"]) {
                Value::Number(_) => {}
                values => assert!(list(values, 1..=100).iter().all(Value::is_number), "{line}"),
            }
        }
    }
    Some(root)
}

fn members(object: &Value) -> usize {
    object.as_object().map_or(0, serde_json::Map::len)
}

fn member<'a>(root: &'a Value, name: &Value) -> &'a Value {
    let found = name.as_str().and_then(|name| root.get(name));
    found.unwrap_or_else(|| unreachable!("{name} is no member of {root}"))
}

fn list(value: &Value, lengths: std::ops::RangeInclusive<usize>) -> &[Value] {
    let list = value
        .as_array()
        .filter(|list| lengths.contains(&list.len()));
    list.unwrap_or_else(|| unreachable!("not a list of {lengths:?}: {value}"))
}
