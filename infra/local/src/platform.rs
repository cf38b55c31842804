//! The platform: the functions with everything around them that the cloud would bring, in one
//! process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use app::ports::Random as _;
use dynamo::DynamoStore;
use http_api::{CursorKey, FunctionName, Service, handlers};
use runtime::controller::HttpController;
use runtime::{Function, SystemClock, SystemIds, config};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::host::{Host, VmProgram};
use crate::agent::{Agent, controller};
use crate::client::Client;
use crate::data::{Data, remove};
use crate::engine::Engine;
use crate::failure::{Failure, run, start};
use crate::gateway::{self, Functions};
use crate::keys::{Keys, Part};
use crate::pump::Pump;
use crate::queue::Queue;
use crate::ticker;

/// The table's name.
const TABLE: &str = "relet";
/// The node whose agent runs here.
pub const NODE: &str = "gpu-node-1";
/// The file with the secret of cursors, so that they are good over a restart.
const CURSOR_SECRET: &str = "cursor-secret";
/// How long API keys are kept, in milliseconds, as in the cloud.
const KEY_TTL_MS: i64 = 5_000;

/// How the platform is to be set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it answers HTTP.
    pub listen: SocketAddr,
    /// The folder of its data; `None` keeps them in memory.
    pub data: Option<PathBuf>,
    /// What runs behind a VM.
    pub program: VmProgram,
}

/// A running platform.
#[derive(Debug)]
pub struct Platform {
    url: String,
    keys: Keys,
    host: Arc<Host>,
    engine: Engine,
    stop: watch::Sender<bool>,
    tasks: JoinSet<Result<(), Failure>>,
}

/// A port with the address it got.
async fn bind(address: SocketAddr) -> Result<(TcpListener, String), Failure> {
    let what = format!("cannot listen on {address}");
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| start(&what, error))?;
    let bound = listener.local_addr().map_err(|error| start(&what, error))?;
    Ok((listener, format!("http://{bound}")))
}

/// A fresh secret.
fn secret() -> Result<String, Failure> {
    let random = SystemIds.random();
    let random = random.map_err(|error| start("cannot make a secret", error))?;
    Ok(app::auth::hex(&random))
}

impl Platform {
    /// Starts everything. When it returns, the platform answers.
    ///
    /// # Errors
    /// [`Failure::Start`] says what stood in the way.
    pub async fn start(options: &Options) -> Result<Self, Failure> {
        let (listener, url) = bind(options.listen).await?;
        let data = Arc::new(match &options.data {
            Some(folder) => Data::folder(folder)?,
            None => Data::memory(),
        });
        let engine = table(&data).await?;
        let store = DynamoStore::new(engine.tables(), TABLE);
        let keys = Keys::set_up(&data, &store, &SystemClock, &SystemIds).await?;
        let host = Host::new(Arc::clone(&data), options.program.clone());
        let host = Arc::new(host.map_err(|error| start("cannot read the notes of VMs", error))?);

        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let terminate = controlled(&store, &host, &mut tasks, &stopped).await?;
        let queue = Arc::new(Queue::new(Arc::clone(&data), options.program.grace));
        let reactions =
            runtime::stream::function(Arc::new(store.clone()), Arc::clone(&queue), SystemClock);
        let rules = config::sweep_rules().map_err(|error| start("cannot sweep", error))?;
        let sweep = runtime::sweep::function(
            Arc::new(store.clone()),
            Arc::clone(&queue),
            SystemClock,
            SystemIds,
            rules,
        );
        let pump = Pump::new(engine.streams(), TABLE, reactions, Arc::clone(&data)).await;
        let pump = pump.map_err(|error| start("cannot follow the table", error))?;
        let client = Client::new(&url, keys.of(Part::Agent));
        let client = client.map_err(|error| start("cannot start the node agent", error))?;
        let agent = Agent::new(NODE, client, Arc::clone(&host));

        let functions = functions(store, &data)?;
        tasks.spawn(gateway::serve(listener, functions, stopped.clone()));
        let strokes = ticker::run(sweep, pump.caught_up(), stopped.clone());
        tasks.spawn(running(strokes));
        tasks.spawn(running(pump.run(stopped.clone())));
        tasks.spawn(running(queue.run(terminate, stopped.clone())));
        tasks.spawn(running(engine.tidy().run(stopped.clone())));
        tasks.spawn(running(agent.run(stopped)));
        Ok(Self {
            url,
            keys,
            host,
            engine,
            stop,
            tasks,
        })
    }

