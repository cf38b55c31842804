//! The wire between a store and the engine: counts requests, measures what they cost, and fails
//! them as a test asks.

mod access;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};

use crate::doubles::lock;

pub use access::Access;

/// One HTTP request, by what it was and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The operation, such as `UpdateItem`.
    pub operation: String,
    /// Units of capacity, over the table and its indexes; 0 unless the wire measures.
    pub units: f64,
    /// Whether the engine carried it out and its reply came back.
    pub answered: bool,
}

/// How a request fails.
pub enum Fault {
    /// It is carried out, then the future runs, then its reply is lost.
    LostReply(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It is refused as over the rate.
    Throttled,
    /// It is refused because another writer is in the way.
    Conflict,
    /// The store answers with a fault and does nothing.
    Broken,
}

impl Fault {
    /// Loses the reply, with nothing in between.
    #[must_use]
    pub fn lost_reply() -> Self {
        Fault::LostReply(Box::pin(async {}))
    }

    /// Loses the reply; `meanwhile` happens between the write and the next try.
    pub fn lost_reply_while(meanwhile: impl Future<Output = ()> + Send + 'static) -> Self {
        Fault::LostReply(Box::pin(meanwhile))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::LostReply(_) => "LostReply",
            Fault::Throttled => "Throttled",
            Fault::Conflict => "Conflict",
            Fault::Broken => "Broken",
        })
    }
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<Call>,
    accesses: BTreeSet<Access>,
    faults: VecDeque<(String, Fault)>,
    numbered: Option<(usize, Fault)>,
    measures: bool,
    watches: bool,
    forgets_tokens: bool,
    sent: u64,
}

/// The wire. Its clones are the same wire.
#[derive(Debug, Clone)]
pub struct Wire {
    state: Arc<Mutex<State>>,
    inner: SharedHttpClient,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            inner: aws_smithy_http_client::Builder::new().build_http(),
        }
    }
}

impl Wire {
    /// The calls since the last time this was asked.
    #[must_use]
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.state).calls)
    }

    /// Notes what every request from now on needs the right to.
    pub fn watch(&self) {
        lock(&self.state).watches = true;
    }

    /// What the requests since the last time this was asked needed the right to.
    #[must_use]
    pub fn take_accesses(&self) -> BTreeSet<Access> {
        std::mem::take(&mut lock(&self.state).accesses)
    }

    /// Asks the engine for the cost of every request from now on.
    pub fn measure(&self) {
        lock(&self.state).measures = true;
    }

    /// Makes the engine take every repeated transaction for a new one, as it does once it has
    /// forgotten the token: then the conditions alone must tell.
    pub fn forget_tokens(&self) {
        lock(&self.state).forgets_tokens = true;
    }

    /// Fails the next request of this operation. Faults of one operation come in the order given.
    pub fn fail(&self, operation: &str, fault: Fault) {
        let fault = (operation.to_owned(), fault);
        lock(&self.state).faults.push_back(fault);
    }

    /// Fails the request of this number from now on, counted from 0, whatever its operation.
    pub fn fail_number(&self, number: usize, fault: Fault) {
        lock(&self.state).numbered = Some((number, fault));
    }

    /// How many faults have not struck yet.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        let state = lock(&self.state);
        state.faults.len() + usize::from(state.numbered.is_some())
    }

    fn note(&self, operation: &str, units: f64, answered: bool) {
        lock(&self.state).calls.push(Call {
            operation: operation.to_owned(),
            units,
            answered,
        });
    }

    fn fault_of(&self, operation: &str) -> Option<Fault> {
        let state = &mut *lock(&self.state);
        match state.numbered.take() {
            Some((0, fault)) => return Some(fault),
            Some((number, fault)) => state.numbered = Some((number - 1, fault)),
            None => {}
        }
        let faults = &mut state.faults;
        let place = faults.iter().position(|(of, _)| of == operation)?;
        faults.remove(place).map(|(_, fault)| fault)
    }

    /// Changes the request as far as the wire was told to. Returns whether it measures.
    fn prepare(&self, operation: &str, request: &mut HttpRequest) -> bool {
        let (measures, forgets, sent) = {
            let mut state = lock(&self.state);
            if state.watches {
                let body = request.body().bytes().unwrap_or_default();
                let body = serde_json::from_slice(body).unwrap_or_default();
                state.accesses.extend(access::accesses(operation, &body));
            }
            state.sent += 1;
            (state.measures, state.forgets_tokens, state.sent)
        };
        let measures = measures && operation != "CreateTable";
        if measures {
            edit(request, |body| {
                body["ReturnConsumedCapacity"] = json!("INDEXES");
            });
        }
        if forgets && operation == "TransactWriteItems" {
            edit(request, |body| {
                body["ClientRequestToken"] = json!(format!("request-{sent}"));
            });
        }
        measures
    }

    async fn pass(
        self,
        connector: SharedHttpConnector,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let measures = self.prepare(&operation, &mut request);
        match self.fault_of(&operation) {
            None => {
                let mut response = connector.call(request).await?;
                let units = if measures {
                    cost(&mut response).await
                } else {
                    0.0
                };
                self.note(&operation, units, true);
                Ok(response)
            }
            Some(Fault::LostReply(meanwhile)) => {
                // The whole reply is awaited, so that the write is known to be carried out.
                let response = connector.call(request).await?;
                let _ = ByteStream::new(response.into_body()).collect().await;
                meanwhile.await;
                self.note(&operation, 0.0, false);
                Err(ConnectorError::io("the reply was lost".into()))
            }
            Some(fault) => {
                self.note(&operation, 0.0, false);
                refusal(&operation, &fault)
            }
        }
    }
}

