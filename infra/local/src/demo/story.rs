//! How the story is told: a step, its calls with their answers, and what was checked.

use std::time::{Duration, Instant};

use domain::VmId;
use http::Method;
use serde_json::{Map, Value};

use crate::agent::process::Group;
use crate::client::{Answer, CallError, Client};
use crate::failure::{Failure, run};
use crate::keys::{Keys, Part};
use crate::output::{BAD, CALL, DIM, GOOD, HEADING, Output, styled};
use crate::platform::Platform;

/// Longest time for anything that is waited for.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A call to make.
#[derive(Debug)]
pub(super) struct Call {
    by: Part,
    method: Method,
    path: String,
    body: Option<Value>,
    if_match: Option<String>,
    status: u16,
}

impl Call {
    /// A call that is to be answered with 200.
    pub(super) fn new(by: Part, method: Method, path: &str) -> Self {
        Self {
            by,
            method,
            path: path.to_owned(),
            body: None,
            if_match: None,
            status: 200,
        }
    }

    /// With this body.
    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// On the condition that the resource still has this version.
    pub(super) fn if_match(mut self, etag: &str) -> Self {
        self.if_match = Some(etag.to_owned());
        self
    }

    /// That is to be refused with this status.
    pub(super) fn refused(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

/// The story so far.
#[derive(Debug)]
pub(super) struct Story<'a> {
    output: &'a mut Output,
    client: Client,
    keys: Keys,
    steps: usize,
    started: Instant,
}

/// A call without an answer.
pub(super) fn lost(error: CallError) -> Failure {
    run("no answer", error)
}

impl<'a> Story<'a> {
    /// The beginning.
    ///
    /// # Errors
    /// [`Failure::Start`] if there is no HTTP client to be had.
    pub(super) fn new(platform: &Platform, output: &'a mut Output) -> Result<Self, Failure> {
        let client = platform.client(Part::Operator)?;
        let title = "Relet: sell a reserved GPU twice, take it back at once";
        output.line(styled(HEADING, title));
        Ok(Self {
            output,
            client,
            keys: platform.keys().clone(),
            steps: 0,
            started: Instant::now(),
        })
    }

    /// The caller with the key of a part.
    pub(super) fn client(&self, part: Part) -> Client {
        self.client.with_key(self.keys.of(part))
    }

    /// Begins a step.
    pub(super) fn step(&mut self, what: &str) {
        self.steps += 1;
        self.output.line("");
        let number = format!("{:>2}.", self.steps);
        self.output.line(format!(
            "{} {}",
            styled(HEADING, number),
            styled(HEADING, what)
        ));
    }

    /// Makes a call and shows it, and of its answer these members.
    ///
    /// # Errors
    /// [`Failure::Run`] if it is not answered with the status that was to come.
    pub(super) async fn call(&mut self, call: Call, show: &[&str]) -> Result<Answer, Failure> {
        let sent = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let condition = call.if_match.as_ref();
        let condition = condition
            .map(|etag| format!("If-Match: {etag}, "))
            .unwrap_or_default();
        self.output.line(format!(
            "    {} {} {sent} {}",
            styled(CALL, &call.method),
            call.path,
            styled(DIM, format!("({condition}by {})", call.by.name()))
        ));
        let client = self.client(call.by);
        let sent = client.send(
            call.method.clone(),
            &call.path,
            call.body.as_ref(),
            call.if_match.as_deref(),
        );
        let answer = sent.await.map_err(lost)?;
        let style = if answer.status < 300 { GOOD } else { BAD };
        let shown = if answer.status == call.status {
            pick(&answer.body, show)
        } else {
            answer.body.clone()
        };
        self.output
            .line(format!("    {} {shown}", styled(style, answer.status)));
        self.check(
            &format!("answered {}", call.status),
            answer.status == call.status,
        )?;
        Ok(answer)
    }

    /// Checks something; what holds as expected is told only where a person could not see it.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not hold.
    pub(super) fn check(&mut self, what: &str, holds: bool) -> Result<(), Failure> {
        if holds {
            if !what.starts_with("answered") {
                self.output
                    .line(format!("    {} {what}", styled(GOOD, "✓")));
            }
            return Ok(());
        }
        self.output.line(format!("    {} {what}", styled(BAD, "✗")));
        Err(Failure::Run(format!(
            "step {}: not as it should be: {what}",
            self.steps
        )))
    }

    /// Waits until something holds.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not within 10 s, or cannot be asked.
    pub(super) async fn until(
        &mut self,
        what: &str,
        mut holds: impl AsyncFnMut() -> Result<bool, CallError>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let mut held = holds().await.map_err(lost)?;
        while !held && began.elapsed() < WAIT_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
            held = holds().await.map_err(lost)?;
        }
        let after = format!("after {} ms", began.elapsed().as_millis());
        self.check(&format!("{what} {}", styled(DIM, after)), held)
    }

    /// The id of a VM in an answer.
    ///
    /// # Errors
    /// [`Failure::Run`] if it has none.
    pub(super) fn id(&mut self, body: &Value) -> Result<VmId, Failure> {
        let id = body["id"].as_str().and_then(|id| id.parse().ok());
        id.ok_or_else(|| Failure::Run(format!("step {}: no VM id", self.steps)))
    }

    /// Waits for the process behind a VM.
    ///
    /// # Errors
    /// [`Failure::Run`] if there is none within 10 s.
    pub(super) async fn process(
        &mut self,
        platform: &Platform,
        vm: &VmId,
    ) -> Result<Group, Failure> {
        let running = async || Ok(platform.host().group(vm).is_some_and(|g| g.is_alive()));
        self.until("a process runs behind it", running).await?;
        let group = platform.host().group(vm);
        group.ok_or_else(|| Failure::Run(format!("step {}: no process", self.steps)))
    }

    /// Prints an audit trail, a line for each record.
    pub(super) fn trail(&mut self, trail: &Value) {
        for record in trail["items"].as_array().into_iter().flatten() {
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            let actor = &record["actor"];
            let who = actor["orgId"].as_str().unwrap_or("the platform");
            let about = if record["vmIds"] == Value::Array(Vec::new()) {
                &record["unitIds"]
            } else {
                &record["vmIds"]
            };
            let seal: String = text("hash").chars().take(8).collect();
            self.output.line(format!(
                "    {} v{:<2} {:<22} {} {about} {}",
                styled(DIM, seal),
                record["version"].as_u64().unwrap_or_default(),
                text("type"),
                styled(CALL, who),
                styled(DIM, text("reason"))
            ));
        }
    }

    /// Tells how it ended.
    pub(super) fn end(self, outcome: &Result<(), Failure>) {
        let took = format!("{} ms", self.started.elapsed().as_millis());
        self.output.line("");
        match outcome {
            Ok(()) => {
                let text = format!("Every one of {} steps did what it should.", self.steps);
                self.output
                    .line(format!("{} {}", styled(GOOD, text), styled(DIM, took)));
            }
            Err(_) => self.output.line(styled(BAD, "The story ended here.")),
        }
    }
}

/// The named members of a body, in their order; `a.*.b` takes the member of each in a list.
fn pick(body: &Value, names: &[&str]) -> Value {
    let mut out = Map::new();
    for name in names {
        match name.split_once(".*.") {
            Some((list, member)) => {
                let each = body[list].as_array().into_iter().flatten();
                let values = each.map(|item| item[member].clone()).collect();
                out.insert(list.to_owned(), Value::Array(values));
            }
            None if body.get(name).is_some() => {
                out.insert((*name).to_owned(), body[name].clone());
            }
            None => {}
        }
    }
    Value::Object(out)
}
