//! A platform in a process of its own, and callers of it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use relet::client::{Answer, Client};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest time for anything that is waited for.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(20);
/// The pause between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The node of the demo fleet.
pub(crate) const NODE: &str = "/v1/nodes/gpu-node-1";

/// The command, with nothing of this test's environment that it heeds.
pub(crate) fn relet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relet"));
    for name in ["RUST_LOG", "RELET_URL", "RELET_API_KEY"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// The same with its log kept, in full, where logs are.
fn logged() -> Command {
    let mut command = relet();
    if let Some(file) = testkit::logs::file("relet").unwrap() {
        command.env("RUST_LOG", "info").stderr(file);
    }
    command
}

/// Runs the command to its end.
pub(crate) fn run(args: &[&str], folder: &Path) -> Output {
    let output = relet().args(args).current_dir(folder).output().unwrap();
    if let Some(mut file) = testkit::logs::file("relet-run").unwrap() {
        file.write_all(&output.stderr).unwrap();
    }
    output
}

#[derive(Debug, Deserialize)]
struct Ready {
    url: String,
    keys: BTreeMap<String, String>,
}

/// A running platform. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Platform {
    pub(crate) child: Child,
    ready_file: PathBuf,
    pub(crate) url: String,
    pub(crate) keys: BTreeMap<String, String>,
}

impl Platform {
    /// Starts one in this folder, without waiting for it to be ready.
    pub(crate) fn spawn(folder: &Path, args: &[&str]) -> Self {
        Self::spawn_as(logged(), folder, args)
    }

    /// The same by this command.
    pub(crate) fn spawn_as(mut command: Command, folder: &Path, args: &[&str]) -> Self {
        let ready_file = folder.join("ready.json");
        // What an earlier one wrote says nothing of this one.
        let _ = std::fs::remove_file(&ready_file);
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready_file)
            .args(args)
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            ready_file,
            url: String::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Starts one and waits until it answers.
    pub(crate) async fn start(folder: &Path, args: &[&str]) -> Self {
        Self::spawn(folder, args).ready().await
    }

    /// Waits until it answers.
    pub(crate) async fn ready(self) -> Self {
        let mut platform = self;
        until("the platform is ready", async || platform.is_ready()).await;
        platform
    }

    /// Whether it has said that it is ready.
    pub(crate) fn is_ready(&mut self) -> bool {
        let Ok(text) = std::fs::read_to_string(&self.ready_file) else {
            assert_eq!(
                self.child.try_wait().unwrap(),
                None,
                "the platform ended early"
            );
            return false;
        };
        let ready: Ready = serde_json::from_str(&text).unwrap();
        self.url = ready.url;
        self.keys = ready.keys;
        true
    }

    /// A caller with the key of this name.
    pub(crate) fn client(&self, name: &str) -> Client {
        Client::new(&self.url, self.keys.get(name).unwrap()).unwrap()
    }

    /// Sends a signal to it.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Ends it as Ctrl-C does; its exit code.
    pub(crate) async fn interrupt(mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::INT);
        let mut status = None;
        until("the platform stops", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code()
    }

    /// Kills it on the spot.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The path of the demo fleet's reservation.
    pub(crate) async fn reservation(&self) -> String {
        let path = format!("{NODE}/reservations");
        let listed = self.client("owner").get(&path).await.unwrap();
        let id = listed.body["items"][0]["id"].as_str().unwrap();
        format!("{path}/{id}")
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < WAIT_MAX, "still not: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Posts, and wants 200.
pub(crate) async fn ok(client: &Client, path: &str, body: Value) -> Answer {
    let answer = client.post(path, Some(&body)).await.unwrap();
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
    answer
}

/// Buys a spot VM on these units; its id.
pub(crate) async fn buy(platform: &Platform, units: &[&str]) -> String {
    let body = json!({ "name": "spot", "tier": "spot", "nodeId": "gpu-node-1", "unitIds": units });
    let stranger = platform.client("stranger");
    let made = ok(&stranger, "/v1/orgs/spot-buyer/vms/create", body).await;
    made.body["id"].as_str().unwrap().to_owned()
}

/// The status of a stranger's VM.
pub(crate) async fn status(platform: &Platform, vm: &str) -> String {
    let answer = platform
        .client("stranger")
        .get(&format!("/v1/vms/{vm}"))
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{vm}: {}", answer.body);
    answer.body["status"].as_str().unwrap().to_owned()
}

/// Waits until a stranger's VM is terminated, which it must not be before these processes are gone.
pub(crate) async fn gone(platform: &Platform, vm: &str, pids: &[u32]) {
    until("it is terminated", async || {
        // Read before the processes are looked at: what is terminated by then has none.
        let terminated = status(platform, vm).await == "terminated";
        let left = pids.iter().any(|pid| runs(*pid));
        assert!(!terminated || !left, "confirmed before it was gone");
        terminated
    })
    .await;
}

/// Tells a stranger's VM to stop.
pub(crate) async fn stop(platform: &Platform, vm: &str) -> Answer {
    let path = format!("/v1/vms/{vm}/terminate");
    ok(&platform.client("stranger"), &path, json!({})).await
}

/// A command for VMs that notes its process id in a file named after the VM, then does `then`.
pub(crate) fn noting(folder: &Path, then: &str) -> String {
    let folder = folder.display();
    format!("echo $$ > '{folder}'/$RELET_VM_ID; {then}")
}

/// Waits for the process id that a VM notes.
pub(crate) async fn process(folder: &Path, vm: &str) -> u32 {
    until("it has a process", async || noted(folder, vm).is_some()).await;
    noted(folder, vm).unwrap()
}

/// The process id that a VM noted, once it did.
pub(crate) fn noted(folder: &Path, vm: &str) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join(vm)).ok()?;
    text.trim().parse().ok()
}

/// Whether a process runs, apart from one that has ended and waits to be noticed.
pub(crate) fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