    /// Where it answers: scheme, address and port.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The keys it was set up with.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The processes behind its VMs.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A caller of its API with the key of a part.
    ///
    /// # Errors
    /// [`Failure::Start`] if there is no HTTP client to be had.
    pub fn client(&self, part: Part) -> Result<Client, Failure> {
        Client::new(&self.url, self.keys.of(part)).map_err(|error| start("no HTTP client", error))
    }

    /// Waits until a part of it ends, which none does before it is told to.
    pub async fn ended(&mut self) -> Failure {
        match self.tasks.join_next().await {
            Some(Ok(Err(failure))) => failure,
            Some(Err(error)) => run("a part of the platform", error),
            Some(Ok(Ok(()))) | None => Failure::Run("a part of the platform ended".to_owned()),
        }
    }

    /// Stops it: requests and batches under way are finished, the processes of VMs end, then the
    /// table closes.
    ///
    /// # Errors
    /// The first failure of a part.
    pub async fn stop(mut self) -> Result<(), Failure> {
        // Without receivers all parts have ended already.
        let _ = self.stop.send(true);
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(run("a part of the platform", error)));
            outcome = outcome.and(ended);
        }
        self.host.close().await;
        outcome.and(self.engine.stop().await)
    }
}

/// The engine with the table in it.
async fn table(data: &Data) -> Result<Engine, Failure> {
    let Some(file) = data.table_file() else {
        let engine = Engine::start(None).await?;
        create(&engine).await?;
        return Ok(engine);
    };
    if !file.exists() {
        // The engine makes a table in several steps. In a file of its own, a process killed between
        // them leaves nothing that anybody takes for a table.
        let new = file.with_extension("new");
        let what = format!("cannot make {}", file.display());
        for part in Engine::files(&new) {
            remove(&part).map_err(|error| start(&what, error))?;
        }
        let engine = Engine::start(Some(&new)).await?;
        let made = create(&engine).await;
        engine.stop().await?;
        made?;
        Engine::fold(&new).map_err(|error| start(&what, error))?;
        std::fs::rename(&new, &file).map_err(|error| start(&what, error))?;
    }
    Engine::start(Some(&file)).await
}

async fn create(engine: &Engine) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| start("cannot make the table", error);
    let table = relet_template::table().map_err(|error| bad(&error))?;
    let made = dynamo::table::create(&engine.tables(), TABLE, &table).await;
    made.map_err(|error| bad(&error))
}

async fn running(part: impl Future<Output = ()>) -> Result<(), Failure> {
    part.await;
    Ok(())
}

/// The terminate function, with the host's endpoint behind it.
async fn controlled(
    store: &DynamoStore,
    host: &Arc<Host>,
    tasks: &mut JoinSet<Result<(), Failure>>,
    stopped: &watch::Receiver<bool>,
) -> Result<Function, Failure> {
    let (listener, url) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let secret = secret()?;
    let controller = HttpController::new(&url, &secret, SystemClock);
    let serving = controller::serve(listener, Arc::clone(host), secret, stopped.clone());
    tasks.spawn(serving);
    let store = Arc::new(store.clone());
    Ok(runtime::terminate::function(
        store,
        Arc::new(controller),
        SystemClock,
        SystemIds,
    ))
}

/// The functions behind the gateway, as their binaries make them.
fn functions(store: DynamoStore, data: &Data) -> Result<Functions, Failure> {
    let bad = |error| start(&format!("cannot use {CURSOR_SECRET}"), error);
    let secret = match data.read(CURSOR_SECRET).map_err(bad)? {
        Some(kept) if !kept.is_empty() => kept,
        _ => {
            let fresh = secret()?.into_bytes();
            data.write(CURSOR_SECRET, &fresh).map_err(bad)?;
            fresh
        }
    };
    let cursors = CursorKey::new(&secret);
    let cursors = cursors.map_err(|error| start("no secret for cursors", error))?;
    let service = Service::new(store, SystemClock, SystemIds, cursors, KEY_TTL_MS);
    let service = Arc::new(service);
    let each = FunctionName::ALL.map(|name| {
        let service = Arc::clone(&service);
        let function = match name {
            FunctionName::Release => handlers::release(service),
            FunctionName::Reclaim => handlers::reclaim(service),
            FunctionName::End => handlers::end(service),
            FunctionName::Reservations => handlers::reservations(service),
            FunctionName::Vms => handlers::vms(service),
            FunctionName::Nodes => handlers::nodes(service),
            FunctionName::Keys => handlers::keys(service),
        };
        (name, runtime::http::function(function))
    });
    Ok(Functions::from(each))
}
