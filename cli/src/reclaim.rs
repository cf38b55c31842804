//! Reclaim, with a question before it and a watch after it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{Global, TIMEOUT_DEFAULT};
use crate::client::{Answer, Client};
use crate::commands::reservations::ReclaimArgs;
use crate::failure::{Exit, Failure, other_shape};
use crate::output::Screen;
use crate::output::table::{BAD, GOOD, HEADING, WARN, styled};
use crate::output::text::{plain, wrapped};
use crate::output::view::RESERVATION;
use crate::prompt;
use crate::watch::{self, Watch};

/// How long a watch goes on where the command line does not say.
pub const WATCH_DEFAULT: Duration = Duration::from_secs(600);

/// Most plans that are shown before it is given up: somebody else is changing it all the time.
const PLANS_MAX: u32 = 5;

/// Reclaims.
///
/// # Errors
/// If it is not wanted, refused, or not over in time.
pub async fn reclaim(
    client: &Client,
    screen: &mut Screen,
    args: &ReclaimArgs,
    global: &Global,
) -> Result<(), Failure> {
    let call_timeout = match (args.watch, global.timeout) {
        // With a watch, the time given is for all of it.
        (true, Some(all)) => all.min(TIMEOUT_DEFAULT),
        _ => global.call_timeout(),
    };
    // From here on Ctrl-C is told what it leaves behind.
    let mut watch = match args.watch {
        true => Some(Watch::ready(args.clone())?),
        false => None,
    };
    let began = Instant::now();
    let answer = if args.yes {
        send(client, screen, args, call_timeout, watch.as_mut()).await?
    } else if screen.is_interactive() {
        asked(client, screen, args, call_timeout, watch.as_mut()).await?
    } else {
        let what = "a reclaim terminates spot VMs, and there is no terminal to ask on";
        let hint = "--yes goes ahead without asking, --dry-run shows what would be terminated";
        return Err(Failure::usage(what).hint(hint));
    };
    let shown = screen.answer(&RESERVATION, &answer);
    let Some(watch) = watch else {
        return shown.map_err(done_all_the_same);
    };
    // Reading the question takes as long as it takes.
    let began = if args.yes { began } else { Instant::now() };
    let vms = names(&answer.body, "terminated")?;
    let timeout = global.timeout.unwrap_or(WATCH_DEFAULT);
    // Whether or not anybody read the answer: success means that the units are usable.
    watch
        .until_usable(client, screen, vms, (began, timeout))
        .await?;
    shown.map_err(done_all_the_same)
}

/// Waits for something, or for Ctrl-C where that does not end the process by itself.
async fn unless_stopped<T>(
    watch: Option<&mut Watch>,
    done: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(watch) = watch else {
        return done.await;
    };
    tokio::select! {
        done = done => done,
        () = watch.interrupted() => Err(Failure::new(Exit::Interrupted, "")),
    }
}

async fn send(
    client: &Client,
    screen: &mut Screen,
    args: &ReclaimArgs,
    timeout: Duration,
    watch: Option<&mut Watch>,
) -> Result<Answer, Failure> {
    let call = args.call();
    let sent = unless_stopped(watch, client.send(&call, timeout)).await;
    sent.map_err(|failure| match failure.exit {
        Exit::Interrupted => watch::left_behind(screen, args, None),
        _ => failure,
    })
}

/// Shows what would happen, asks, and does it on the condition that nothing has changed since.
async fn asked(
    client: &Client,
    screen: &mut Screen,
    args: &ReclaimArgs,
    timeout: Duration,
    mut watch: Option<&mut Watch>,
) -> Result<Answer, Failure> {
    for round in 0..PLANS_MAX {
        let dry = args.dry_call();
        let plan = unless_stopped(watch.as_deref_mut(), client.send(&dry, timeout)).await;
        let plan = plan.map_err(nothing_done)?;
        let version = plan.version.clone().or(args.condition.if_match.clone());
        let version = version.ok_or_else(unbound)?;
        let victims = names(&plan.body, "wouldTerminate")?;
        show(screen, args, &victims, &names(&plan.body, "wouldSkip")?);
        let ask = match victims.len() {
            0 => None,
            1 => Some("Reclaim and terminate this VM?".to_owned()),
            many => Some(format!("Reclaim and terminate these {many} VMs?")),
        };
        if let Some(ask) = ask {
            let answer = prompt::confirmed(screen, &ask);
            let yes = unless_stopped(watch.as_deref_mut(), answer).await;
            if !yes.map_err(nothing_done)? {
                let what = "not reclaimed: you said no";
                return Err(Failure::local(what).hint("nothing was changed"));
            }
        }
        if !victims.is_empty() {
            screen.say("");
        }
        let mut sent = args.clone();
        sent.condition.if_match = Some(version);
        let done = send(client, screen, &sent, timeout, watch.as_deref_mut()).await;
        let changed = matches!(&done, Err(failure) if is_other_version(failure));
        if !changed || args.condition.if_match.is_some() || round + 1 == PLANS_MAX {
            return done;
        }
        let line = "The reservation has changed since. Nothing was reclaimed; now it would be:";
        screen.say(&styled(WARN, line));
    }
    Err(Failure::new(
        Exit::Conflict,
        "the reservation changes all the time",
    ))
}

/// A failure to show the answer of a change.
pub(crate) fn done_all_the_same(failure: Failure) -> Failure {
    failure.hint("the change is done all the same: only its answer is lost")
}

/// Why a plan cannot be asked about.
fn unbound() -> Failure {
    let what = "the plan came without a version (ETag): nothing would bind the reclaim to it";
    let hint = "does a proxy take the ETag away? --yes reclaims without a plan";
    Failure::new(Exit::Server, what).hint(hint)
}

/// A failure before anything was changed.
fn nothing_done(failure: Failure) -> Failure {
    match failure.exit {
        Exit::Interrupted => Failure::new(Exit::Interrupted, "stopped: nothing was reclaimed"),
        _ => failure,
    }
}

fn is_other_version(failure: &Failure) -> bool {
    failure
        .code
        .as_deref()
        .is_some_and(|code| code.starts_with("version_mismatch"))
}

/// Shows a plan.
fn show(screen: &mut Screen, args: &ReclaimArgs, dead: &[String], left: &[String]) {
    let what = format!(
        "Reclaim {} on {}",
        args.unit_ids.join(", "),
        args.target.node_id
    );
    for line in wrapped(&what, screen.width()) {
        screen.say(&styled(HEADING, &line));
    }
    screen.say(&format!("  reservation  {}", args.target.id));
    for vm in dead {
        screen.say(&format!("  {}    {vm}", styled(BAD, "terminate")));
    }
    for vm in left {
        screen.say(&format!("  {}        {vm}", styled(GOOD, "leave")));
    }
    if dead.is_empty() {
        screen.say("  no spot VM is on them: nothing is terminated");
    }
}

/// The ids in a list of an answer. That it is not there does not mean that it is empty.
///
/// # Errors
/// If there is no such list.
pub(crate) fn names(body: &Value, list: &str) -> Result<Vec<String>, Failure> {
    let items = body[list].as_array().ok_or_else(|| other_shape(list))?;
    Ok(items
        .iter()
        .map(|id| plain(id.as_str().unwrap_or("?")))
        .collect())
}
