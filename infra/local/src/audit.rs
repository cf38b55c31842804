//! `relet audit verify`: a trail, read through the API or from a file, checked record by record.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::audit::{Expected, Fault, Head, Lost, Record, Verified, Wrong, verify};
use domain::{NodeId, ReservationId, Version};
use http_api::record;
use serde_json::Value;

use crate::client::{Answer, Client};
use crate::failure::{Failure, run, start};
use crate::keys::{Part, kept_in};
use crate::output::Output;

/// Most records of one page.
const PAGE: usize = domain::limits::PAGE_ITEMS_MAX;
/// Longest time that records may still be on their way: a record waits 5 s for one that is missing
/// before it, and only then is a gap written.
const LAG_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks at a trail that lags.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where the trail is.
#[derive(Debug, Clone)]
pub enum Source {
    /// On a platform that answers.
    Api {
        /// Its base URL.
        url: String,
        /// The key to call it with; `None` takes the operator's out of `data`.
        key: Option<String>,
        /// The folder that the platform keeps its data in.
        data: PathBuf,
        /// The node.
        node: NodeId,
        /// The reservation.
        reservation: ReservationId,
    },
    /// In a file: an array of records, oldest first, or a page of the API that has all of them.
    File {
        /// The file.
        path: PathBuf,
        /// The version that the reservation is at, where the caller knows.
        at_version: Option<Version>,
    },
}

/// Verifies the trail and prints what it found in one line.
///
/// # Errors
/// [`Failure::Run`] says what is wrong with the trail and where, or why it cannot be read;
/// [`Failure::Start`] if there is no key, or the file cannot be read.
pub async fn verify_trail(
    source: &Source,
    head: Option<Head>,
    output: &mut Output,
) -> Result<(), Failure> {
    let verified = match source {
        Source::File { path, at_version } => {
            let bytes = std::fs::read(path)
                .map_err(|error| start(&format!("cannot read {}", path.display()), error))?;
            let items = items_of(&bytes)?;
            let expected = Expected {
                at_least: at_version.unwrap_or(Version::FIRST),
                at_most: *at_version,
                head,
            };
            verify(&parsed(&items)?, expected)
        }
        Source::Api {
            url,
            key,
            data,
            node,
            reservation,
        } => {
            let key = match key {
                Some(key) => key.clone(),
                None => kept_in(data, Part::Operator, "send one with --key or RELET_API_KEY")?,
            };
            let client = Client::new(url, &key).map_err(|error| run("no HTTP client", error))?;
            let path = format!("/v1/nodes/{node}/reservations/{reservation}");
            let trail = Trail {
                client: &client,
                path: &path,
                reservation,
                node,
            };
            trail.verify(head).await?
        }
    };
    match verified {
        Ok(verified) => {
            output.line(told(&verified));
            Ok(())
        }
        Err(fault) => Err(Failure::Run(format!("not verified: {fault}"))),
    }
}

/// The line that says what was verified.
fn told(verified: &Verified) -> String {
    let Verified {
        records,
        last,
        head,
        gaps,
    } = verified;
    let noun = if *records == 1 { "record" } else { "records" };
    let first = Version::FIRST;
    let line = format!("verified: {records} {noun}, versions {first}..{last}, head {head}");
    match gaps.len() {
        0 => line,
        1 => format!("{line}, 1 gap: {}", lost(gaps)),
        count => format!("{line}, {count} gaps: {}", lost(gaps)),
    }
}

fn lost(gaps: &[Lost]) -> String {
    let each = gaps.iter().map(|gap| match gap.first == gap.last {
        true => gap.first.to_string(),
        false => format!("{}..{}", gap.first, gap.last),
    });
    format!("versions {}", each.collect::<Vec<_>>().join(", "))
}

/// A trail behind the API.
struct Trail<'a> {
    client: &'a Client,
    path: &'a str,
    reservation: &'a ReservationId,
    node: &'a NodeId,
}

