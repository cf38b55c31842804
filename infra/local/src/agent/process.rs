//! The processes behind a VM: a group of their own, known by the process id of its leader together
//! with the instant that one was started, so that an id used again is never taken for it; and what
//! has left the group, known by the VM's id in its environment.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use domain::VmId;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Waits for a line and only then becomes the VM's command. Whoever started it writes down its
/// process id before the line is sent, so no process runs that nobody knows of: if the platform is
/// killed in between, the line never comes and the process ends.
const GATED: &str = r#"read -r go || exit 0; exec sh -c "$0" </dev/null"#;
/// The same for a command that ends with the platform, because its input does.
const GATED_WITH_INPUT: &str = r#"read -r go || exit 0; exec sh -c "$0""#;

/// The variable that carries the VM in the environment of its processes.
pub const VM_ID: &str = "RELET_VM_ID";

/// The identity of the processes behind a VM: a group, and whatever left it but still carries the
/// VM's id in its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The VM.
    pub vm: VmId,
    /// The process id of the group's leader, which is also the id of the group.
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

/// `None` for what is not there, or is another user's; an error where the system does not tell.
fn there<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Ok(None),
            _ => Err(error),
        },
    }
}

fn stat(pid: i32) -> io::Result<Option<Stat>> {
    let Some(text) = there(fs::read_to_string(format!("/proc/{pid}/stat")))? else {
        return Ok(None);
    };
    let stat = parse_stat(&text);
    stat.map(Some)
        .ok_or_else(|| io::Error::other("the system describes a process in an unknown way"))
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name of the program comes second, in parentheses, and may hold anything.
    let (_, after_name) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Some(Stat {
        ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn boot() -> io::Result<&'static str> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot);
    }
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| id.trim().to_owned()))
}

impl Group {
    /// Processes of a VM of which nothing else is known.
    #[must_use]
    pub fn unknown(vm: &VmId) -> Self {
        Self {
            vm: vm.clone(),
            pid: 0,
            started: 0,
            boot: String::new(),
        }
    }

    /// Whether any of its processes runs. Where the system does not tell, they do: what cannot be
    /// seen to be gone is not gone.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let leads = self.leader().map(|leader| leader == Some(true));
        match leads {
            Ok(true) => true,
            Ok(false) => self.members().map_or(true, |members| !members.is_empty()),
            Err(_) => true,
        }
    }

    /// Whether the leader runs; `None` if the group's id has been given to somebody else.
    fn leader(&self) -> io::Result<Option<bool>> {
        if self.boot != boot()? {
            return Ok(None);
        }
        Ok(match stat(self.pid)? {
            // The system gives an id to another process only once the whole group is gone.
            Some(leader) if leader.started != self.started => None,
            Some(leader) => Some(!leader.ended),
            None => Some(false),
        })
    }

    /// Those of its processes that run, apart from such as have ended and wait to be noticed.
    fn members(&self) -> io::Result<Vec<Pid>> {
        let has_group = self.leader()?.is_some();
        let mut members = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Some(process) = stat(pid)?.filter(|process| !process.ended) else {
                continue;
            };
            let in_group = has_group && process.group == self.pid;
            if in_group || self.marks(pid)? {
                members.extend(Pid::from_raw(pid));
            }
        }
        Ok(members)
    }

    /// Whether a process carries the VM's id.
    fn marks(&self, pid: i32) -> io::Result<bool> {
        let environment = there(fs::read(format!("/proc/{pid}/environ")))?;
        let mark = format!("{VM_ID}={}", self.vm);
        let environment = environment.unwrap_or_default();
        Ok(environment
            .split(|byte| *byte == 0)
            .any(|v| v == mark.as_bytes()))
    }

    /// Sends a signal to all of its processes.
    ///
    /// # Errors
    /// Where the system does not tell which those are.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        for pid in self.members()? {
            // It may have gone in this very instant, which is what the signal is for.
            let _ = kill_process(pid, signal);
        }
        Ok(())
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

/// Starts a command for a VM behind its gate, as the leader of a group of its own.
///
/// # Errors
/// As the system has it.
pub fn start(
    vm: &VmId,
    command: &str,
    env: &[(&str, &str)],
    with_input: bool,
) -> io::Result<Gated> {
    let gated = if with_input { GATED_WITH_INPUT } else { GATED };
    let boot = boot()?.to_owned();
    let mut child = Command::new("sh")
        .args(["-c", gated, command])
        .envs(env.iter().copied())
        .env(VM_ID, vm.as_str())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let gate = child.stdin.take();
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let (Ok(Some(known)), Some(gate)) = (stat(pid), gate) else {
        // Its gate is closed by now, and it ends by itself.
        let _ = child.wait();
        return Err(io::Error::other("the system says nothing of the process"));
    };
    let group = Group {
        vm: vm.clone(),
        pid,
        started: known.started,
        boot,
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
