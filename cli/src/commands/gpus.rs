//! `orl gpu-availability`.

use clap::{Args, Subcommand};

use crate::call::Call;
use crate::commands::{Page, Plan};
use crate::output::view::AVAILABILITY;

/// `orl gpu-availability …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count what is free, by model and tier
    #[command(after_help = "Example:\n  orl gpu-availability get --tier spot")]
    Get(GetArgs),
}

/// The flags of `get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Only at this tier: community, verified or spot
    #[arg(long)]
    tier: Option<String>,
    /// Only of this model
    #[arg(long, value_name = "ID")]
    gpu_model_id: Option<String>,
    #[command(flatten)]
    page: Page,
}

impl Command {
    /// The call it comes to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let Command::Get(args) = self;
        let call = Call::get(&["v1", "gpu-availability"])
            .query("tier", args.tier.as_ref())
            .query("gpuModelId", args.gpu_model_id.as_ref());
        Plan::list(call, &AVAILABILITY, &args.page)
    }
}
