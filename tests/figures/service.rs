//! A function's process with the runtime API that it talks to, and a clock on both ends.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::wire::{Message, halves, send};

/// Longest time that an answer is waited for.
const WAIT_MAX: Duration = Duration::from_secs(20);

type Events = Arc<Mutex<Receiver<String>>>;

/// A running function. Its process ends when this is dropped.
pub(crate) struct Running {
    child: Child,
    events: Sender<String>,
    answers: Receiver<(Instant, bool, Vec<u8>)>,
    asked: Receiver<Instant>,
    started: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a binary with an event waiting for it.
    pub(crate) fn start(binary: &Path, env: &[(String, String)], event: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (events, waiting) = channel();
        let (answered, answers) = channel();
        let (asks, asked) = channel();
        let waiting: Events = Arc::new(Mutex::new(waiting));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let waiting = Arc::clone(&waiting);
                let (asks, answered) = (asks.clone(), answered.clone());
                std::thread::spawn(move || serve(stream, &waiting, &asks, &answered));
            }
        });
        events.send(event.to_string()).unwrap();
        let mut command = Command::new(binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Instant::now();
        let child = command.spawn().unwrap();
        Self {
            child,
            events,
            answers,
            asked,
            started,
        }
    }

    /// How long it took from its start until it asked for its first event, and to its first answer.
    pub(crate) fn start_up(&self) -> [Duration; 2] {
        let asked = self.asked.recv_timeout(WAIT_MAX).unwrap();
        [asked, self.answer().0].map(|at| at.duration_since(self.started))
    }

    /// Hands it an event; how long the answer took, and the answer.
    pub(crate) fn call(&self, event: &str) -> (Duration, Value) {
        let asked = Instant::now();
        self.events.send(event.to_owned()).unwrap();
        let (at, answer) = self.answer();
        (at.duration_since(asked), answer)
    }

    fn answer(&self) -> (Instant, Value) {
        let (at, good, body) = self.answers.recv_timeout(WAIT_MAX).unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(good, "the function failed: {text}");
        (at, serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// Answers one connection of the function.
fn serve(
    stream: TcpStream,
    events: &Events,
    asks: &Sender<Instant>,
    answered: &Sender<(Instant, bool, Vec<u8>)>,
) {
    let Some((mut from, mut to)) = halves(stream) else {
        return;
    };
    let mut count = 0_u64;
    while let Some(message) = Message::read(&mut from) {
        let sent = if message.has("GET ") {
            let _ = asks.send(Instant::now());
            let event = events.lock().unwrap().recv();
            let Ok(event) = event else { return };
            count += 1;
            send(
                &mut to,
                next(count, event.len()).as_bytes(),
                event.as_bytes(),
            )
        } else {
            let at = Instant::now();
            let good = message.has("/response ");
            let _ = answered.send((at, good, message.body));
            send(
                &mut to,
                b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n",
                b"{}",
            )
        };
        if !sent {
            return;
        }
    }
}

/// The head of the answer to whoever asks for the next event.
fn next(count: u64, length: usize) -> String {
    // A deadline that no run lives to see, in milliseconds since 1970.
    let deadline_ms = 4_102_444_800_000_u64;
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         lambda-runtime-aws-request-id: 00000000-0000-7000-8000-{count:012x}\r\n\
         lambda-runtime-deadline-ms: {deadline_ms}\r\n\
         lambda-runtime-invoked-function-arn: \
         arn:aws:lambda:eu-central-1:000000000000:function:measured\r\n\r\n"
    )
}
