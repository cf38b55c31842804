//! The platform killed at random moments of a load: what was answered is there, what was condemned
//! dies, nobody else does, and the audit trail has no gap.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relet::client::{Answer, Client};
use serde_json::{Value, json};
use testkit::Rng;
use tokio::task::JoinSet;

use crate::support::{NODE, Platform, noted, noting, ok, runs, until};

/// How often the platform is killed.
const KILLS: u64 = 20;
/// The longest time it is let run once it is ready, in milliseconds.
const LIFE_MS_MAX: u64 = 1_500;
/// The longest time for those that are killed as they start, in milliseconds.
const START_MS_MAX: u64 = 400;
/// The manager's pause between two calls, so that what is released can be bought.
const MANAGER_PAUSE: Duration = Duration::from_millis(25);

/// What callers were answered, over all lives of the platform.
#[derive(Debug, Default)]
struct Answered {
    /// Versions of the reservation by the type of the change.
    changes: BTreeSet<(u64, &'static str)>,
    placed: BTreeSet<String>,
    condemned: BTreeSet<String>,
    /// VMs that their own org asked to stop, whether that was answered or not.
    stop_sent: BTreeSet<String>,
}

type Log = Arc<Mutex<Answered>>;

fn version(answer: &Answer) -> u64 {
    answer
        .etag
        .as_ref()
        .unwrap()
        .trim_matches('"')
        .parse()
        .unwrap()
}

/// Releases and reclaims until the platform is gone.
async fn manage(client: Client, reservation: String, log: Log, mut rng: Rng) {
    loop {
        tokio::time::sleep(MANAGER_PAUSE).await;
        let first = rng.below(4);
        let units = [format!("u{first}"), format!("u{}", (first + 1) % 4)];
        let verb = if rng.chance(50) { "release" } else { "reclaim" };
        let path = format!("{reservation}/{verb}");
        let Ok(answer) = client.post(&path, Some(&json!({ "unitIds": units }))).await else {
            return;
        };
        if answer.status != 200 {
            // A unit that still drains, or a write that met too many others.
            assert!([409, 429, 503].contains(&answer.status), "{}", answer.body);
            continue;
        }
        let kind = match verb {
            "release" => "reservation.released",
            _ => "reservation.reclaimed",
        };
        let mut log = log.lock().unwrap();
        log.changes.insert((version(&answer), kind));
        let terminated = answer.body["terminated"].as_array().into_iter().flatten();
        log.condemned
            .extend(terminated.map(|vm| vm.as_str().unwrap().to_owned()));
    }
}

/// Buys at spot, and stops every third VM, until the platform is gone.
async fn trade(client: Client, log: Log, mut rng: Rng) {
    loop {
        let unit = format!("u{}", rng.below(4));
        let wanted = json!({ "name": "spot", "tier": "spot", "nodeId": "gpu-node-1",
            "unitIds": [unit] });
        let path = "/v1/orgs/spot-buyer/vms/create";
        let Ok(answer) = client.post(path, Some(&wanted)).await else {
            return;
        };
        if answer.status != 200 {
            assert!([409, 429, 503].contains(&answer.status), "{}", answer.body);
            continue;
        }
        let vm = answer.body["id"].as_str().unwrap().to_owned();
        log.lock().unwrap().placed.insert(vm.clone());
        if rng.chance(33) {
            log.lock().unwrap().stop_sent.insert(vm.clone());
            if client
                .post(&format!("/v1/vms/{vm}/terminate"), None)
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// One life of the platform that is killed as it starts.
async fn cut_short(folder: &Path, args: &[&str], rng: &mut Rng) {
    let platform = Platform::spawn(folder, args);
    tokio::time::sleep(Duration::from_millis(rng.next_u64() % START_MS_MAX)).await;
    platform.kill();
}

/// One life of the platform under load, until it is killed.
async fn one_life(folder: &Path, args: &[&str], log: &Log, rng: &mut Rng) {
    let platform = Platform::start(folder, args).await;
    let reservation = platform.reservation().await;
    let mut load = JoinSet::new();
    let manager = platform.client("manager");
    load.spawn(manage(
        manager,
        reservation,
        Arc::clone(log),
        Rng::new(rng.next_u64()),
    ));
    for _ in 0..3 {
        let stranger = platform.client("stranger");
        load.spawn(trade(stranger, Arc::clone(log), Rng::new(rng.next_u64())));
    }
    tokio::time::sleep(Duration::from_millis(rng.next_u64() % LIFE_MS_MAX)).await;
    platform.kill();
    while let Some(ended) = load.join_next().await {
        ended.unwrap();
    }
}

/// The records of the audit trail, all pages.
async fn trail(client: &Client, reservation: &str) -> Vec<Value> {
    let mut records = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client
            .get(&format!("{reservation}/audit?limit=100{cursor}"))
            .await
            .unwrap();
        assert_eq!(page.status, 200, "{}", page.body);
        records.extend(page.body["items"].as_array().unwrap().iter().cloned());
        match page.body["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return records,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_twenty_times_it_loses_nothing_and_kills_nobody_else() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let command = noting(notes.path(), "exec sleep infinity");
    let args = ["--data", "d", "--grace-ms", "300", "--vm-command", &command];
    let log: Log = Arc::default();
    let mut rng = Rng::new(20);
    for kill in 0..KILLS {
        match kill % 4 {
            0 => cut_short(folder.path(), &args, &mut rng).await,
            _ => one_life(folder.path(), &args, &log, &mut rng).await,
        }
    }

    let platform = Platform::start(folder.path(), &args).await;
    let reservation = platform.reservation().await;
    let answered = std::mem::take(&mut *log.lock().unwrap());
    assert!(answered.placed.len() > 20, "too little load: {answered:?}");
    assert!(
        !answered.condemned.is_empty(),
        "nothing was condemned: {answered:?}"
    );

    let owner = platform.client("owner");
    until("all condemned VMs are gone", async || {
        let listed = owner.get(&format!("{NODE}/terminations")).await.unwrap();
        listed.body["items"] == json!([])
    })
    .await;
    let now = version(&owner.get(&reservation).await.unwrap());
    let mut records = Vec::new();
    until("the audit trail is complete", async || {
        records = trail(&owner, &reservation).await;
        records.last().and_then(|record| record["version"].as_u64()) == Some(now)
    })
    .await;
    check_trail(&records, now, &answered);
    check_vms(&platform, &records, &answered, notes.path()).await;
    release_for_the_end(&platform, &reservation).await;
    assert_eq!(platform.interrupt().await, Some(0));
}

/// No version without a record, no break in the chain, no answered change missing.
fn check_trail(records: &[Value], now: u64, answered: &Answered) {
    let mut versions: Vec<u64> = records
        .iter()
        .map(|r| r["version"].as_u64().unwrap())
        .collect();
    versions.dedup();
    assert_eq!(
        versions,
        (1..=now).collect::<Vec<u64>>(),
        "versions have a gap"
    );
    for pair in records.windows(2) {
        assert_eq!(pair[0]["hash"], pair[1]["prevHash"], "{pair:?}");
    }
    let told = |version: u64, kind: &str| {
        let mut all = records.iter();
        all.any(|record| record["version"] == version && record["type"] == kind)
    };
    for (version, kind) in &answered.changes {
        assert!(
            told(*version, kind),
            "version {version}, {kind}, was answered and is not there"
        );
    }
    assert!(records.iter().all(|record| record["type"] != "audit.gap"));
}

/// Every VM that was answered is there; the condemned are gone with their processes, the others
/// run.
async fn check_vms(platform: &Platform, records: &[Value], answered: &Answered, notes: &Path) {
    let mut sentenced: BTreeSet<&str> = answered.stop_sent.iter().map(String::as_str).collect();
    for record in records {
        if record["type"] == "vm.condemned" {
            sentenced.extend(
                record["vmIds"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str),
            );
        }
    }
    let stranger = platform.client("stranger");
    let mut statuses = BTreeMap::new();
    for vm in &answered.placed {
        let read = stranger.get(&format!("/v1/vms/{vm}")).await.unwrap();
        assert_eq!(read.status, 200, "{vm} was placed and is not there");
        statuses.insert(
            vm.as_str(),
            read.body["status"].as_str().unwrap().to_owned(),
        );
    }
    for vm in &answered.condemned {
        let status = statuses.get(vm.as_str());
        // A VM whose placement was not answered may have been condemned all the same.
        assert!(
            status.is_none_or(|status| status == "terminated"),
            "{vm} lives on"
        );
    }
    for (vm, status) in &statuses {
        match status.as_str() {
            "terminated" => {
                assert!(
                    sentenced.contains(vm),
                    "{vm} died and nobody had told it to"
                );
                let pid = noted(notes, vm);
                assert!(
                    !pid.is_some_and(runs),
                    "{vm} is terminated and its process runs"
                );
            }
            "running" => {
                until("it runs", async || noted(notes, vm).is_some_and(runs)).await;
            }
            other => panic!("{vm} is {other}"),
        }
    }
}

/// The platform still works after all that.
async fn release_for_the_end(platform: &Platform, reservation: &str) {
    let (owner, manager) = (platform.client("owner"), platform.client("manager"));
    let all = json!({ "unitIds": ["u0", "u1", "u2", "u3"] });
    ok(&manager, &format!("{reservation}/reclaim"), all.clone()).await;
    until("the units are empty", async || {
        let node = owner.get(NODE).await.unwrap();
        let mut units = node.body["units"].as_array().unwrap().iter();
        units.all(|unit| unit.get("vmId").is_none())
    })
    .await;
    ok(&manager, &format!("{reservation}/release"), all).await;
}
