//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::agent::host::VmProgram;
use crate::platform::Options;
use crate::serve::Serve;

/// Sell a reserved GPU twice, and take it back at once: the whole platform on this machine.
#[derive(Debug, Parser)]
#[command(name = "relet", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; `serve` if nothing is named.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the platform until Ctrl-C (the default).
    Serve(ServeArgs),
    /// Play the whole story once on a platform of its own, and print every call and its answer.
    Demo,
}

/// The flags of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address and port to answer on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083")]
    listen: SocketAddr,
    /// Folder to keep the data in.
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".relet",
        conflicts_with = "memory"
    )]
    data: PathBuf,
    /// Keep nothing: the data are gone with the process.
    #[arg(long)]
    memory: bool,
    /// Set up no node and no reservation, only the keys.
    #[arg(long)]
    no_demo: bool,
    /// File to write the URL and the keys to, as JSON, once the platform answers.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Shell command to run behind each VM, instead of one that sleeps; it finds the VM in
    /// RELET_VM_ID and RELET_UNIT_IDS. With --memory its standard input closes when the platform
    /// ends, however that ends.
    #[arg(long, value_name = "COMMAND")]
    vm_command: Option<String>,
    /// Milliseconds that a VM's process may take to end after SIGTERM, before SIGKILL.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    grace_ms: u64,
}

impl ServeArgs {
    /// How to serve, by these flags.
    #[must_use]
    pub fn options(self) -> Serve {
        Serve {
            platform: Options {
                listen: self.listen,
                data: (!self.memory).then_some(self.data),
                program: VmProgram {
                    command: self.vm_command,
                    grace: Duration::from_millis(self.grace_ms),
                },
            },
            demo_fleet: !self.no_demo,
            ready_file: self.ready_file,
        }
    }
}

impl Cli {
    /// The command that the line comes to.
    #[must_use]
    pub fn command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// A wrong command line in one line: what is wrong, and where to look.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line is wrong");
    let what = first.strip_prefix("error: ").unwrap_or(first);
    let tip = lines.find_map(|line| line.strip_prefix("tip: "));
    let tip = tip.map(|tip| format!("; {tip}")).unwrap_or_default();
    format!("{what}{tip}; see relet --help")
}
