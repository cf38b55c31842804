//! As much of HTTP as is needed to measure without getting in the way: one message after another on
//! a connection that stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A message: its first line and its headers as they came, and its body.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one; `None` where the connection ends.
    pub(crate) fn read(from: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut head = Vec::new();
        let mut length = Some(0);
        loop {
            let start = head.len();
            if from.read_until(b'\n', &mut head).ok()? == 0 {
                return None;
            }
            let line = str::from_utf8(&head[start..]).ok()?.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().ok(),
                    "transfer-encoding" => length = None,
                    _ => {}
                }
            }
        }
        let body = match length {
            Some(length) => exactly(from, length)?,
            None => chunks(from)?,
        };
        Some(Self { head, body })
    }

    /// Whether its head has this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        let mut windows = self.head.windows(text.len());
        windows.any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
    }
}

fn exactly(from: &mut impl Read, length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some(body)
}

/// A body in chunks, without what frames them.
fn chunks(from: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        body.extend(exactly(from, length)?);
        exactly(from, 2)?;
        if length == 0 {
            return Some(body);
        }
    }
}

/// Writes a message in one piece; whether it went out.
pub(crate) fn send(to: &mut TcpStream, head: &[u8], body: &[u8]) -> bool {
    to.write_all(&[head, body].concat()).is_ok()
}

/// Both halves of a connection that delays nothing.
pub(crate) fn halves(stream: TcpStream) -> Option<(BufReader<TcpStream>, TcpStream)> {
    stream.set_nodelay(true).ok()?;
    Some((BufReader::new(stream.try_clone().ok()?), stream))
}
