//! A log line as a person reads it: when, how bad, what, how long, and the rest by name.

use std::fmt::{self, Debug, Write as _};

use anstyle::{AnsiColor, Style};
use app::ports::Clock as _;
use runtime::SystemClock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::output::DIM;

/// The messages of lines that have columns, each with the fields that need no name.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("call", &["method", "operation", "status", "code"]),
    ("reaction", &[]),
    ("order", &["outcome"]),
    ("sweep", &[]),
];
/// Fields that the columns make superfluous.
const IMPLIED: [&str; 2] = ["message", "function"];
/// The field that has a column of its own.
const DURATION: &str = "duration_us";

/// The form of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Human {
    /// Whether calls that read and went well are left out.
    pub(super) hides_reads: bool,
}

impl<S, N> FormatEvent<S, N> for Human
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if self.hides_reads && fields.is_good_read() {
            return Ok(());
        }
        let at = SystemClock.now().to_string();
        let colours = writer.has_ansi_escapes();
        let text = line(&at, *event.metadata().level(), &fields, colours);
        writeln!(writer, "{text}")
    }
}

/// The fields of an event, in its order, as texts.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().filter(|(there, _)| *there == name);
        named.next().map(|(_, value)| value.as_str())
    }

    fn is_good_read(&self) -> bool {
        let status = self.get("status").and_then(|status| status.parse().ok());
        self.get("message") == Some("call")
            && self.get("method") == Some("GET")
            && status.is_some_and(|status: u16| status < 500)
    }
}

fn line(at: &str, level: Level, fields: &Fields, colours: bool) -> String {
    let painted = |style: Style, text: &str| match colours {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    };
    // The time of the day, to the millisecond.
    let time = at.get(11..23).unwrap_or(at);
    let message = fields.get("message").unwrap_or_default();
    let mut out = format!(
        "{} {} {}",
        painted(DIM, time),
        painted(style(level), &format!("{level:<5}")),
        plain(&format!("{message:<8}"))
    );
    let columns = COLUMNS.iter().find(|(of, _)| *of == message);
    let unnamed = columns.map_or(&[][..], |(_, unnamed)| unnamed);
    // Writing to a String cannot fail.
    if columns.is_some() {
        let _ = write!(
            out,
            " {:>10}",
            fields.get(DURATION).map_or(String::new(), ms)
        );
    }
    for name in unnamed {
        let width = match *name {
            "method" => 4,
            "operation" => 18,
            _ => 0,
        };
        let value = fields.get(name).unwrap_or("-");
        let _ = write!(out, "  {:<width$}", value_of(value));
    }
    for (name, value) in &fields.0 {
        let implied = IMPLIED.contains(name) && (columns.is_some() || *name == "message");
        let in_column = columns.is_some() && (unnamed.contains(name) || *name == DURATION);
        if !implied && !in_column {
            let _ = write!(
                out,
                "  {}{}",
                painted(DIM, &format!("{name}=")),
                value_of(value)
            );
        }
    }
    out
}

/// Microseconds as milliseconds.
fn ms(us: &str) -> String {
    match us.parse::<u64>() {
        Ok(us) => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        Err(_) => us.to_owned(),
    }
}

/// A value that ends where its line goes on: quoted if it would not.
fn value_of(value: &str) -> String {
    let open = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    match value.is_empty() || value.contains(open) {
        true => format!("{value:?}"),
        false => value.to_owned(),
    }
}

/// A text in which nothing can move the cursor or begin a line.
fn plain(text: &str) -> String {
    let chars = text.chars();
    chars
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn style(level: Level) -> Style {
    match level {
        Level::ERROR => AnsiColor::Red.on_default().bold(),
        Level::WARN => AnsiColor::Yellow.on_default(),
        Level::INFO => AnsiColor::Green.on_default(),
        _ => Style::new().dimmed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "2026-07-01T12:34:56.789Z";

    fn told(fields: &[(&'static str, &str)]) -> String {
        let fields = fields
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        line(AT, Level::INFO, &Fields(fields.collect()), false)
    }

    #[test]
    fn lines_of_one_kind_are_aligned() {
        let call = |operation: &str, us: &str, code: &str| {
            told(&[
                ("message", "call"),
                ("request_id", "r-1"),
                ("function", "reclaim"),
                ("operation", operation),
                ("method", "POST"),
                ("status", "200"),
                ("code", code),
                ("duration_us", us),
                ("org_id", "acme"),
            ])
        };
        assert_eq!(
            call("ReclaimUnits", "12345", "ok"),
            "12:34:56.789 INFO  call        12.3 ms  POST  ReclaimUnits        200  ok  \
             request_id=r-1  org_id=acme"
        );
        assert_eq!(
            call("ConfirmTermination", "999", "ok"),
            "12:34:56.789 INFO  call         0.9 ms  POST  ConfirmTermination  200  ok  \
             request_id=r-1  org_id=acme"
        );
        let order = [
            ("message", "order"),
            ("outcome", "not_yet"),
            ("attempts", "2"),
            ("duration_us", "1500"),
        ];
        assert_eq!(
            told(&order),
            "12:34:56.789 INFO  order        1.5 ms  not_yet  attempts=2"
        );
    }

    #[test]
    fn no_value_begins_a_line_or_a_field_of_its_own() {
        let text = told(&[
            ("message", "a\nb"),
            ("error", "c\n d=\u{1b}[1m\"e\""),
            ("x", ""),
        ]);
        assert_eq!(
            text,
            "12:34:56.789 INFO  a?b       error=\"c\\n d=\\u{1b}[1m\\\"e\\\"\"  x=\"\""
        );
    }

    #[test]
    fn reads_that_went_well_are_known() {
        let fields = |method: &str, status: &str| {
            let each = [("message", "call"), ("method", method), ("status", status)];
            Fields(each.map(|(name, value)| (name, value.to_owned())).into())
        };
        assert!(fields("GET", "404").is_good_read());
        assert!(!fields("GET", "503").is_good_read());
        assert!(!fields("POST", "200").is_good_read());
        assert!(!Fields::default().is_good_read());
    }

    #[test]
    fn colours_are_for_terminals_alone() {
        let fields = Fields(vec![("message", "call".to_owned())]);
        assert!(!line(AT, Level::WARN, &fields, false).contains('\u{1b}'));
        assert!(line(AT, Level::WARN, &fields, true).contains('\u{1b}'));
    }
}
