//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use domain::audit::Head;
use domain::{NodeId, OrgId, ReservationId, Version};

use crate::agent::host::VmProgram;
use crate::audit::Source;
use crate::keys::Part;
use crate::operator::Asked;
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
    /// Print the API key of a part of the platform on this machine.
    Key(KeyArgs),
    /// Read audit trails.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Make an operator's key for a deployed platform, by writing to its table.
    OperatorKey(OperatorKeyArgs),
}

/// The flags of `operator-key`. Region and credentials are those of the environment.
#[derive(Debug, Clone, Args)]
pub struct OperatorKeyArgs {
    /// The table of the platform: the stack's output `TableName`.
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// The org that the key belongs to.
    #[arg(long, value_name = "ORG")]
    org: OrgId,
    /// The key's name, for whoever lists the keys.
    #[arg(long, value_name = "NAME", default_value = "operator")]
    name: String,
    /// Days after which it is good no more, at most ten years of them; never if left out.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
    expires_in_days: Option<u32>,
}

impl OperatorKeyArgs {
    /// The key that is asked for.
    #[must_use]
    pub fn asked(self) -> Asked {
        Asked {
            table: self.table,
            org: self.org,
            name: self.name,
            days: self.expires_in_days,
        }
    }
}

/// The flags of `key`.
#[derive(Debug, Clone, Args)]
pub struct KeyArgs {
    /// Whose: operator, owner, manager, audience, stranger or agent.
    #[arg(value_parser = part)]
    pub part: Part,
    /// Folder that the platform keeps its data in.
    #[arg(long, value_name = "DIR", default_value = ".relet")]
    pub data: PathBuf,
}

/// Reads the name of a part.
fn part(text: &str) -> Result<Part, String> {
    let names = || Part::ALL.map(Part::name).join(", ");
    Part::parse(text).ok_or_else(|| format!("the parts are {}", names()))
}

/// What to do with an audit trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check a reservation's whole trail: that no record was changed, moved, put in or taken out.
    Verify(VerifyArgs),
}

/// The flags of `audit verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// The node.
    #[arg(required_unless_present = "file", requires = "reservation")]
    node: Option<NodeId>,
    /// The reservation on it.
    reservation: Option<ReservationId>,
    /// Read the trail from this file instead: an array of records, oldest first.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["node", "url", "key", "data"])]
    file: Option<PathBuf>,
    /// The version that the reservation of the file is at, if it is known.
    #[arg(long, value_name = "VERSION", value_parser = version, requires = "file")]
    at_version: Option<Version>,
    /// A hash that the trail must have, as an earlier check printed it, or VERSION:HASH.
    #[arg(long, value_name = "HASH", value_parser = head)]
    head: Option<Head>,
    /// Base URL of the platform; RELET_URL if it is left out, else http://127.0.0.1:8083.
    #[arg(long)]
    url: Option<String>,
    /// API key to call it with; RELET_API_KEY if it is left out, else the operator's in --data.
    #[arg(long)]
    key: Option<String>,
    /// Folder that the platform keeps its data in.
    #[arg(long, value_name = "DIR", default_value = ".relet")]
    data: PathBuf,
}

/// Reads a version.
fn version(text: &str) -> Result<Version, String> {
    let number = text.parse().ok().and_then(Version::stored);
    number.ok_or_else(|| "a version is a number from 1 on".to_owned())
}

/// Reads a hash with or without a version before it.
fn head(text: &str) -> Result<Head, String> {
    let (number, hash) = match text.split_once(':') {
        None => (None, text),
        Some((number, hash)) => (Some(version(number)?), hash),
    };
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if hash.len() != 64 || !hash.bytes().all(hex) {
        return Err("a hash has 64 digits of 0-9 a-f".to_owned());
    }
    Ok(Head {
        version: number,
        hash: hash.to_owned(),
    })
}

impl VerifyArgs {
    /// Where the trail is, and the hash that it must have. What no flag says is read by `env`.
    #[must_use]
    pub fn source(self, env: impl Fn(&str) -> Option<String>) -> Option<(Source, Option<Head>)> {
        if let Some(path) = self.file {
            let at_version = self.at_version;
            return Some((Source::File { path, at_version }, self.head));
        }
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let url = self.url.or_else(|| set("RELET_URL"));
        let url = url.unwrap_or_else(|| "http://127.0.0.1:8083".to_owned());
        let source = Source::Api {
            url: url.trim_end_matches('/').to_owned(),
            key: self.key.or_else(|| set("RELET_API_KEY")),
            data: self.data,
            node: self.node?,
            reservation: self.reservation?,
        };
        Some((source, self.head))
    }
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
    let mut what = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if what.ends_with(':') {
        // What is missing stands below, one to a line, before the usage.
        let named = lines
            .by_ref()
            .take_while(|line| line.starts_with(['<', '-']));
        what = format!("{what} {}", named.collect::<Vec<_>>().join(", "));
    }
    let tip = lines.find_map(|line| line.strip_prefix("tip: "));
    let tip = tip.map(|tip| format!("; {tip}")).unwrap_or_default();
    format!("{what}{tip}; see relet --help")
}
