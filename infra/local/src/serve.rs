//! `relet serve`: the platform, until it is told to stop.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::data::{clear, replace};
use crate::failure::{Failure, start};
use crate::fleet;
use crate::keys::Part;
use crate::output::{CALL, DIM, GOOD, HEADING, Output, styled};
use crate::platform::{NODE, Options, Platform};

/// How to serve.
#[derive(Debug, Clone)]
pub struct Serve {
    /// The platform.
    pub platform: Options,
    /// Whether to set up the demo fleet.
    pub demo_fleet: bool,
    /// The file to write once the platform answers: its URL and keys, JSON.
    pub ready_file: Option<PathBuf>,
}

/// Serves until SIGINT or SIGTERM; a second one ends the process at once.
///
/// # Errors
/// [`Failure::Start`] or [`Failure::Run`] says what went wrong.
pub async fn serve(options: &Serve, output: &mut Output) -> Result<(), Failure> {
    let no_signals = |error| start("cannot take signals", error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut told = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let mut platform = tokio::select! {
        started = Platform::start(&options.platform) => started?,
        () = told() => return Ok(()),
    };
    let reservation = tokio::select! {
        ready = make_ready(options, &platform) => ready,
        () = told() => return platform.stop().await,
    };
    let reservation = match reservation {
        Ok(reservation) => reservation,
        Err(failure) => return platform.stop().await.and(Err(failure)),
    };
    banner(
        output,
        &platform,
        reservation.as_deref(),
        options.platform.data.as_deref(),
    );
    tokio::select! {
        failure = platform.ended() => return platform.stop().await.and(Err(failure)),
        () = told() => {}
    }
    output.line(styled(DIM, "stopping"));
    tokio::select! {
        stopped = platform.stop() => stopped,
        () = told() => Err(Failure::Run("stopped before everything had ended".to_owned())),
    }
}

/// Sets up the fleet, if there is to be one, and says that the platform is ready; the id of the
/// fleet's reservation.
async fn make_ready(options: &Serve, platform: &Platform) -> Result<Option<String>, Failure> {
    if let Some(file) = &options.ready_file {
        clear(file).map_err(|error| unwritable(file, error))?;
    }
    let reservation = match options.demo_fleet {
        true => Some(fleet::set_up(platform).await?),
        false => None,
    };
    if let Some(file) = &options.ready_file {
        let text = json!({ "url": platform.url(), "keys": platform.keys().revealed() });
        let written = replace(file, text.to_string().as_bytes());
        written.map_err(|error| unwritable(file, error))?;
    }
    Ok(reservation)
}

fn unwritable(file: &Path, error: std::io::Error) -> Failure {
    start(&format!("cannot write to {}", file.display()), error)
}

fn banner(
    output: &mut Output,
    platform: &Platform,
    reservation: Option<&str>,
    data: Option<&Path>,
) {
    let url = platform.url();
    let place = match data {
        Some(folder) => format!("data in {}", folder.display()),
        None => "data in memory".to_owned(),
    };
    output.line(format!(
        "{} {}  {}",
        styled(HEADING, "relet"),
        styled(GOOD, url),
        styled(DIM, place)
    ));
    output.line("");
    output.line(styled(HEADING, "Keys"));
    for part in Part::ALL {
        let key = platform.keys().of(part);
        output.line(format!(
            "  {:<9} {}  {}",
            part.name(),
            styled(CALL, key),
            styled(DIM, part.org())
        ));
    }
    let Some(reservation) = reservation else {
        return;
    };
    let path = format!("{url}/v1/nodes/{NODE}/reservations/{reservation}");
    let manager = platform.keys().of(Part::Manager);
    let stranger = platform.keys().of(Part::Stranger);
    let spot = format!(r#"{{"name":"cheap","tier":"spot","nodeId":"{NODE}","unitIds":["u2"]}}"#);
    output.line("");
    output.line(styled(HEADING, "Try it"));
    let calls = [
        (
            "the manager releases two units",
            post(manager, &format!("{path}/release"), UNITS),
        ),
        (
            "a stranger buys one of them at spot",
            post(
                stranger,
                &format!("{url}/v1/orgs/{}/vms/create", Part::Stranger.org()),
                &spot,
            ),
        ),
        (
            "what would a reclaim terminate?",
            post(manager, &format!("{path}/reclaim?dryRun=true"), UNITS),
        ),
        (
            "take them back",
            post(manager, &format!("{path}/reclaim"), UNITS),
        ),
        (
            "who did what",
            format!("curl -s {path}/audit -H 'Authorization: Bearer {manager}'"),
        ),
    ];
    for (what, call) in calls {
        output.line(styled(DIM, format!("  # {what}")));
        output.line(format!("  {call}"));
    }
    output.line("");
    let next = "step by step, with orl: docs/tutorial.md; Ctrl-C stops it";
    output.line(styled(DIM, next));
}

/// The units that the example calls are about.
const UNITS: &str = r#"{"unitIds":["u2","u3"]}"#;

fn post(key: &str, url: &str, body: &str) -> String {
    format!(
        "curl -s -X POST '{url}' -H 'Authorization: Bearer {key}' \
         -H 'Content-Type: application/json' -d '{body}'"
    )
}
