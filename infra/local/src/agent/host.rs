//! The host: which process is behind which VM, and how one is stopped for good.
//!
//! Everything about a process is written down before it begins, so the platform may be killed at
//! any moment: the one after it finds every process that still runs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{UnitId, VmId};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::process::{Group, Running, start};
use crate::data::Data;

/// The folder of the notes, one for each process.
const NOTES: &str = "vms";
/// A process that ended by itself is started again no sooner than this after its last start.
const RESTART_AFTER: Duration = Duration::from_secs(5);
/// How often a stop that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What runs behind a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmProgram {
    /// A shell command; `None` for one that does nothing until it is stopped.
    pub command: Option<String>,
    /// How long it may take to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
}

/// What is left of a VM on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// No process: it is gone for good, and none will be started for it.
    Nothing,
    /// Its process has been told to stop and still runs.
    Stopping,
}

/// What is written down of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    units: BTreeSet<UnitId>,
    group: Group,
}

#[derive(Debug)]
struct Process {
    note: Note,
    /// Where this very platform started it.
    running: Option<Running>,
    started: Instant,
    /// When SIGTERM was sent, once it was.
    told: Option<Instant>,
}

impl Note {
    fn unknown(vm: &VmId) -> Self {
        Self {
            units: BTreeSet::new(),
            group: Group::unknown(vm),
        }
    }
}

impl Process {
    /// One that runs, and of which this platform holds nothing but the note.
    fn found(note: Note) -> Self {
        Self {
            note,
            running: None,
            started: Instant::now(),
            told: None,
        }
    }

    fn reap(&mut self) {
        if let Some(running) = &mut self.running {
            running.reap();
        }
    }
}

#[derive(Debug, Default)]
struct Vms {
    processes: BTreeMap<VmId, Process>,
    /// VMs that were told to stop: none of them is ever started again.
    stopped: BTreeSet<VmId>,
}

/// The processes of this host.
#[derive(Debug)]
pub struct Host {
    data: Arc<Data>,
    program: VmProgram,
    vms: Mutex<Vms>,
}

