//! Two hundred answers made of whatever bytes a seed comes to: the command ends, with a code that
//! is documented.

use crate::run;
use crate::server::{Server, json};

/// Answers that the mutations begin with.
fn seeds() -> Vec<Vec<u8>> {
    let page = r#"{"items":[{"id":"n","unitCount":3,"createdAt":"2026-07-01T12:00:00.250Z"}]}"#;
    vec![
        json("200 OK", "etag: \"3\"\r\nx-request-id: r\r\n", page),
        json(
            "404 Not Found",
            "",
            r#"{"error":"no","code":"not_found","requestId":"r"}"#,
        ),
        json(
            "503 No",
            "retry-after: 0\r\n",
            r#"{"error":"no","code":"unavailable"}"#,
        ),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n".to_vec(),
    ]
}

/// Numbers that are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap_or(0)
    }
}

fn mutated(numbers: &mut Numbers, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[numbers.next(seeds.len())].clone();
    for _ in 0..=numbers.next(6) {
        let at = numbers.next(bytes.len().max(1));
        match numbers.next(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, u8::try_from(numbers.next(256)).unwrap_or(0)),
            2 if !bytes.is_empty() => bytes[at] = u8::try_from(numbers.next(256)).unwrap_or(0),
            _ => {
                let piece = bytes[at..].to_vec();
                bytes.extend(piece);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn whatever_comes_back_the_command_ends_as_documented() {
    let (mut numbers, seeds) = (Numbers(0x5eed_0000_0001), seeds());
    let answers: Vec<Vec<u8>> = (0..200).map(|_| mutated(&mut numbers, &seeds)).collect();
    std::thread::scope(|scope| {
        for (part, some) in answers.chunks(25).enumerate() {
            scope.spawn(move || {
                for (round, bytes) in some.iter().enumerate() {
                    let server = Server::saying(bytes.clone());
                    let form = ["table", "json", "yaml", "id"][round % 4];
                    let args = ["nodes", "list", "--timeout", "400ms", "--output", form];
                    let output = run(&server.url, &args);
                    let known = matches!(output.status.code(), Some(0 | 2 | 3 | 4 | 5 | 6));
                    let text = String::from_utf8_lossy(bytes);
                    assert!(known, "part {part}, round {round}: {output:?} on {text:?}");
                }
            });
        }
    });
}
