//! What a function calls over HTTP, as doubles on free ports of 127.0.0.1: a queue and a VM
//! controller. Both keep what they were sent and answer as a test asks.

mod controller;
mod queue;

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use controller::{ControllerCall, ControllerServer, Script};
pub use queue::{QueueServer, Refused};

/// A server that stops when it is dropped.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(router: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // An error here ends the server; every call to it then fails.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