impl Host {
    /// Takes over the processes that an earlier platform on the same folder left running.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn new(data: Arc<Data>, program: VmProgram) -> io::Result<Self> {
        let mut vms = Vms::default();
        for name in data.names(NOTES)? {
            let id = name
                .strip_prefix(NOTES)
                .and_then(|name| name.strip_prefix('/'));
            let id: Option<VmId> = id
                .and_then(|name| name.strip_suffix(".json"))
                .and_then(|name| name.parse().ok());
            let Some(vm) = id else {
                tracing::warn!(name, "not a note of a VM's process; left alone");
                continue;
            };
            let note = data.read(&name).ok().flatten();
            let note = note.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let note = note.unwrap_or_else(|| {
                tracing::warn!(name, "a note that cannot be read; its VM is looked for");
                Note::unknown(&vm)
            });
            tracing::info!(%vm, pid = note.group.pid, alive = note.group.is_alive(), "VM found");
            vms.processes.insert(vm, Process::found(note));
        }
        Ok(Self {
            data,
            program,
            vms: Mutex::new(vms),
        })
    }

    fn locked(&self) -> MutexGuard<'_, Vms> {
        self.vms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a process runs behind a VM on these units, unless it was told to stop.
    ///
    /// # Errors
    /// As the system has it.
    pub fn start(&self, vm: &VmId, units: &BTreeSet<UnitId>) -> io::Result<()> {
        let mut vms = self.locked();
        if vms.stopped.contains(vm) {
            return Ok(());
        }
        if let Some(process) = vms.processes.get_mut(vm) {
            process.reap();
            if process.note.group.is_alive() || process.started.elapsed() < RESTART_AFTER {
                process.note.units.extend(units.iter().cloned());
                return Ok(());
            }
            tracing::warn!(%vm, "its process ended by itself and is started again");
        }
        let holders = vms.processes.iter().filter(|(other, _)| *other != vm);
        for (other, process) in holders {
            // Its VM was confirmed as gone too early: the GPU is not free before it is.
            if !process.note.units.is_disjoint(units) {
                tracing::warn!(%vm, %other, "VM not started: a process is still on its units");
                return Ok(());
            }
        }
        // What runs in a platform without a folder must not outlive it: nobody could find it again.
        let with_input = !self.data.is_lasting();
        let idle = if with_input {
            "exec cat"
        } else {
            "exec sleep infinity"
        };
        let command = self.program.command.as_deref().unwrap_or(idle);
        let unit_ids: Vec<&str> = units.iter().map(UnitId::as_str).collect();
        let unit_ids = unit_ids.join(",");
        let gated = start(vm, command, &[("RELET_UNIT_IDS", &unit_ids)], with_input)?;
        let note = Note {
            units: units.clone(),
            group: gated.group.clone(),
        };
        let text = serde_json::to_vec(&note)?;
        if let Err(error) = self.data.write(&note_of(vm), &text) {
            gated.give_up();
            return Err(error);
        }
        let running = gated.let_go(with_input)?;
        tracing::info!(%vm, pid = note.group.pid, unit_ids, "VM started");
        let process = Process {
            running: Some(running),
            ..Process::found(note)
        };
        vms.processes.insert(vm.clone(), process);
        Ok(())
    }

    /// Stops a VM's process: SIGTERM at first, SIGKILL once the grace is over. To be called again
    /// until nothing is left.
    pub fn stop(&self, vm: &VmId) -> Left {
        let mut vms = self.locked();
        vms.stopped.insert(vm.clone());
        let process = match vms.processes.entry(vm.clone()) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let lost = Note::unknown(vm);
                if !lost.group.is_alive() {
                    return Left::Nothing;
                }
                tracing::warn!(%vm, "a process that nothing was noted of");
                place.insert(Process::found(lost))
            }
        };
        let group = process.note.group.clone();
        process.reap();
        if !group.is_alive() {
            return self.forget(vm, &mut vms);
        }
        let sent = match process.told {
            None => group.signal(Signal::TERM).map(|()| {
                tracing::info!(%vm, pid = group.pid, "VM told to stop");
                process.told = Some(Instant::now());
            }),
            Some(at) if at.elapsed() >= self.program.grace => group.signal(Signal::KILL),
            Some(_) => Ok(()),
        };
        if let Err(error) = sent {
            tracing::warn!(%vm, %error, "VM not told to stop yet");
        }
        Left::Stopping
    }

    fn forget(&self, vm: &VmId, vms: &mut Vms) -> Left {
        if let Err(error) = self.data.remove(&note_of(vm)) {
            // Its group is gone all the same, which the next start finds out by itself.
            tracing::warn!(%vm, %error, "note of a VM's process not removed");
        }
        vms.processes.remove(vm);
        tracing::info!(%vm, "VM gone");
        Left::Nothing
    }

    /// Stops what the node's units prove to be gone: a VM keeps its units for life, so where one of
    /// them is empty or another's, the VM is not there any more. A unit that is not shown proves
    /// nothing.
    pub fn compare(&self, occupants: &BTreeMap<UnitId, Option<VmId>>) {
        let gone: Vec<VmId> = {
            let vms = self.locked();
            // Those that are being stopped go on by themselves.
            let kept = vms
                .processes
                .iter()
                .filter(|(vm, _)| !vms.stopped.contains(*vm));
            let gone = kept.filter(|(vm, process)| {
                let units = process.note.units.iter();
                let mut shown = units.filter_map(|unit| occupants.get(unit));
                shown.any(|occupant| occupant.as_ref() != Some(vm))
            });
            gone.map(|(vm, _)| vm.clone()).collect()
        };
        for vm in gone {
            tracing::warn!(%vm, "confirmed as gone while its process ran");
            self.stop(&vm);
        }
    }

    /// Takes those that are being stopped one step further; whether any is left.
    pub fn go_on(&self) -> bool {
        let stopping: Vec<VmId> = {
            let vms = self.locked();
            let all = vms.processes.keys();
            all.filter(|vm| vms.stopped.contains(*vm))
                .cloned()
                .collect()
        };
        let left: Vec<Left> = stopping.iter().map(|vm| self.stop(vm)).collect();
        left.contains(&Left::Stopping)
    }

    /// Stops every process and waits until all are gone: the end of the host, not of the VMs, which
    /// are started again when the platform is.
    pub async fn close(&self) {
        let all: Vec<VmId> = self.locked().processes.keys().cloned().collect();
        for vm in &all {
            self.stop(vm);
        }
        while self.go_on() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The process behind a VM; `None` if there is none.
    #[must_use]
    pub fn group(&self, vm: &VmId) -> Option<Group> {
        let vms = self.locked();
        vms.processes
            .get(vm)
            .map(|process| process.note.group.clone())
    }
}

fn note_of(vm: &VmId) -> String {
    format!("{NOTES}/{vm}.json")
}
