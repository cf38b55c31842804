//! A page run as a reader would: one shell for its commands, in order, beside a platform that runs.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::page::Step;

/// Longest time for the start of the platform, and for all commands of a page.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The pause between two looks at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Where pages say that the platform answers, and a second one.
const ADDRESSES: [&str; 2] = ["127.0.0.1:8083", "127.0.0.1:8084"];

/// What `cargo` does on a page: the platform runs already, and everything is built.
const CARGO: &str = r#"#!/bin/sh
set -eu
case "$1" in
  build) exit 0 ;;
  test) exit 0 ;;
  run) ;;
  *) echo "the pages' cargo knows no $1" >&2; exit 64 ;;
esac
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
[ $# -gt 0 ] || exec curl -sf -o /dev/null http://$PLATFORM/healthz
shift
exec relet "$@"
"#;

/// What ran, and what it printed.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What each step printed that was begun.
    pub(crate) printed: Vec<String>,
    /// Why not all of them went through.
    pub(crate) failure: Option<String>,
}

/// The folder with the two commands.
#[derive(Debug)]
pub(crate) struct Binaries(pub(crate) PathBuf);

/// Runs the steps of a page in a folder.
pub(crate) fn run(steps: &[Step], binaries: &Binaries, folder: &Path) -> Outcome {
    let platform = Platform::start(binaries, folder);
    let addresses = [platform.address.clone(), free_address()];
    let put = |text: &str| replace_all(text, ADDRESSES, [&addresses[0], &addresses[1]]);
    let back = |text: &str| replace_all(text, [&addresses[0], &addresses[1]], ADDRESSES);

    let tools = folder.join("page-tools");
    std::fs::create_dir(&tools).unwrap();
    let cargo = tools.join("cargo");
    std::fs::write(&cargo, CARGO).unwrap();
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
    let script = tools.join("page.sh");
    std::fs::write(&script, put(&script_of(steps))).unwrap();

    let path = std::env::var("PATH").unwrap();
    let out = std::fs::File::create(tools.join("printed")).unwrap();
    let mut shell = Command::new("bash");
    quiet_environment(&mut shell)
        .arg(&script)
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{}:{path}", tools.display(), binaries.0.display()),
        )
        .env("HOME", folder)
        .env("COLUMNS", "80")
        .env("PLATFORM", &platform.address)
        .env("ORL_URL", format!("http://{}", platform.address))
        .env("RELET_URL", format!("http://{}", platform.address))
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .process_group(0);
    let mut shell = shell.spawn().unwrap();
    let status = wait(&mut shell);
    signal_group(&shell, "KILL");
    let _ = shell.wait();
    platform.stop();
    let printed = std::fs::read(tools.join("printed")).unwrap();
    outcome(&back(&String::from_utf8_lossy(&printed)), status)
}

/// The shell's program: a mark before each step, and an end at the first command that fails.
fn script_of(steps: &[Step]) -> String {
    let mut script = "set -e -o pipefail\n".to_owned();
    for step in steps {
        let (text, exit) = (&step.commands.text, step.exit);
        script.push_str("printf '\\036'\n");
        if exit == 0 {
            script.push_str(text);
            continue;
        }
        let checked = write!(
            script,
            "set +e\n( set -e\n{text})\npage_code=$?\nset -e\n\
             [ $page_code = {exit} ] || {{ echo \"exit code $page_code, not {exit}\"; exit 1; }}\n"
        );
        checked.unwrap();
    }
    script.push_str("printf '\\036'\n");
    script
}

/// What each step printed, and how it all ended.
fn outcome(printed: &str, status: Option<ExitStatus>) -> Outcome {
    let mut printed: Vec<String> = printed.split('\u{1e}').skip(1).map(str::to_owned).collect();
    let failure = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("ended with {status}")),
        None => Some(format!("did not end within {WAIT_MAX:?}")),
    };
    if failure.is_none() {
        printed.pop();
    }
    Outcome { printed, failure }
}

/// A platform of its own for a page, with its data in the page's folder as `cargo run` has it.
#[derive(Debug)]
struct Platform {
    child: Child,
    address: String,
}

impl Platform {
    fn start(binaries: &Binaries, folder: &Path) -> Self {
        let ready = folder.join("page-ready.json");
        let mut command = Command::new(binaries.0.join("relet"));
        quiet_environment(&mut command)
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(log) = testkit::logs::file("docs").unwrap() {
            command.env("RUST_LOG", "info").stderr(log);
        }
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&ready) {
                break text;
            }
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the platform ended early: {ended:?}");
            assert!(began.elapsed() < WAIT_MAX, "the platform is not ready");
            std::thread::sleep(LOOK_EVERY);
        };
        let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
        let address = ready["url"].as_str().unwrap().trim_start_matches("http://");
        Self {
            address: address.to_owned(),
            child,
        }
    }

    /// Stops it as Ctrl-C does, and the processes of its VMs with it.
    fn stop(mut self) {
        signal(&self.child.id().to_string(), "INT");
        let status = wait(&mut self.child);
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Without what this test's environment says to the commands.
fn quiet_environment(command: &mut Command) -> &mut Command {
    let heeded = std::env::vars_os().map(|(name, _)| name);
    for name in heeded.filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("ORL_") || name.starts_with("RELET_") || name.starts_with("XDG_")
    }) {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG")
}

/// How a process ended; `None` if it has not in time.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < WAIT_MAX {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    None
}

/// Ends whatever the shell has left running.
fn signal_group(shell: &Child, name: &str) {
    signal(&format!("-{}", shell.id()), name);
}

fn signal(whom: &str, name: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, "--", whom])
        .stderr(Stdio::null())
        .status();
    // A group that has no process any more is what was wanted.
    kill.unwrap();
}

/// An address that nobody listens on now.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn replace_all(text: &str, from: [&str; 2], to: [&str; 2]) -> String {
    text.replace(from[0], to[0]).replace(from[1], to[1])
}
