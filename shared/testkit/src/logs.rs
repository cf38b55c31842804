//! Logs of a test run, kept for the search that ends it: nothing in them may be secret.
//!
//! With `RELET_TEST_LOG_DIR` set to a folder, what processes say that tests start, and what code
//! says that runs inside a test, goes there as well, one file for each. Without it nothing is kept.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

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