impl Trail<'_> {
    /// Reads and verifies. The trail is written a moment after each change, so one that ends early
    /// is read again for a while.
    async fn verify(&self, head: Option<Head>) -> Result<Result<Verified, Fault>, Failure> {
        let began = Instant::now();
        loop {
            let at_least = self.version().await?;
            let records = self.records().await?;
            let expected = Expected {
                at_least,
                at_most: Some(self.version().await?),
                head: head.clone(),
            };
            let outcome = verify(&records, expected);
            let lags = matches!(
                &outcome,
                Err(Fault {
                    wrong: Wrong::Truncated { .. },
                    ..
                })
            );
            if !lags || began.elapsed() > LAG_MAX {
                self.belongs(&records)?;
                return Ok(outcome);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The trail may be sound and still be that of another reservation.
    fn belongs(&self, records: &[Record]) -> Result<(), Failure> {
        let other = records
            .iter()
            .map(|record| &record.event)
            .find(|event| (&event.reservation, &event.node) != (self.reservation, self.node));
        match other {
            None => Ok(()),
            Some(event) => Err(Failure::Run(format!(
                "not verified: record {} is of reservation {} on node {}, not of the one asked for",
                event.id(),
                event.reservation,
                event.node
            ))),
        }
    }

    /// The version that the reservation is at.
    async fn version(&self) -> Result<Version, Failure> {
        let answer = self.get(self.path).await?;
        let etag = answer.etag.as_deref().unwrap_or_default();
        let number = etag.trim_matches('"').parse().ok();
        number.and_then(Version::stored).ok_or_else(|| {
            Failure::Run(format!("the reservation came without a version: {etag:?}"))
        })
    }

    /// The whole trail, page by page.
    async fn records(&self) -> Result<Vec<Record>, Failure> {
        let first = format!("{}/audit?limit={PAGE}", self.path);
        let mut items: Vec<Value> = Vec::new();
        let mut page = first.clone();
        loop {
            let answer = self.get(&page).await?;
            let found = answer.body["items"].as_array();
            items.extend(found.into_iter().flatten().cloned());
            match answer.body["nextCursor"].as_str() {
                // An empty page that goes on would go on for ever.
                Some(cursor) if found.is_some_and(|found| !found.is_empty()) => {
                    page = format!("{first}&cursor={cursor}");
                }
                _ => return parsed(&items),
            }
        }
    }

    async fn get(&self, path: &str) -> Result<Answer, Failure> {
        let answer = self.client.get(path).await;
        let answer = answer.map_err(|error| run("the platform does not answer", error))?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let why = answer.body["error"].as_str().unwrap_or("no reason given");
        Err(Failure::Run(format!("GET {path}: {} {why}", answer.status)))
    }
}

/// The records of a file, as they stand there.
fn items_of(bytes: &[u8]) -> Result<Vec<Value>, Failure> {
    let unreadable = |why: &str| Failure::Run(format!("not verified: the file is no trail: {why}"));
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| unreadable(&error.to_string()))?;
    if value.get("nextCursor").is_some() {
        return Err(unreadable("it is one page of several; put all items in"));
    }
    let items = match &value {
        Value::Array(items) => Some(items),
        other => other.get("items").and_then(Value::as_array),
    };
    let items = items.ok_or_else(|| unreadable("it is neither an array nor a page"))?;
    Ok(items.clone())
}

fn parsed(items: &[Value]) -> Result<Vec<Record>, Failure> {
    let each = items.iter().enumerate().map(|(place, item)| {
        record::parse(item)
            .map_err(|error| Failure::Run(format!("not verified: record {place}: {error}")))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_in_the_same_line() {
        let version = |number| Version::stored(number).unwrap();
        let gap = |first, last| Lost {
            first: version(first),
            last: version(last),
        };
        let mut verified = Verified {
            records: 9,
            last: version(12),
            head: "ab".to_owned(),
            gaps: vec![gap(3, 5)],
        };
        assert_eq!(
            told(&verified),
            "verified: 9 records, versions 1..12, head ab, 1 gap: versions 3..5"
        );
        verified.gaps.push(gap(7, 7));
        assert!(told(&verified).ends_with("head ab, 2 gaps: versions 3..5, 7"));
    }

    #[test]
    fn a_file_is_an_array_or_a_whole_page() {
        assert_eq!(items_of(b"[1]").unwrap(), [1]);
        assert_eq!(items_of(br#"{"items":[1]}"#).unwrap(), [1]);
        for bad in [
            "",
            "{}",
            "7",
            r#"{"items":7}"#,
            r#"{"items":[1],"nextCursor":"c"}"#,
        ] {
            assert_eq!(
                items_of(bad.as_bytes()).unwrap_err().exit_code(),
                1,
                "{bad}"
            );
        }
    }
}
