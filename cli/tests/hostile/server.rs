//! Small servers that answer as no server should, one connection after the other.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server got: a request's line and headers in lower case, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(there, _)| *there == name)
            .map(|(_, value)| value)
    }
}

/// A server on a port of its own, for as long as the test runs.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each connection by its number, from 0 on.
    pub(crate) fn start(
        mut answer: impl FnMut(usize, &Request, &mut TcpStream) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&got);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { break };
                let Some(request) = read(&mut stream) else {
                    continue;
                };
                noted.lock().unwrap().push(request.clone());
                answer(number, &request, &mut stream);
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        Self { url, got }
    }

    /// Answers everything with these bytes.
    pub(crate) fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, _, stream| send(stream, &bytes))
    }

    /// What came so far.
    pub(crate) fn got(&self) -> Vec<Request> {
        self.got.lock().unwrap().clone()
    }
}

/// Writes; whoever was there may have gone.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

/// An answer with a JSON body.
pub(crate) fn json(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}");
    format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// An error as the platform has them.
pub(crate) fn problem(status: &str, headers: &str, code: &str, sentence: &str) -> Vec<u8> {
    let body = serde_json::json!({ "error": sentence, "code": code, "requestId": "req-1" });
    json(status, headers, &body.to_string())
}

/// Reads one request, to the end of its body.
fn read(stream: &mut TcpStream) -> Option<Request> {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let request = Request {
                head,
                body: body.to_owned(),
            };
            let length = request
                .header("content-length")
                .and_then(|text| text.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(request);
            }
        }
        match stream.read(&mut piece) {
            Ok(length @ 1..) => bytes.extend_from_slice(&piece[..length]),
            _ => return None,
        }
    }
}
