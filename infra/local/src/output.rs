//! What a person reads on the terminal: plain text in a pipe, colours on a terminal.

use std::io::{self, Stdout, Write as _};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

/// A heading.
pub const HEADING: Style = Style::new().bold();
/// What matters less.
pub const DIM: Style = Style::new().dimmed();
/// What went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What was refused or ended.
pub const BAD: Style = AnsiColor::Red.on_default();
/// What a person types or sends.
pub const CALL: Style = AnsiColor::Cyan.on_default();

/// The standard output.
#[derive(Debug)]
pub struct Output(AutoStream<Stdout>);

impl Default for Output {
    fn default() -> Self {
        Self(AutoStream::auto(io::stdout()))
    }
}

impl Output {
    /// Writes a line. A reader that has gone is no failure of the platform.
    pub fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{text}");
    }

    /// Writes a line that the command is there for: if it is lost, so is all that was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn needed(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.0, "{text}").and_then(|()| self.0.flush())
    }
}

/// A text in a style.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
