//! `orl reservations`.

use clap::{Args, Subcommand};

use crate::call::{Body, Call};
use crate::cli::path_id;
use crate::commands::{Page, Plan};
use crate::output::view::{RECORD, RESERVATION, RESERVATION_OF_NODE};

/// `orl reservations …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reserve units of a node for some orgs
    #[command(after_help = "Example:
  orl reservations create gpu-node-1 --reserved-unit-ids u4,u5 \\
    --allowed-org-ids tenant-labs --managing-org-ids neocloud")]
    Create(CreateArgs),
    /// List the reservations of a node
    #[command(after_help = "Example:\n  orl reservations list gpu-node-1 --status active")]
    List(ListArgs),
    /// List the reservations that an org has a part in
    #[command(after_help = "Example:\n  orl reservations list-for-org neocloud --role manager")]
    ListForOrg(ListForOrgArgs),
    /// Show a reservation, with the version that --if-match takes
    #[command(after_help = "Example:\n  orl reservations get gpu-node-1 $RESERVATION")]
    Get(Target),
    /// End a reservation now; workloads keep running (platform operator)
    ///
    /// Its units go back to the public pool at once.
    #[command(after_help = "Example:
  orl reservations end gpu-node-1 $RESERVATION --reason 'contract over'")]
    End(ChangeArgs),
    /// Let a reservation count again after its node's units have changed (platform operator)
    #[command(after_help = "Example:\n  orl reservations reaffirm gpu-node-1 $RESERVATION")]
    Reaffirm(ChangeArgs),
    /// Show who did what to a reservation, and when
    #[command(after_help = "Example:\n  orl reservations audit gpu-node-1 $RESERVATION --all")]
    Audit(AuditArgs),
    /// Release units to spot, and take them back
    #[command(
        subcommand,
        after_help = "Example:
  orl reservations unit release gpu-node-1 $RESERVATION --unit-ids u2,u3"
    )]
    Unit(UnitCommand),
}

/// `orl reservations unit …`
#[derive(Debug, Subcommand)]
pub enum UnitCommand {
    /// Put units on the spot market
    ///
    /// They stay part of the reservation. Anyone may buy them, at tier spot only, so that a reclaim
    /// can always take them back.
    #[command(after_help = "Example:
  orl reservations unit release gpu-node-1 $RESERVATION \\
    --unit-ids u2,u3 --reason 'idle until Monday'")]
    Release(ReleaseArgs),
    /// Take units back; the spot VMs on them are terminated
    ///
    /// On a terminal it shows what would be terminated and asks first; elsewhere it needs --yes.
    /// With --watch it returns once the units are usable. Ctrl-C ends the watching, not the
    /// reclaim.
    #[command(after_help = "Examples:
  orl reservations unit reclaim gpu-node-1 $RESERVATION --unit-ids u2,u3 --dry-run
  orl reservations unit reclaim gpu-node-1 $RESERVATION \\
    --unit-ids u2,u3 --yes --watch --timeout 60s")]
    Reclaim(ReclaimArgs),
}

/// A reservation by its path.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The node
    #[arg(value_parser = path_id)]
    pub node_id: String,
    /// The reservation on it
    #[arg(value_parser = path_id)]
    pub id: String,
}

impl Target {
    fn path<'a>(&'a self, verb: Option<&'a str>) -> Vec<&'a str> {
        let mut path = vec!["v1", "nodes", &self.node_id, "reservations", &self.id];
        path.extend(verb);
        path
    }
}

/// The condition that a change may carry.
#[derive(Debug, Clone, Args)]
pub struct Condition {
    /// Only if the reservation is still at this version
    #[arg(long, value_name = "VERSION")]
    pub if_match: Option<String>,
}

/// The flags of `create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
    /// Units to reserve: u1,u2
    #[arg(long, required = true, value_delimiter = ',', value_name = "IDS")]
    reserved_unit_ids: Vec<String>,
    /// Orgs that may place workloads on them
    #[arg(long, required = true, value_delimiter = ',', value_name = "IDS")]
    allowed_org_ids: Vec<String>,
    /// Orgs that may release and reclaim them
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    managing_org_ids: Vec<String>,
    /// Begin of the term, such as 2026-12-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    starts_at: Option<String>,
    /// End of the term [default: open]
    #[arg(long, value_name = "TIME")]
    ends_at: Option<String>,
    /// The contract behind it
    #[arg(long, value_name = "TEXT")]
    contract_ref: Option<String>,
    /// Why; kept in the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The flags of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The node
    #[arg(value_parser = path_id)]
    node_id: String,
    /// Only those: pending, active, expired, cancelled or needs-review
    #[arg(long)]
    status: Option<String>,
    #[command(flatten)]
    page: Page,
}

