//! `orl vms`.

use clap::{Args, Subcommand};

use crate::call::{Body, Call};
use crate::cli::path_id;
use crate::commands::{Page, Plan};
use crate::output::view::VM;

/// `orl vms …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Place a VM: on units of the pool, of a reservation, or on released ones at spot
    #[command(after_help = "Examples:
  orl vms create spot-buyer --name batch --tier spot \\
    --node-id gpu-node-1 --unit-ids u2
  orl vms create spot-buyer --name any --tier community \\
    --gpu-model-id h100-sxm --gpu-count 1")]
    Create(CreateArgs),
    /// List an org's VMs
    #[command(after_help = "Example:\n  orl vms list spot-buyer --all")]
    List(ListArgs),
    /// Show a VM
    #[command(after_help = "Example:\n  orl vms get $VM --output yaml")]
    Get(VmArg),
    /// Stop a VM for good
    #[command(after_help = "Example:\n  orl vms terminate $VM")]
    Terminate(VmArg),
}

/// A VM.
#[derive(Debug, Args)]
pub struct VmArg {
    /// The VM
    #[arg(value_parser = path_id)]
    id: String,
}

/// The flags of `create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The org that it is for
    #[arg(value_parser = path_id)]
    org_id: String,
    /// Its name
    #[arg(long)]
    name: String,
    /// What it is bought as: community, verified or spot
    #[arg(long)]
    tier: String,
    /// How many GPUs, on any units
    #[arg(long, value_name = "N", conflicts_with = "unit_ids")]
    #[arg(required_unless_present = "unit_ids")]
    gpu_count: Option<u32>,
    /// These units: u1,u2
    #[arg(long, value_delimiter = ',', value_name = "IDS", requires = "node_id")]
    unit_ids: Vec<String>,
    /// On this node
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// On any node with GPUs of this model
    #[arg(long, value_name = "ID")]
    gpu_model_id: Option<String>,
    /// On this reservation of the node
    #[arg(long, value_name = "ID", requires = "node_id")]
    reservation_id: Option<String>,
}

/// The flags of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The org
    #[arg(value_parser = path_id)]
    org_id: String,
    #[command(flatten)]
    page: Page,
}

impl Command {
    /// The call it comes to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        match self {
            Command::Create(args) => {
                let body = Body::default()
                    .with("name", args.name.as_str())
                    .with("tier", args.tier.as_str())
                    .maybe("gpuCount", args.gpu_count)
                    .list("unitIds", &args.unit_ids)
                    .maybe("nodeId", args.node_id.as_deref())
                    .maybe("gpuModelId", args.gpu_model_id.as_deref())
                    .maybe("reservationId", args.reservation_id.as_deref());
                let path = ["v1", "orgs", &args.org_id, "vms", "create"];
                Plan::one(Call::once(&path).body(body), &VM)
            }
            Command::List(args) => {
                let call = Call::get(&["v1", "orgs", &args.org_id, "vms"]);
                Plan::list(call, &VM, &args.page)
            }
            Command::Get(args) => Plan::one(Call::get(&["v1", "vms", &args.id]), &VM),
            Command::Terminate(args) => {
                let call = Call::change("POST", &["v1", "vms", &args.id, "terminate"]);
                Plan::one(call, &VM)
            }
        }
    }
}
