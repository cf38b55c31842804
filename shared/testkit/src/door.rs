//! A door in front of a server: everything passes, and it is counted who comes in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longest time that something is waited for.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The door, on a free port of 127.0.0.1. It closes when it is dropped.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    open: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.open.abort();
    }
}

impl Door {
    /// A door in front of the server at this address, such as `127.0.0.1:8000`. Without one,
    /// whoever comes in waits for ever.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn to(server: Option<String>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let connections: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&connections);
        let open = tokio::spawn(async move {
            let mut waiting = Vec::new();
            while let Ok((mut inside, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let Some(server) = server.clone() else {
                    waiting.push(inside);
                    continue;
                };
                tokio::spawn(async move {
                    if let Ok(mut outside) = TcpStream::connect(server).await {
                        // However it ends, both sides are closed then.
                        let _ = copy_bidirectional(&mut inside, &mut outside).await;
                    }
                });
            }
        });
        Ok(Self {
            address,
            connections,
            open,
        })
    }

    /// Its address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections have come in.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until somebody has come in, at most 20 seconds; whether somebody has.
    pub async fn entered(&self) -> bool {
        let entered = async {
            while self.connections() == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(WAIT_MAX, entered).await.is_ok()
    }
}
