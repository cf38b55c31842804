//! `orl api-keys`.

use clap::{Args, Subcommand};

use crate::call::{Body, Call};
use crate::cli::path_id;
use crate::commands::{Page, Plan};
use crate::output::view::{DOCUMENT, KEY};

/// `orl api-keys …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key; its secret is shown this once
    ///
    /// With --output id the secret is not shown, and nobody will ever know it.
    #[command(after_help = "Example:
  orl api-keys create neocloud --name 'build server' --role member")]
    Create(CreateArgs),
    /// List an org's keys, without their secrets
    #[command(after_help = "Example:\n  orl api-keys list neocloud")]
    List(ListArgs),
    /// Revoke a key for good
    #[command(after_help = "Example:\n  orl api-keys delete neocloud $KEY_ID")]
    Delete(DeleteArgs),
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
    /// What its holder is: owner, admin, member or viewer
    #[arg(
        long,
        conflicts_with = "permissions",
        required_unless_present = "permissions"
    )]
    role: Option<String>,
    /// What it may do: reservation.capacity, vms:read, vms:write, node.agent
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    permissions: Vec<String>,
    /// Seconds until it ends [default: never]
    #[arg(long, value_name = "N")]
    expires_in_seconds: Option<u32>,
    /// A key of the platform's operator, which only operators make
    #[arg(long)]
    platform_operator: bool,
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

/// The arguments of `delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The org
    #[arg(value_parser = path_id)]
    org_id: String,
    /// The key's id
    #[arg(value_parser = path_id)]
    id: String,
}

impl Command {
    /// The call it comes to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        match self {
            Command::Create(args) => {
                let body = Body::default()
                    .with("name", args.name.as_str())
                    .maybe("role", args.role.as_deref())
                    .list("permissions", &args.permissions)
                    .maybe("expiresInSeconds", args.expires_in_seconds)
                    .flag("platformOperator", args.platform_operator);
                let path = ["v1", "orgs", &args.org_id, "api-keys", "create"];
                Plan::one(Call::change("POST", &path).body(body), &KEY)
            }
            Command::List(args) => {
                let call = Call::get(&["v1", "orgs", &args.org_id, "api-keys"]);
                Plan::list(call, &KEY, &args.page)
            }
            Command::Delete(args) => {
                let path = ["v1", "orgs", &args.org_id, "api-keys", &args.id];
                Plan::one(Call::change("DELETE", &path), &DOCUMENT)
            }
        }
    }
}
