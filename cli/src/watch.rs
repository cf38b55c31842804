//! Watches condemned VMs go, until their units are usable.
//!
//! What everyone who may reclaim can see is the dry run of a reclaim: it names the spot VMs that
//! are still on the units. Where that is refused, because the reservation is over meanwhile, its
//! audit trail tells: a VM that is gone has a `vm.terminated` record there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::{Client, shown};
use crate::commands::reservations::ReclaimArgs;
use crate::failure::{Exit, Failure};
use crate::output::Screen;
use crate::output::table::{DIM, GOOD, WARN, styled};
use crate::output::text::{clipped, columns};
use crate::prompt::Mode;
use crate::reclaim::names;

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The longest pause after looks that failed, where the platform does not ask for more.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Longest time for one look: a platform that hangs for a while is looked at again.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Most pages of an audit trail that one look reads.
const PAGES_MAX: usize = 1_000;

/// A watch that is ready to begin.
#[derive(Debug)]
pub struct Watch {
    args: ReclaimArgs,
    interrupt: Signal,
    _mode: Option<Mode>,
}

/// What has been seen so far.
struct Seen {
    vms: Vec<String>,
    there: BTreeSet<String>,
    began: Instant,
    /// The columns of the line of progress that stands on the terminal.
    line: usize,
    /// Why the reservation could not be asked any more: it is over, or under review.
    over: Option<String>,
    /// The last failure of a look, until one works.
    trouble: Option<String>,
}

impl Watch {
    /// From now on Ctrl-C does not end the process, but [`Watch::interrupted`].
    ///
    /// # Errors
    /// If signals cannot be taken.
    pub fn ready(args: ReclaimArgs) -> Result<Self, Failure> {
        let interrupt = signal(SignalKind::interrupt());
        let interrupt =
            interrupt.map_err(|error| Failure::local(format!("cannot take signals: {error}")))?;
        Ok(Self {
            args,
            interrupt,
            _mode: Mode::unflushed(),
        })
    }

    /// Waits for Ctrl-C.
    pub async fn interrupted(&mut self) {
        if self.interrupt.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Shows each VM going, and returns when all are gone.
    ///
    /// # Errors
    /// Once `timeout` has passed since it `began`, on Ctrl-C, or if the platform refuses to be
    /// looked at.
    pub async fn until_usable(
        mut self,
        client: &Client,
        screen: &mut Screen,
        vms: Vec<String>,
        (began, timeout): (Instant, Duration),
    ) -> Result<(), Failure> {
        let args = self.args.clone();
        let left = timeout.saturating_sub(began.elapsed());
        let mut seen = Seen {
            there: vms.iter().cloned().collect(),
            vms,
            began: Instant::now(),
            line: 0,
            over: None,
            trouble: None,
        };
        if screen.is_live() {
            screen.say("");
        }
        for vm in &seen.vms {
            screen.say(&format!("VM {vm}  {}", styled(WARN, "condemned")));
        }
        let ended = tokio::select! {
            ended = tokio::time::timeout(left, seen.follow(client, screen, &args)) => Some(ended),
            () = self.interrupted() => None,
        };
        seen.close_line(screen);
        match ended {
            Some(Ok(Ok(()))) => {
                if let Some(why) = &seen.over {
                    return Err(not_its_own(why));
                }
                let units = args.unit_ids.join(", ");
                let line = format!("Usable: {units}, after {}", rounded(seen.began.elapsed()));
                screen.say(&styled(GOOD, &line));
                Ok(())
            }
            Some(Ok(Err(failure))) => Err(out_of_sight(failure)),
            Some(Err(_)) => Err(out_of_time(&seen, timeout)),
            None => Err(left_behind(screen, &args, Some(seen.there.len()))),
        }
    }
}

impl Seen {
    async fn follow(
        &mut self,
        client: &Client,
        screen: &mut Screen,
        args: &ReclaimArgs,
    ) -> Result<(), Failure> {
        let mut pause = LOOK_EVERY;
        while !self.there.is_empty() {
            match look(client, args, &self.there).await {
                Ok((there, over)) => {
                    self.over = over;
                    self.trouble = None;
                    pause = LOOK_EVERY;
                    for vm in self.there.clone() {
                        if !there.contains(&vm) {
                            self.gone(screen, &vm);
                        }
                    }
                    self.there = there;
                }
                Err(failure) if failure.exit == Exit::Server => {
                    self.trouble = Some(failure.what);
                    pause = (pause * 2)
                        .min(PAUSE_MAX)
                        .max(failure.wait.unwrap_or_default());
                }
                Err(failure) => return Err(failure),
            }
            if !self.there.is_empty() {
                self.progress(screen);
                tokio::time::sleep(pause).await;
            }
        }
        Ok(())
    }

