//! A terminal of 80 columns with the command in it, and what stands on its screen.

use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// The columns that the command is told of.
pub(crate) const COLUMNS: u16 = 80;
/// The lines of the terminal: as many as any command writes.
const LINES: u16 = 200;
/// The columns that the screen really has: what is written beyond the edge shows.
const COLUMNS_SHOWN: u16 = 400;
/// Longest time for anything that is waited for.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A terminal with a process in it.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    pieces: Receiver<Vec<u8>>,
    /// The process in it.
    pub(crate) child: Box<dyn Child + Send + Sync>,
    /// Everything that was written, as it came.
    pub(crate) raw: Vec<u8>,
}

/// How a process ended, and what it left on the screen.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: u32,
    pub(crate) screen: String,
    pub(crate) raw: String,
}

impl Terminal {
    /// Starts the command with these arguments and variables.
    pub(crate) fn start(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_in(args, variables, COLUMNS)
    }

    /// The same in a terminal of so many columns.
    pub(crate) fn start_in(args: &[&str], variables: &[(&str, &str)], columns: u16) -> Self {
        let size = PtySize {
            rows: LINES,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_orl"));
        command.args(args);
        command.env_clear();
        command.env("TERM", "xterm-256color");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        // While this side holds the other end as well, reading would never come to an end.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (send, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = vec![0; 4_096];
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                if send.send(piece[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self {
            master: pair.master,
            writer,
            pieces,
            child,
            raw: Vec::new(),
        }
    }

    /// Waits until a text has been written.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_for_times(text, 1);
    }

    /// Waits until a text has been written so many times.
    pub(crate) fn wait_for_times(&mut self, text: &str, times: usize) {
        let began = Instant::now();
        while String::from_utf8_lossy(&self.raw).matches(text).count() < times {
            let left = WAIT_MAX.saturating_sub(began.elapsed());
            let piece = self.pieces.recv_timeout(left);
            let so_far = String::from_utf8_lossy(&self.raw);
            let piece = piece.unwrap_or_else(|_| panic!("no {text:?} in {so_far:?}"));
            self.raw.extend(piece);
        }
    }

    /// Types a text.
    pub(crate) fn enter(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < WAIT_MAX, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        while let Ok(piece) = self.pieces.recv_timeout(WAIT_MAX) {
            self.raw.extend(piece);
        }
        drop(self.master);
        let size = |n| NonZeroU16::new(n).unwrap();
        let mut parser = vt100::Parser::new(size(LINES), size(COLUMNS_SHOWN), 0);
        parser.process(&self.raw);
        Ended {
            code: status.exit_code(),
            screen: shown(&parser),
            raw: String::from_utf8_lossy(&self.raw).into_owned(),
        }
    }
}

/// What stands on a screen, without blanks at the ends of lines and of itself.
fn shown(parser: &vt100::Parser) -> String {
    let text = parser.screen().contents();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}
