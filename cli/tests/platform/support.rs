//! A platform of a test's own, and the command as its parts run it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use relet::agent::host::VmProgram;
use relet::keys::Part;
use relet::platform::{Options, Platform};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::terminal::Terminal;

/// Longest time for anything that is waited for.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The node of the demo fleet.
pub(crate) const NODE: &str = "gpu-node-1";

/// A running platform with the demo fleet.
pub(crate) struct World {
    runtime: Runtime,
    platform: Option<Platform>,
    folder: TempDir,
    /// Whether each VM's process makes a file of the VM's name.
    notes: bool,
    pub(crate) url: String,
    pub(crate) reservation: String,
}

impl World {
    /// Starts one. VMs end at once when they are told to.
    pub(crate) fn start() -> Self {
        Self::in_folder(TempDir::new().unwrap(), None, Duration::from_secs(2))
    }

    /// One whose VMs hold out until they are killed, so long after they were told to stop.
    pub(crate) fn stubborn(grace: Duration) -> Self {
        // What is told to stop before it holds out would be gone at once.
        let folder = TempDir::new().unwrap();
        let note = format!("touch '{}'/$RELET_VM_ID", folder.path().display());
        let command = format!("trap '' TERM; {note}; while :; do sleep 0.05; done");
        Self::in_folder(folder, Some(command), grace)
    }

    fn in_folder(folder: TempDir, command: Option<String>, grace: Duration) -> Self {
        let notes = command.is_some();
        let runtime = Runtime::new().unwrap();
        let options = Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data: None,
            program: VmProgram { command, grace },
        };
        let (platform, reservation) = runtime.block_on(async {
            let platform = Platform::start(&options).await.unwrap();
            let reservation = relet::fleet::set_up(&platform).await.unwrap();
            (platform, reservation)
        });
        Self {
            runtime,
            url: platform.url().to_owned(),
            platform: Some(platform),
            folder,
            notes,
            reservation,
        }
    }

    /// The key of a part.
    pub(crate) fn key(&self, part: Part) -> &str {
        self.platform.as_ref().unwrap().keys().of(part)
    }

    /// A folder of this world: the home of the command's config file, and where it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command without a key, in an environment of its own.
    pub(crate) fn bare(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orl"));
        command
            .args(args)
            .env_clear()
            .env("XDG_CONFIG_HOME", self.folder())
            .env("ORL_URL", &self.url)
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Runs the command as a part.
    pub(crate) fn run(&self, part: Part, args: &[&str]) -> Output {
        self.bare(args)
            .env("ORL_API_KEY", self.key(part))
            .output()
            .unwrap()
    }

    /// The same, which must end well; its standard output.
    pub(crate) fn ok(&self, part: Part, args: &[&str]) -> String {
        let output = self.run(part, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same as JSON.
    pub(crate) fn json(&self, part: Part, args: &[&str]) -> Value {
        let args = [args, &["--output", "json"]].concat();
        serde_json::from_str(&self.ok(part, &args)).unwrap()
    }

    /// The same in a terminal.
    pub(crate) fn terminal(&self, part: Part, args: &[&str]) -> Terminal {
        let variables = [
            ("ORL_URL", self.url.as_str()),
            ("ORL_API_KEY", self.key(part)),
        ];
        Terminal::start(args, &variables)
    }

    /// Releases units as the manager.
    pub(crate) fn release(&self, units: &str) {
        let args = ["reservations", "unit", "release", NODE, &self.reservation];
        self.ok(Part::Manager, &[&args[..], &["--unit-ids", units]].concat());
    }

    /// Buys a spot VM on units as the stranger; its id.
    pub(crate) fn buy(&self, units: &str) -> String {
        let args = [
            "vms",
            "create",
            "spot-buyer",
            "--name",
            "batch",
            "--tier",
            "spot",
        ];
        let place = ["--node-id", NODE, "--unit-ids", units, "--output", "id"];
        let made = self.ok(Part::Stranger, &[&args[..], &place].concat());
        let vm = made.trim().to_owned();
        if self.notes {
            until("the VM holds out", || self.folder().join(&vm).exists());
        }
        vm
    }

    /// The types of the reservation's audit records so far.
    pub(crate) fn records(&self) -> Vec<String> {
        let args = ["reservations", "audit", NODE, &self.reservation, "--all"];
        let trail = self.json(Part::Owner, &args);
        let items = trail["items"].as_array().unwrap();
        let types = items
            .iter()
            .map(|record| record["type"].as_str().unwrap().to_owned());
        types.collect()
    }

    /// Waits until the audit trail has a record of this type.
    pub(crate) fn until_recorded(&self, kind: &str) {
        until(kind, || self.records().iter().any(|there| there == kind));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(platform) = self.platform.take() {
            // A test that fails says so itself.
            let _ = self.runtime.block_on(platform.stop());
        }
    }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < WAIT_MAX, "still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a command said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A text without its line breaks.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}
