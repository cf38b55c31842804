//! The node's agent: starts a process for each VM that the platform shows on the node, stops those
//! that it condemns, and confirms only what is really gone. It speaks HTTP with a key of its own
//! and knows nothing else of the platform.

pub mod controller;
pub mod host;
pub mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::{UnitId, VmId};
use serde::Deserialize;
use tokio::sync::watch;

use crate::client::{Answer, CallError, Client};
use host::{Host, Left};

/// The pause between two looks at the platform.
const POLL: Duration = Duration::from_millis(250);
/// The pause while a process is being stopped.
const POLL_STOPPING: Duration = Duration::from_millis(50);

/// The agent of one node.
#[derive(Debug)]
pub struct Agent {
    node: String,
    client: Client,
    host: Arc<Host>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Termination {
    vm_id: VmId,
}

#[derive(Debug, Deserialize)]
struct Terminations {
    items: Vec<Termination>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unit {
    id: UnitId,
    vm_id: Option<VmId>,
}

#[derive(Debug, Deserialize)]
struct Node {
    units: Vec<Unit>,
}

/// Why a look came to nothing; the next one makes up for it.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{0} answered {1}")]
    Status(&'static str, u16),
    #[error("{0} answered something else: {1}")]
    Body(&'static str, serde_json::Error),
}

fn body<T: serde::de::DeserializeOwned>(
    what: &'static str,
    answer: Answer,
) -> Result<T, LookError> {
    match answer.status {
        200 => serde_json::from_value(answer.body).map_err(|error| LookError::Body(what, error)),
        status => Err(LookError::Status(what, status)),
    }
}

impl Agent {
    /// The agent of this node.
    #[must_use]
    pub fn new(node: &str, client: Client, host: Arc<Host>) -> Self {
        Self {
            node: node.to_owned(),
            client,
            host,
        }
    }

    /// Works until `stop` says true.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            match self.look().await {
                Ok(()) => {}
                // The node is not registered yet.
                Err(LookError::Status(_, 404)) => {}
                // The platform goes away as this does.
                Err(_) if *stop.borrow() => {}
                Err(error) => tracing::warn!(node = self.node, %error, "agent"),
            }
            let pause = if self.host.go_on() {
                POLL_STOPPING
            } else {
                POLL
            };
            // Either outcome means the same: look whether to stop, and go on.
            let _ = tokio::time::timeout(pause, stop.wait_for(|stopped| *stopped)).await;
        }
    }

    /// One look at the platform. The condemned VMs are read before the units: what is shown on a
    /// unit afterwards was not gone when they were read.
    async fn look(&self) -> Result<(), LookError> {
        let path = format!("/v1/nodes/{}", self.node);
        let listed = self.client.get(&format!("{path}/terminations")).await?;
        let condemned: Terminations = body("terminations", listed)?;
        let condemned: BTreeSet<VmId> = condemned.items.into_iter().map(|t| t.vm_id).collect();
        let node: Node = body("the node", self.client.get(&path).await?)?;

        let mut seats: BTreeMap<&VmId, BTreeSet<UnitId>> = BTreeMap::new();
        for unit in &node.units {
            if let Some(vm) = &unit.vm_id {
                seats.entry(vm).or_default().insert(unit.id.clone());
            }
        }
        for (vm, units) in seats {
            if condemned.contains(vm) {
                continue;
            }
            // One VM that cannot be started must not hold up the stop of another.
            if let Err(error) = self.host.start(vm, &units) {
                tracing::warn!(%vm, %error, "VM not started");
            }
        }
        let units = node.units.into_iter();
        self.host
            .compare(&units.map(|unit| (unit.id, unit.vm_id)).collect());
        let mut outcome = Ok(());
        for vm in &condemned {
            if self.host.stop(vm) == Left::Stopping {
                continue;
            }
            // One that cannot be confirmed must not hold up another.
            outcome = outcome.and(self.confirm(&path, vm).await);
        }
        outcome
    }

    async fn confirm(&self, path: &str, vm: &VmId) -> Result<(), LookError> {
        let path = format!("{path}/terminations/{vm}/confirm");
        let answer = self.client.post(&path, None).await?;
        match answer.status {
            200 => Ok(()),
            status => Err(LookError::Status("the confirmation", status)),
        }
    }
}
