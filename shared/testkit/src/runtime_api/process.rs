//! A function binary as a process of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::{FUNCTION_NAME, Failure, INVOKE_MS_MAX, RuntimeApi};
use crate::doubles::lock;
use crate::logs;

/// Most lines of log that are kept.
const LOG_LINES_MAX: usize = 2_000;

/// A running function binary. The process ends when this is dropped.
#[derive(Debug)]
pub struct FunctionProcess {
    api: RuntimeApi,
    child: Child,
    logs: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl FunctionProcess {
    /// Starts `binary` with what the service sets, then `env` over it. Nothing else of this
    /// process's environment reaches it.
    ///
    /// # Errors
    /// If the server or the process cannot be started.
    pub async fn start(binary: &Path, env: &[(&str, &str)]) -> std::io::Result<Self> {
        Self::start_with(binary, &[], env).await
    }

    pub(super) async fn start_with(
        binary: &Path,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> std::io::Result<Self> {
        let api = RuntimeApi::start().await?;
        let mut child = Command::new(binary)
            .args(args)
            .env_clear()
            .envs(service_env(&api))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let logs = Arc::default();
        let name = binary.file_name().unwrap_or_default().to_string_lossy();
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(keep_lines(out, Arc::clone(&logs), logs::file(&name)?));
        }
        if let Some(err) = child.stderr.take() {
            readers.push(keep_lines(err, Arc::clone(&logs), logs::file(&name)?));
        }
        Ok(Self {
            api,
            child,
            logs,
            readers,
        })
    }

    /// The process's id; `None` once it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Hands it an event and waits for the answer, at most [`INVOKE_MS_MAX`].
    ///
    /// # Errors
    /// [`Failure`] if it failed, could not start, ended, or did not answer in time.
    pub async fn invoke(&mut self, event: &Value) -> Result<Value, Failure> {
        self.invoke_text(event.to_string()).await
    }

    /// As [`Self::invoke`], with an event that need not be JSON.
    ///
    /// # Errors
    /// As [`Self::invoke`].
    pub async fn invoke_text(&mut self, event: String) -> Result<Value, Failure> {
        self.invoke_within(event, Duration::from_millis(INVOKE_MS_MAX))
            .await
    }

    pub(super) async fn invoke_within(
        &mut self,
        event: String,
        wait: Duration,
    ) -> Result<Value, Failure> {
        let status = tokio::select! {
            // A reply that has come counts, even if the process ended right after it.
            biased;
            reply = self.api.invoke_text(event, wait) => return reply,
            status = self.child.wait() => status,
        };
        // Both pipes are at their end by now, so the last lines are soon read.
        for reader in self.readers.drain(..) {
            let _ = tokio::time::timeout(Duration::from_secs(1), reader).await;
        }
        let what = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(Failure::Exited(format!(
            "{what}\n{}",
            self.logs().join("\n")
        )))
    }

    /// Waits until it has written a line that is `wanted`, at most [`INVOKE_MS_MAX`]; the line.
    pub async fn logged(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let look = async {
            loop {
                if let Some(line) = self.logs().into_iter().find(|line| wanted(line)) {
                    return line;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let wait = Duration::from_millis(INVOKE_MS_MAX);
        tokio::time::timeout(wait, look).await.ok()
    }

    /// What it has written to its outputs, line by line, the last lines if there were very many.
    #[must_use]
    pub fn logs(&self) -> Vec<String> {
        lock(&self.logs).iter().cloned().collect()
    }
}

/// The environment that the service gives a function.
fn service_env(api: &RuntimeApi) -> [(&'static str, String); 11] {
    [
        ("AWS_LAMBDA_RUNTIME_API", api.address().to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", FUNCTION_NAME.to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/test".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "test".to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_DEFAULT_REGION", "eu-central-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        // Nothing here may look for credentials on the network.
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ]
}

fn keep_lines(
    from: impl AsyncRead + Unpin + Send + 'static,
    logs: Arc<Mutex<VecDeque<String>>>,
    mut file: Option<File>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(Err(error)) = file.as_mut().map(|file| writeln!(file, "{line}")) {
                unreachable!("a line of log is not kept: {error}");
            }
            let mut logs = lock(&logs);
            if logs.len() >= LOG_LINES_MAX {
                logs.pop_front();
            }
            logs.push_back(line);
        }
    })
}
