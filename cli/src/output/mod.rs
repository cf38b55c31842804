//! What a person or a script reads: answers on standard output, everything else on standard error.

pub mod table;
pub mod text;
pub mod view;

use std::io::{self, IsTerminal as _, Write};

use anstream::AutoStream;
use anstyle::Style;
use serde_json::Value;

use crate::client::Answer;
use crate::failure::{Exit, Failure};
use crate::output::table::{BAD, DIM, HEADING, Kind, fields, styled, table};
use crate::output::text::wrapped;
use crate::output::view::{Field, View, at, items};
use crate::redact::redacted;

/// The width where there is no terminal to ask, nor `COLUMNS`.
const WIDTH_DEFAULT: usize = 80;
/// The narrowest and the widest that anything is laid out for.
const WIDTH_RANGE: std::ops::RangeInclusive<usize> = 20..=200;

/// How answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns, for people
    #[default]
    Table,
    /// The platform's answer as it came
    Json,
    /// The same as YAML
    Yaml,
    /// Ids alone, one a line
    Id,
}

/// The two streams of the command.
#[derive(Debug)]
pub struct Screen {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    /// How answers are shown.
    pub format: Format,
    width: usize,
}

/// The columns of the terminal behind a stream.
fn terminal_width(stream: &(impl std::os::fd::AsFd + io::IsTerminal)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

impl Screen {
    /// The screen of this process, in colours where its streams, the environment and
    /// [`anstream::ColorChoice::global`] allow them.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let named = || std::env::var("COLUMNS").ok()?.parse().ok();
        let width = terminal_width(&out)
            .or_else(|| terminal_width(&err))
            .or_else(named);
        let width = width.unwrap_or(WIDTH_DEFAULT);
        Self {
            out: AutoStream::auto(out),
            err: AutoStream::auto(err),
            format,
            width: width.clamp(*WIDTH_RANGE.start(), *WIDTH_RANGE.end()),
        }
    }

    /// The columns there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether a person can be asked and shown progress.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether a line on standard error can be written over.
    #[must_use]
    pub fn is_live(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Writes to standard output as it is.
    ///
    /// # Errors
    /// If it cannot be written; where the reader has gone, one that ends the command quietly.
    pub fn raw(&mut self, text: &str) -> Result<(), Failure> {
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Exit::Done, ""),
            _ => Failure::local(format!("cannot write to standard output: {error}")),
        })
    }

    /// Writes lines to standard output.
    ///
    /// # Errors
    /// As [`Screen::raw`].
    pub fn lines(&mut self, lines: &[String]) -> Result<(), Failure> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.raw(&text)
    }

    /// Writes a line to standard error. A reader that has gone is no failure.
    pub fn say(&mut self, line: &str) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Writes to standard error without ending the line.
    pub fn say_on(&mut self, text: &str) {
        let _ = write!(self.err, "{text}").and_then(|()| self.err.flush());
    }

    /// Shows a single answer.
    ///
    /// # Errors
    /// As [`Screen::raw`].
    pub fn answer(&mut self, view: &View, answer: &Answer) -> Result<(), Failure> {
        if answer.body.is_null() {
            return Ok(());
        }
        match self.format {
            Format::Json => self.raw(&with_end(&answer.text)),
            Format::Yaml => self.raw(&yaml(&answer.body)?),
            Format::Id => {
                let name = view.id.unwrap_or("id");
                self.lines(&[at(&answer.body, name)])
            }
            Format::Table if view.fields.is_empty() => self.raw(&with_end(&answer.text)),
            Format::Table => {
                let lines = single(view, answer, self.width);
                self.lines(&lines)
            }
        }
    }

    /// Shows a list that is all there.
    ///
    /// # Errors
    /// As [`Screen::raw`].
    pub fn rows(&mut self, view: &View, rows: &[Vec<String>]) -> Result<(), Failure> {
        let columns: Vec<_> = view.columns.iter().map(|(_, column)| *column).collect();
        let lines = table(&columns, rows, self.width);
        self.lines(&lines)
    }

    /// Says why a command failed, and what to do next.
    pub fn failure(&mut self, failure: &Failure) {
        if failure.what.is_empty() {
            return;
        }
        let code = failure.code.iter().map(|code| ("code:", DIM, code));
        let request = failure.request_id.iter().map(|id| ("request:", DIM, id));
        let hint = failure.hint.iter().map(|hint| ("hint:", HEADING, hint));
        let parts: Vec<(&str, Style, &String)> = [("error:", BAD, &failure.what)]
            .into_iter()
            .chain(code)
            .chain(request)
            .chain(hint)
            .collect();
        let labels = parts
            .iter()
            .map(|(label, _, _)| label.len())
            .max()
            .unwrap_or(0);
        let mut lines = Vec::new();
        for (label, style, text) in parts {
            let text = wrapped(&redacted(text), self.width.saturating_sub(labels + 1));
            for (number, line) in text.iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                let blanks = " ".repeat(labels - label.len());
                lines.push(format!("{}{blanks} {line}", styled(style, label)));
            }
        }
        for line in lines {
            self.say(&line);
        }
    }
}

/// The rows of a page.
#[must_use]
pub fn rows_of(view: &View, body: &Value) -> Vec<Vec<String>> {
    let row = |item: &Value| {
        view.columns
            .iter()
            .map(|(name, _)| at(item, name))
            .collect()
    };
    items(body).iter().map(row).collect()
}

/// A text that ends its last line.
#[must_use]
pub fn with_end(text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// A value as YAML.
///
/// # Errors
/// If it cannot be written as such.
pub fn yaml(value: &Value) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(value);
    let text = text.map_err(|error| Failure::local(format!("cannot write YAML: {error}")))?;
    Ok(with_end(&text))
}

/// The lines of a single thing.
fn single(view: &View, answer: &Answer, width: usize) -> Vec<String> {
    let pair = |(name, column): &Field| {
        let value = match *name {
            "version" => answer.version.clone().unwrap_or_default(),
            name => at(&answer.body, name),
        };
        (column.head.to_owned(), value, column.kind)
    };
    let pairs: Vec<(String, String, Kind)> = view.fields.iter().map(pair).collect();
    let mut lines = fields(&pairs, width);
    if let Some((name, inner)) = view.inner {
        let columns: Vec<_> = inner.iter().map(|(_, column)| *column).collect();
        let items = answer.body[name].as_array().map_or(&[][..], Vec::as_slice);
        let row = |item: &Value| inner.iter().map(|(name, _)| at(item, name)).collect();
        let rows: Vec<Vec<String>> = items.iter().map(row).collect();
        lines.push(String::new());
        lines.extend(table(&columns, &rows, width));
    }
    lines
}
