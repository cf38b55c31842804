//! `orl nodes`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::call::{Body, Call};
use crate::cli::path_id;
use crate::commands::{Page, Plan};
use crate::failure::Failure;
use crate::output::view::{NODE, TERMINATION, VM};

/// `orl nodes …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Register a node with its units (platform operator)
    #[command(after_help = "Examples:
  orl nodes put node-7 --owner-org-id acme-datacenter \\
    --gpu-model-id h100-sxm --units u0,u1,u2,u3
  orl nodes put node-8 --owner-org-id acme-datacenter \\
    --gpu-model-id h100-sxm --units board0:4,board1:4")]
    Put(PutArgs),
    /// Show a node and who has its units
    #[command(after_help = "Example:\n  orl nodes get gpu-node-1")]
    Get(NodeArg),
    /// List nodes: an operator sees all, an owner its own
    #[command(after_help = "Example:\n  orl nodes list --limit 20")]
    List(Page),
    /// Which units a node has
    #[command(
        subcommand,
        after_help = "Example:
  orl nodes topology put node-8 --topology-gen 2 --units board0:4,board1:4"
    )]
    Topology(TopologyCommand),
    /// VMs that a node is to stop
    #[command(
        subcommand,
        after_help = "Example:\n  orl nodes terminations list gpu-node-1"
    )]
    Terminations(TerminationsCommand),
}

/// `orl nodes topology …`
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Report the units that a node has now
    ///
    /// A reservation whose units are not there any more, or not as they were, needs a review.
    #[command(after_help = "Example:
  orl nodes topology put node-7 --topology-gen 2 --units u0,u1,u2,u3,u4")]
    Put(TopologyArgs),
}

/// `orl nodes terminations …`
#[derive(Debug, Subcommand)]
pub enum TerminationsCommand {
    /// List the VMs that a node is to stop
    #[command(after_help = "Example:\n  orl nodes terminations list gpu-node-1")]
    List(NodeArg),
    /// Say that a VM is gone from the node (its agent does)
    #[command(after_help = "Example:\n  orl nodes terminations confirm gpu-node-1 $CONDEMNED_VM")]
    Confirm(ConfirmArgs),
}

/// A node.
#[derive(Debug, Args)]
pub struct NodeArg {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
}

/// Units in one flag.
#[derive(Debug, Args)]
pub struct Units {
    /// Units with their GPUs: u1:2,u2:2; one GPU where none are named: u1,u2
    #[arg(long, required = true, value_delimiter = ',', value_name = "UNITS")]
    units: Vec<String>,
}

/// The flags of `put`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
    /// The org that owns it
    #[arg(long, value_name = "ID")]
    owner_org_id: String,
    /// The model of its GPUs
    #[arg(long, value_name = "ID")]
    gpu_model_id: String,
    #[command(flatten)]
    units: Units,
    /// Generation of its topology [default: 1]
    #[arg(long, value_name = "N")]
    topology_gen: Option<u64>,
}

/// The flags of `topology put`.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
    /// Generation of this report: higher than the one known
    #[arg(long, value_name = "N")]
    topology_gen: u64,
    #[command(flatten)]
    units: Units,
}

/// The arguments of `terminations confirm`.
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
    /// The VM that is gone
    #[arg(value_parser = path_id)]
    vm_id: String,
}

impl Units {
    /// As the API takes them. What is behind the last colon is a number of GPUs if it is one.
    fn value(&self) -> Result<Value, Failure> {
        let unit = |text: &String| match text.rsplit_once(':') {
            Some((id, gpus)) if !gpus.is_empty() && gpus.bytes().all(|b| b.is_ascii_digit()) => {
                let gpus: u16 = gpus.parse().map_err(|_| {
                    Failure::usage(format!("--units: {gpus} is no number of GPUs of one unit"))
                })?;
                Ok(json!({ "id": id, "gpus": gpus }))
            }
            _ => Ok(json!({ "id": text })),
        };
        self.units.iter().map(unit).collect()
    }
}

impl Command {
    /// The call it comes to.
    ///
    /// # Errors
    /// If the units cannot be read.
    pub fn plan(&self) -> Result<Plan, Failure> {
        Ok(match self {
            Command::Put(args) => {
                let body = Body::default()
                    .with("ownerOrgId", args.owner_org_id.as_str())
                    .with("gpuModelId", args.gpu_model_id.as_str())
                    .with("units", args.units.value()?)
                    .maybe("topologyGen", args.topology_gen);
                let call = Call::change("PUT", &["v1", "nodes", &args.node_id]).body(body);
                Plan::one(call, &NODE)
            }
            Command::Get(args) => Plan::one(Call::get(&["v1", "nodes", &args.node_id]), &NODE),
            Command::List(page) => Plan::list(Call::get(&["v1", "nodes"]), &NODE, page),
            Command::Topology(TopologyCommand::Put(args)) => {
                let body = Body::default()
                    .with("topologyGen", args.topology_gen)
                    .with("units", args.units.value()?);
                let path = ["v1", "nodes", &args.node_id, "topology"];
                Plan::one(Call::change("PUT", &path).body(body), &NODE)
            }
            Command::Terminations(TerminationsCommand::List(args)) => {
                let call = Call::get(&["v1", "nodes", &args.node_id, "terminations"]);
                Plan::list(call, &TERMINATION, &Page::default())
            }
            Command::Terminations(TerminationsCommand::Confirm(args)) => {
                let (node, vm) = (args.node_id.as_str(), args.vm_id.as_str());
                let path = ["v1", "nodes", node, "terminations", vm, "confirm"];
                Plan::one(Call::change("POST", &path), &VM)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_carry_their_gpus_behind_the_last_colon() {
        let units = |texts: &[&str]| Units {
            units: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let read = units(&["u1", "u2:4", "gpu:0:1", "bus:a"]).value().unwrap();
        let expected = json!([
            { "id": "u1" },
            { "id": "u2", "gpus": 4 },
            { "id": "gpu:0", "gpus": 1 },
            { "id": "bus:a" },
        ]);
        assert_eq!(read, expected);
        assert!(units(&["u1:70000"]).value().is_err());
    }
}
