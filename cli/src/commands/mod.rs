//! The commands, group by group: their flags, and the call that each comes to.

pub mod auth;
pub mod gpus;
pub mod keys;
pub mod nodes;
pub mod reservations;
pub mod vms;

use clap::Args;

use crate::call::Call;
use crate::cli::Command;
use crate::failure::Failure;
use crate::output::view::{self, View};

/// A call with how its answer is shown.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The call.
    pub call: Call,
    /// How its answer is shown.
    pub view: &'static View,
    /// Which part of a list is wanted; `None` where the answer is a single thing.
    pub page: Option<Page>,
}

impl Plan {
    /// A call whose answer is a single thing.
    #[must_use]
    pub fn one(call: Call, view: &'static View) -> Self {
        Self {
            call,
            view,
            page: None,
        }
    }

    /// A call whose answer is a page of a list.
    #[must_use]
    pub fn list(call: Call, view: &'static View, page: &Page) -> Self {
        Self {
            call: call
                .query("limit", page.limit)
                .query("cursor", page.cursor.as_ref()),
            view,
            page: Some(page.clone()),
        }
    }
}

/// Which part of a list.
#[derive(Debug, Clone, Default, Args)]
pub struct Page {
    /// Items on a page, 1 to 100 [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub limit: Option<u8>,
    /// Go on behind an earlier page: its nextCursor
    #[arg(long)]
    pub cursor: Option<String>,
    /// All pages, to the end of the list
    #[arg(long)]
    pub all: bool,
}

/// The call that a command comes to; `None` for those that are not one call of the API.
///
/// # Errors
/// If the command line cannot be a call.
pub fn plan(command: &Command) -> Result<Option<Plan>, Failure> {
    Ok(Some(match command {
        Command::Reservations(command) => command.plan(),
        Command::Nodes(command) => command.plan()?,
        Command::Vms(command) => command.plan(),
        Command::GpuAvailability(command) => command.plan(),
        Command::ApiKeys(command) => command.plan(),
        Command::Whoami => Plan::one(Call::get(&["v1", "whoami"]), &view::CALLER),
        Command::Health => Plan::one(Call::get(&["healthz"]).open(), &view::HEALTH),
        Command::Openapi => Plan::one(Call::get(&["v1", "openapi.json"]).open(), &view::DOCUMENT),
        Command::Auth(_) | Command::Version | Command::Completions { .. } | Command::Man { .. } => {
            return Ok(None);
        }
    }))
}
