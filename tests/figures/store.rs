//! Stores to measure against: one that holds nothing and answers at once, and a door to the engine
//! that tells how long the engine itself took.

use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::wire::{Message, halves, send};

/// Listens on a free port and serves every connection in a thread; the address as a URL.
fn listen(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    url
}

/// A store in which nothing is, at its URL.
pub(crate) fn nothing() -> String {
    listen(|stream| {
        let Some((mut from, mut to)) = halves(stream) else {
            return;
        };
        while let Some(message) = Message::read(&mut from) {
            let body: &[u8] = if message.has("_20120810.Query") {
                br#"{"Items":[],"Count":0,"ScannedCount":0}"#
            } else {
                b"{}"
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            if !send(&mut to, head.as_bytes(), body) {
                return;
            }
        }
    })
}

/// A door to an engine, with a clock.
#[derive(Clone)]
pub(crate) struct Timed {
    spent_ns: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
    pub(crate) url: String,
}

impl Timed {
    /// A door to the engine at this URL.
    pub(crate) fn before(engine: &str) -> Self {
        let spent_ns: Arc<AtomicU64> = Arc::default();
        let requests: Arc<AtomicU64> = Arc::default();
        let engine = engine.trim_start_matches("http://").to_owned();
        let (spent, counted) = (Arc::clone(&spent_ns), Arc::clone(&requests));
        let url = listen(move |stream| {
            let outside = TcpStream::connect(&engine).ok().and_then(halves);
            if let (Some(inside), Some(outside)) = (halves(stream), outside) {
                pass(inside, outside, &spent, &counted);
            }
        });
        Self {
            spent_ns,
            requests,
            url,
        }
    }

    /// How long the engine took since this was last asked, and for how many requests.
    pub(crate) fn take(&self) -> (Duration, u64) {
        let spent = self.spent_ns.swap(0, Ordering::SeqCst);
        let requests = self.requests.swap(0, Ordering::SeqCst);
        (Duration::from_nanos(spent), requests)
    }
}

type Halves = (BufReader<TcpStream>, TcpStream);

fn pass(
    (mut from, mut back): Halves,
    (mut answers, mut to): Halves,
    spent: &AtomicU64,
    counted: &AtomicU64,
) {
    while let Some(request) = Message::read(&mut from) {
        let asked = Instant::now();
        if !send(&mut to, &request.head, &request.body) {
            return;
        }
        let Some(answer) = Message::read(&mut answers) else {
            return;
        };
        let took = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        spent.fetch_add(took, Ordering::SeqCst);
        counted.fetch_add(1, Ordering::SeqCst);
        if !send(&mut back, &answer.head, &answer.body) {
            return;
        }
    }
}
