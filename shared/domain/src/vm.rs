//! The life of a VM: running, terminating, terminated. It never goes back.

use std::collections::BTreeSet;

use crate::id::{GpuModelId, NodeId, OrgId, ReservationId, UnitId, VmId};
use crate::slot::Tier;
use crate::time::Timestamp;
use crate::version::Version;

/// Where a VM is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VmStatus {
    /// Placed; its node runs it.
    Running,
    /// Condemned; its node is stopping it. Nothing leads back.
    Terminating,
    /// Its stop was confirmed; its units are free.
    Terminated,
}

impl VmStatus {
    /// All, in order of life.
    pub const ALL: [VmStatus; 3] = [
        VmStatus::Running,
        VmStatus::Terminating,
        VmStatus::Terminated,
    ];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            VmStatus::Running => "running",
            VmStatus::Terminating => "terminating",
            VmStatus::Terminated => "terminated",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What condemned a VM: the item and its version at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The reservation, or `None` where the VM was stopped or sat in the public pool.
    pub reservation: Option<ReservationId>,
    /// The custodian's version that condemned it: the fence of its termination command.
    pub version: Version,
    /// When.
    pub at: Timestamp,
}

/// A virtual machine on units of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    /// Its id.
    pub id: VmId,
    /// Whose it is.
    pub org: OrgId,
    /// Its name, in its owner's words.
    pub name: String,
    /// Where it is in its life.
    pub status: VmStatus,
    /// Why it is where it is, in a sentence.
    pub status_reason: Option<String>,
    /// What it was bought as.
    pub tier: Tier,
    /// The GPU model of its node.
    pub gpu_model: GpuModelId,
    /// GPUs of all its units.
    pub gpu_count: u32,
    /// Its node.
    pub node: NodeId,
    /// Its units.
    pub units: BTreeSet<UnitId>,
    /// The reservation on whose units it was placed; `None` is the public pool.
    pub reservation: Option<ReservationId>,
    /// What condemned it, once something has.
    pub sentence: Option<Sentence>,
    /// How often its node was told to stop it.
    pub attempts: u32,
    /// Since when its stop counts as overdue, if it does.
    pub stuck_at: Option<Timestamp>,
    /// When it was placed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
