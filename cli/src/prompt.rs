//! Questions to a person: a key without an echo, and yes or no.

use std::io::{self, Read as _};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{tcgetattr, tcsetattr};

use crate::failure::{Exit, Failure};
use crate::output::Screen;

/// Most characters that are taken in.
const CHARS_MAX: usize = 4_096;

/// A terminal that does not show what is typed. Dropped, it does again.
struct Silent {
    before: Termios,
}

impl Silent {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        // Signals too are read as what was typed, so that Ctrl-C cannot leave the terminal silent.
        silent.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &silent)?;
        Ok(Self { before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // Nothing is left to do where the terminal has gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Asks for a secret; what is typed is not shown.
///
/// # Errors
/// If the terminal fails, or Ctrl-C is typed.
pub fn secret(screen: &mut Screen, ask: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::local(format!("the terminal failed: {error}"));
    screen.say_on(ask);
    let silent = Silent::begin().map_err(failed)?;
    let mut typed = Vec::new();
    let outcome = loop {
        let mut byte = [0_u8];
        match io::stdin().lock().read(&mut byte) {
            Err(error) => break Err(failed(error)),
            Ok(0) => break Ok(()),
            Ok(_) => {}
        }
        match byte[0] {
            b'\r' | b'\n' | 0x04 => break Ok(()),
            0x03 => {
                break Err(Failure::new(
                    Exit::Interrupted,
                    "stopped: nothing was changed",
                ));
            }
            0x08 | 0x7f => drop(typed.pop()),
            0x15 => typed.clear(),
            other if typed.len() < CHARS_MAX => typed.push(other),
            _ => {}
        }
    };
    drop(silent);
    screen.say("");
    outcome?;
    Ok(String::from_utf8_lossy(&typed).into_owned())
}

/// Asks for yes or no; anything but yes is no.
///
/// # Errors
/// If the terminal fails.
pub fn confirmed(screen: &mut Screen, ask: &str) -> Result<bool, Failure> {
    screen.say_on(&format!("{ask} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    let read = read.map_err(|error| Failure::local(format!("the terminal failed: {error}")))?;
    if read == 0 {
        screen.say("");
    }
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