/// Changes the JSON body of a request.
fn edit(request: &mut HttpRequest, change: impl FnOnce(&mut Value)) {
    let body = request.body().bytes().unwrap_or_default();
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    change(&mut value);
    let text = value.to_string();
    request
        .headers_mut()
        .insert("content-length", text.len().to_string());
    *request.body_mut() = SdkBody::from(text);
}

/// The units that a reply says its request cost. The reply stays whole.
async fn cost(response: &mut HttpResponse) -> f64 {
    let body = std::mem::replace(response.body_mut(), SdkBody::empty());
    let bytes = ByteStream::new(body).collect().await;
    let bytes = bytes.map(|data| data.into_bytes()).unwrap_or_default();
    let reply: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    *response.body_mut() = SdkBody::from(bytes);
    let units = |capacity: &Value| capacity["CapacityUnits"].as_f64().unwrap_or(0.0);
    match &reply["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(units).sum(),
        table => units(table),
    }
}

/// A refusal as the store words it.
fn refusal(operation: &str, fault: &Fault) -> Result<HttpResponse, ConnectorError> {
    let of = |name: &str| json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{name}") });
    let (status, body) = match fault {
        Fault::Broken => (500, of("InternalServerError")),
        Fault::Conflict if operation == "TransactWriteItems" => {
            let mut body = of("TransactionCanceledException");
            body["CancellationReasons"] = json!([{ "Code": "TransactionConflict" }]);
            (400, body)
        }
        Fault::Conflict => (400, of("TransactionConflictException")),
        Fault::Throttled | Fault::LostReply(_) => (400, of("ThrottlingException")),
    };
    let status =
        StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
    Ok(HttpResponse::new(status, SdkBody::from(body.to_string())))
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Tap {
            wire: self.clone(),
            connector: self.inner.http_connector(settings, components),
        })
    }
}

#[derive(Debug)]
struct Tap {
    wire: Wire,
    connector: SharedHttpConnector,
}

impl HttpConnector for Tap {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.wire.clone().pass(self.connector.clone(), request))
    }
}
