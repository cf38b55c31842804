//! The process behind a VM: a group of its own, known by the process id of its leader together with
//! the instant that one was started, so that an id used again is never taken for it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};

/// Waits for a line and only then becomes the VM's command. Whoever started it writes down its
/// process id before the line is sent, so no process runs that nobody knows of: if the platform is
/// killed in between, the line never comes and the process ends.
const GATED: &str = r#"read -r go || exit 0; exec sh -c "$0" </dev/null"#;
/// The same for a command that ends with the platform, because its input does.
const GATED_WITH_INPUT: &str = r#"read -r go || exit 0; exec sh -c "$0""#;

/// The identity of a process group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The process id of its leader, which is also the id of the group.
    pub pid: i32,
    /// When the leader was started, in ticks since the system was.
    pub started: u64,
    /// Which start of the system that was.
    pub boot: String,
}

/// What the system says of a process.
struct Stat {
    group: i32,
    started: u64,
    /// Whether it has ended and only waits to be noticed.
    ended: bool,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program comes second, in parentheses, and may hold anything.
    let (_, after_name) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Some(Stat {
        ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

impl Group {
    /// Whether any process of the group still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        if self.boot != boot() {
            return false;
        }
        match stat(self.pid) {
            // The system gives an id to another process only once the whole group is gone.
            Some(leader) if leader.started != self.started => false,
            Some(leader) if !leader.ended => true,
            _ => test_kill_process_group(pid).is_ok() && self.has_member(),
        }
    }

    /// Whether a process of the group runs, apart from those that have ended and wait to be
    /// noticed.
    fn has_member(&self) -> bool {
        let Ok(entries) = fs::read_dir("/proc") else {
            return true;
        };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(stat)
            .any(|process| process.group == self.pid && !process.ended)
    }

    /// Sends a signal to the whole group, if it is still the same one.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            // It may have gone in this very instant, which is what the signal is for.
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// A process that waits to be let go.
#[derive(Debug)]
pub struct Gated {
    /// Its group.
    pub group: Group,
    child: Child,
    gate: ChildStdin,
}

/// A process that was let go, seen from the one that started it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Kept open where the process is to end with the platform.
    _input: Option<ChildStdin>,
}

impl Running {
    /// Takes notice of its end, if it has ended, so that the system can forget it.
    pub fn reap(&mut self) {
        // A process that cannot be waited for was noticed before.
        let _ = self.child.try_wait();
    }
}

/// Starts a command behind its gate, as the leader of a group of its own.
///
/// # Errors
/// As the system has it.
pub fn start(command: &str, env: &[(&str, &str)], with_input: bool) -> io::Result<Gated> {
    let gated = if with_input { GATED_WITH_INPUT } else { GATED };
    let mut child = Command::new("sh")
        .args(["-c", gated, command])
        .envs(env.iter().copied())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = i32::try_from(child.id()).ok();
    let known = pid.and_then(|pid| Some((pid, stat(pid)?.started)));
    let gate = child.stdin.take();
    let (Some((pid, started)), Some(gate)) = (known, gate) else {
        // Its gate is closed by now, and it ends by itself.
        let _ = child.wait();
        return Err(io::Error::other("the system says nothing of the process"));
    };
    let group = Group {
        pid,
        started,
        boot: boot(),
    };
    Ok(Gated { group, child, gate })
}

impl Gated {
    /// Ends the process before its command begins.
    pub fn give_up(mut self) {
        drop(self.gate);
        // It ends by itself; one that cannot be waited for was noticed before.
        let _ = self.child.wait();
    }

    /// Lets the command begin.
    ///
    /// # Errors
    /// As the system has it; the process ends then.
    pub fn let_go(mut self, with_input: bool) -> io::Result<Running> {
        if let Err(error) = self.gate.write_all(b"\n") {
            self.give_up();
            return Err(error);
        }
        Ok(Running {
            child: self.child,
            _input: with_input.then_some(self.gate),
        })
    }
}
