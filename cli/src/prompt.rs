//! Questions to a person: a key without an echo, and yes or no.

use std::io::{self, Read as _};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{QueueSelector, tcflush, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::output::Screen;

/// Most characters that are taken in.
const CHARS_MAX: usize = 4_096;

/// A terminal in another mode. Dropped, it is as it was before.
#[derive(Debug)]
pub struct Mode {
    before: Termios,
}

impl Mode {
    fn begin(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut changed = before.clone();
        change(&mut changed);
        tcsetattr(io::stdin(), OptionalActions::Now, &changed)?;
        Ok(Self { before })
    }

    /// What is typed does not show. Signals too are read as what was typed, so that Ctrl-C cannot
    /// leave the terminal like this.
    fn silent() -> io::Result<Self> {
        Self::begin(|mode| {
            mode.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        })
    }

    /// Ctrl-C does not drop what is on its way to the screen: as it goes on after the signal is
    /// out, the answer to it could be lost. `None` where there is no terminal.
    #[must_use]
    pub fn unflushed() -> Option<Self> {
        if !in_foreground() {
            return None;
        }
        Self::begin(|mode| mode.local_modes |= LocalModes::NOFLSH).ok()
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        if in_foreground() {
            // Nothing is left to do where the terminal has gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// Whether the terminal is this command's: in the background, to change it would be to stop.
fn in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Asks for a secret; what is typed is not shown.
///
/// # Errors
/// If the terminal fails, Ctrl-C is typed, or a signal is to end it.
pub async fn secret(screen: &mut Screen, ask: &str) -> Result<String, Failure> {
    // Taken before the terminal is changed: none of them may leave it silent.
    let take = |kind| signal(kind).map_err(terminal_failed);
    let mut interrupt = take(SignalKind::interrupt())?;
    let mut terminate = take(SignalKind::terminate())?;
    let mut hangup = take(SignalKind::hangup())?;
    // First silence, then the question: who answers at once must not be seen either.
    let silent = Mode::silent().map_err(terminal_failed)?;
    screen.say_on(ask);
    let (send, typed) = tokio::sync::oneshot::channel();
    // A thread of its own: it may wait for ever, and must not keep the process from ending.
    std::thread::spawn(move || {
        // Nobody may be waiting any more.
        let _ = send.send(typed_silently());
    });
    let outcome = tokio::select! {
        typed = typed => typed.unwrap_or_else(|_| Err(stopped())),
        _ = interrupt.recv() => Err(stopped()),
        _ = terminate.recv() => Err(stopped()),
        _ = hangup.recv() => Err(stopped()),
    };
    drop(silent);
    screen.say("");
    outcome
}

fn stopped() -> Failure {
    Failure::new(Exit::Interrupted, "stopped: nothing was changed")
}

fn terminal_failed(error: io::Error) -> Failure {
    Failure::local(format!("the terminal failed: {error}"))
}

/// Reads up to the end of a line that is not shown.
fn typed_silently() -> Result<String, Failure> {
    let mut typed = Vec::new();
    loop {
        let mut byte = [0_u8];
        if io::stdin()
            .lock()
            .read(&mut byte)
            .map_err(terminal_failed)?
            == 0
        {
            break;
        }
        match byte[0] {
            b'\r' | b'\n' | 0x04 => break,
            0x03 => return Err(stopped()),
            0x08 | 0x7f => drop(typed.pop()),
            0x15 => typed.clear(),
            other if typed.len() < CHARS_MAX => typed.push(other),
            _ => {}
        }
    }
    Ok(String::from_utf8_lossy(&typed).into_owned())
}

/// Asks for yes or no; anything but yes is no. It can be left while nobody has answered.
///
/// # Errors
/// If the terminal fails.
pub async fn confirmed(screen: &mut Screen, ask: &str) -> Result<bool, Failure> {
    if in_foreground() {
        // What was typed before the question is no answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
    screen.say_on(&format!("{ask} [y/N] "));
    let (send, answer) = tokio::sync::oneshot::channel();
    // A thread of its own: it may wait for ever, and must not keep the process from ending.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // Nobody may be waiting any more.
        let _ = send.send(read.map(|length| (length, line)));
    });
    let Ok(read) = answer.await else {
        return Ok(false);
    };
    let (length, line) = read.map_err(terminal_failed)?;
    if length == 0 {
        screen.say("");
    }
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