/// The flags of `list-for-org`.
#[derive(Debug, Args)]
pub struct ListForOrgArgs {
    /// The org
    #[arg(value_parser = path_id)]
    org_id: String,
    /// Only those where it is: audience, manager or owner
    #[arg(long)]
    role: Option<String>,
    /// Only those: pending, active, expired, cancelled or needs-review
    #[arg(long)]
    status: Option<String>,
    #[command(flatten)]
    page: Page,
}

/// The flags of `end` and `reaffirm`.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    #[command(flatten)]
    target: Target,
    /// Why; kept in the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    condition: Condition,
}

/// The flags of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    page: Page,
}

/// The flags of `unit release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    #[command(flatten)]
    target: Target,
    /// Units to release: u1,u2
    #[arg(long, required = true, value_delimiter = ',', value_name = "IDS")]
    unit_ids: Vec<String>,
    /// Why; kept in the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    condition: Condition,
}

/// The flags of `unit reclaim`.
#[derive(Debug, Clone, Args)]
pub struct ReclaimArgs {
    /// The reservation.
    #[command(flatten)]
    pub target: Target,
    /// Units to take back: u1,u2
    #[arg(long, required = true, value_delimiter = ',', value_name = "IDS")]
    pub unit_ids: Vec<String>,
    /// Why; kept in the audit trail
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Only say what would be terminated; changes nothing
    #[arg(long, conflicts_with_all = ["watch", "yes"])]
    pub dry_run: bool,
    /// The condition.
    #[command(flatten)]
    pub condition: Condition,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Wait until the units are usable
    #[arg(long)]
    pub watch: bool,
}

impl ReclaimArgs {
    /// The call that does it.
    #[must_use]
    pub fn call(&self) -> Call {
        Call::once(&self.target.path(Some("reclaim")))
            .body(self.body())
            .if_match(self.condition.if_match.as_deref())
    }

    /// The call that says what it would do. It changes nothing, so it may be sent again.
    #[must_use]
    pub fn dry_call(&self) -> Call {
        let mut call = self.call().body(self.body().flag("dryRun", true));
        call.repeat = crate::call::Repeat::Safe;
        call
    }

    /// The call that reads the records of what became of it.
    #[must_use]
    pub fn audit_call(&self) -> Call {
        Call::get(&self.target.path(Some("audit"))).query("limit", Some(100))
    }

    fn body(&self) -> Body {
        Body::default()
            .list("unitIds", &self.unit_ids)
            .maybe("reason", self.reason.as_deref())
    }
}

impl Command {
    /// The call it comes to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        match self {
            Command::Create(args) => {
                let body = Body::default()
                    .list("reservedUnitIds", &args.reserved_unit_ids)
                    .list("allowedOrgIds", &args.allowed_org_ids)
                    .list("managingOrgIds", &args.managing_org_ids)
                    .maybe("startsAt", args.starts_at.as_deref())
                    .maybe("endsAt", args.ends_at.as_deref())
                    .maybe("contractRef", args.contract_ref.as_deref())
                    .maybe("reason", args.reason.as_deref());
                let path = ["v1", "nodes", &args.node_id, "reservations"];
                Plan::one(Call::once(&path).body(body), &RESERVATION)
            }
            Command::List(args) => {
                let call = Call::get(&["v1", "nodes", &args.node_id, "reservations"])
                    .query("status", args.status.as_ref());
                Plan::list(call, &RESERVATION_OF_NODE, &args.page)
            }
            Command::ListForOrg(args) => {
                let call = Call::get(&["v1", "orgs", &args.org_id, "reservations"])
                    .query("role", args.role.as_ref())
                    .query("status", args.status.as_ref());
                Plan::list(call, &RESERVATION, &args.page)
            }
            Command::Get(target) => Plan::one(Call::get(&target.path(None)), &RESERVATION),
            Command::End(args) => args.plan("end"),
            Command::Reaffirm(args) => args.plan("reaffirm"),
            Command::Audit(args) => {
                let call = Call::get(&args.target.path(Some("audit")));
                Plan::list(call, &RECORD, &args.page)
            }
            Command::Unit(UnitCommand::Release(args)) => {
                let body = Body::default()
                    .list("unitIds", &args.unit_ids)
                    .maybe("reason", args.reason.as_deref());
                let call = Call::once(&args.target.path(Some("release")))
                    .body(body)
                    .if_match(args.condition.if_match.as_deref());
                Plan::one(call, &RESERVATION)
            }
            Command::Unit(UnitCommand::Reclaim(args)) => {
                let call = if args.dry_run {
                    args.dry_call()
                } else {
                    args.call()
                };
                Plan::one(call, &RESERVATION)
            }
        }
    }
}

impl ChangeArgs {
    fn plan(&self, verb: &str) -> Plan {
        let body = Body::default().maybe("reason", self.reason.as_deref());
        let call = Call::once(&self.target.path(Some(verb)))
            .optional_body(body)
            .if_match(self.condition.if_match.as_deref());
        Plan::one(call, &RESERVATION)
    }
}