    fn gone(&mut self, screen: &mut Screen, vm: &str) {
        self.close_line(screen);
        let after = rounded(self.began.elapsed());
        screen.say(&format!(
            "VM {vm}  {}  after {after}",
            styled(GOOD, "gone     ")
        ));
    }

    /// The line that says how far it is, written over itself; nothing off a terminal.
    fn progress(&mut self, screen: &mut Screen) {
        if !screen.is_live() {
            return;
        }
        let (all, gone) = (self.vms.len(), self.vms.len() - self.there.len());
        let after = self.began.elapsed().as_secs();
        let trouble = self
            .trouble
            .as_deref()
            .map(|what| format!(" (trying again: {what})"));
        let text = format!(
            "{gone} of {all} gone, {after}s{}",
            trouble.unwrap_or_default()
        );
        let text = clipped(&text, screen.width().saturating_sub(1));
        // Blanks go over what stood there: without colours nothing else would wipe it out.
        let over = " ".repeat(self.line.saturating_sub(columns(&text)));
        screen.say_on(&format!("\r{}{over}", styled(DIM, &text)));
        self.line = columns(&text);
    }

    fn close_line(&mut self, screen: &mut Screen) {
        let line = std::mem::take(&mut self.line);
        if line > 0 {
            screen.say_on(&format!("\r{}\r", " ".repeat(line)));
        }
    }
}

/// Which of these VMs are still on the units; and why the reservation cannot be asked, if so.
async fn look(
    client: &Client,
    args: &ReclaimArgs,
    of: &BTreeSet<String>,
) -> Result<(BTreeSet<String>, Option<String>), Failure> {
    let mut dry = args.dry_call();
    // Whatever else happens to the reservation, these VMs are what is watched.
    dry.if_match = None;
    match client.send(&dry, LOOK_MAX).await {
        Ok(answer) => {
            let named = names(&answer.body, "wouldTerminate")?;
            let there = named.into_iter().filter(|vm| of.contains(vm)).collect();
            Ok((there, None))
        }
        Err(failure) if failure.exit == Exit::Server || failure.exit == Exit::Auth => Err(failure),
        Err(failure) => {
            let there = by_records(client, args, of).await?;
            Ok((there, Some(failure.what)))
        }
    }
}

/// The same, by the audit trail.
async fn by_records(
    client: &Client,
    args: &ReclaimArgs,
    of: &BTreeSet<String>,
) -> Result<BTreeSet<String>, Failure> {
    let mut there = of.clone();
    let mut call = args.audit_call();
    for _ in 0..PAGES_MAX {
        let answer = client.send(&call, LOOK_MAX).await?;
        let records = answer.body["items"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let gone = records
            .iter()
            .filter(|record| record["type"] == "vm.terminated");
        for vm in gone
            .filter_map(|record| record["vmIds"].as_array())
            .flatten()
        {
            there.remove(vm.as_str().unwrap_or_default());
        }
        let cursor = answer.body["nextCursor"].as_str();
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            break;
        };
        call = args.audit_call().query("cursor", Some(cursor));
    }
    Ok(there)
}

fn rounded(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

/// The VMs are gone, but the units are not there to be used: the reservation has changed.
fn not_its_own(why: &str) -> Failure {
    let what = format!("all VMs are gone, but the units are not usable: {why}");
    let hint = "orl reservations get shows what became of the reservation";
    Failure::new(Exit::Conflict, what).hint(hint)
}

/// A refusal to be looked at comes after the reclaim, and must not pass for one of it.
fn out_of_sight(failure: Failure) -> Failure {
    let what = format!(
        "the units are reclaimed, but cannot be watched: {}",
        failure.what
    );
    Failure { what, ..failure }
}

fn out_of_time(seen: &Seen, timeout: Duration) -> Failure {
    let (all, left) = (seen.vms.len(), seen.there.len());
    let what = format!(
        "the units are reclaimed, but {left} of {all} VMs are still there after {}",
        shown(timeout)
    );
    let hint = match &seen.trouble {
        Some(trouble) => format!("the last look failed: {trouble}"),
        None => "they go on stopping: orl nodes terminations list shows them to the node's owner"
            .to_owned(),
    };
    Failure::new(Exit::Waiting, what).hint(hint)
}

/// What Ctrl-C leaves behind: `there` VMs, or nobody knows, as the reclaim was on its way.
pub fn left_behind(screen: &mut Screen, args: &ReclaimArgs, there: Option<usize>) -> Failure {
    screen.say("");
    let (node, id) = (&args.target.node_id, &args.target.id);
    let (what, hint) = match there {
        Some(count) => (
            format!("stopped watching; the reclaim is done and goes on: {count} VMs still to go"),
            format!("orl reservations audit {node} {id} --all shows when they are gone"),
        ),
        None => (
            "stopped while the reclaim was on its way: it may be done".to_owned(),
            format!("orl reservations get {node} {id} shows what became of it"),
        ),
    };
    Failure::new(Exit::Interrupted, what).hint(hint)
}
