//! A function as the Lambda service sees it: an event in, a reply out, both JSON. The binaries and
//! the local platform run the very same values.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

/// Why an invocation failed as a whole. The service tries it again by its own rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct FunctionError {
    /// A stable name for the kind of failure.
    pub kind: &'static str,
    /// What happened, free of secrets and of what callers wrote.
    pub message: String,
}

type Handler = dyn Fn(Value) -> BoxFuture<'static, Result<Value, FunctionError>> + Send + Sync;

/// One of the platform's functions, ready to be invoked.
#[derive(Clone)]
pub struct Function {
    name: &'static str,
    handler: Arc<Handler>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

impl Function {
    /// A function of this name with this handler.
    pub fn new<H, F>(name: &'static str, handler: H) -> Self
    where
        H: Fn(Value) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Value, FunctionError>> + Send + 'static,
    {
        Self {
            name,
            handler: Arc::new(move |event| handler(event).boxed()),
        }
    }

    /// Its name, as its folder has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Handles one event. A panic in the handler is a failure of this event alone.
    ///
    /// # Errors
    /// [`FunctionError`] if the event failed as a whole.
    pub async fn invoke(&self, event: Value) -> Result<Value, FunctionError> {
        let reply = AssertUnwindSafe(async { (self.handler)(event).await });
        reply.catch_unwind().await.unwrap_or_else(|_| {
            Err(FunctionError {
                kind: "Panic",
                message: format!("{} panicked", self.name),
            })
        })
    }
}
