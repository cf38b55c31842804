//! Tables for people, as wide as the terminal: columns that do not fit are left out by rank or go
//! below their row, lists and texts wrap, ids stay whole.

use anstyle::{AnsiColor, Style};

use crate::output::text::{columns as width_of, padded, wrapped};

/// A heading.
pub const HEADING: Style = Style::new().bold();
/// What matters less.
pub const DIM: Style = Style::new().dimmed();
/// What is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What is about to change.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What failed.
pub const BAD: Style = AnsiColor::Red.on_default();

/// The blanks between two columns.
const GAP: usize = 2;
/// The blanks before what stands below a row.
const INDENT: usize = 4;
/// Fewest columns that something breakable is given.
const BREAKABLE_MIN: usize = 10;
/// Columns up to which something breakable is kept whole, rather than a column that can be spared.
const BREAKABLE_WHOLE: usize = 24;
/// Most lines of a cell in a list.
const LINES_MAX: usize = 3;

/// What is in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something that is copied or compared as a whole.
    Whole,
    /// A status, coloured by what it says.
    Status,
    /// Words, or a list: breaks between them.
    Breakable,
}

/// What becomes of a column that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It stays, whatever happens.
    Always,
    /// It is left out; a higher number before a lower one.
    Spare(u8),
    /// It goes below its row.
    Below,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub head: &'static str,
    /// What is in it.
    pub kind: Kind,
    /// What becomes of it where there is no room.
    pub rank: Rank,
}

/// A text in a style; whoever writes it takes the style out where there are to be no colours.
#[must_use]
pub fn styled(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{style}{text}{style:#}")
}

/// The colour of a status.
fn status_style(status: &str) -> Style {
    match status {
        "active" | "running" | "free" | "valid" | "ok" => GOOD,
        "pending" | "terminating" | "needs-review" | "released" | "yes" => WARN,
        "cancelled" | "expired" | "terminated" | "revoked" => DIM,
        _ => Style::new(),
    }
}

/// Where the columns of a table come to stand.
struct Layout {
    /// Columns by index with their widths.
    beside: Vec<(usize, usize)>,
    /// Columns below the rows, by index.
    below: Vec<usize>,
}

/// Lays out rows; `None` where even the columns that must stay do not fit.
fn layout(columns: &[Column], rows: &[Vec<String>], width: usize) -> Option<Layout> {
    let widest = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let widest = cells.map(|cell| width_of(cell)).max().unwrap_or(0);
        widest.max(width_of(columns[index].head))
    };
    // Once for all: there may be very many rows.
    let widths: Vec<usize> = (0..columns.len()).map(widest).collect();
    let natural = |index: usize| widths[index];
    let filled = |index: &usize| {
        let some = rows
            .iter()
            .any(|row| row.get(*index).is_some_and(|cell| !cell.is_empty()));
        some || columns[*index].rank == Rank::Always
    };
    let mut kept: Vec<usize> = (0..columns.len()).filter(filled).collect();
    let mut below = Vec::new();
    let at_least = |index: usize, breakable: usize| match columns[index].kind {
        Kind::Breakable => natural(index).min(breakable.max(width_of(columns[index].head))),
        Kind::Whole | Kind::Status => natural(index),
    };
    let least = |index: &usize| at_least(*index, BREAKABLE_MIN);
    let pleasant = |index: &usize| at_least(*index, BREAKABLE_WHOLE);
    let gaps = |kept: &[usize]| GAP * kept.len().saturating_sub(1);
    while kept.iter().map(pleasant).sum::<usize>() + gaps(&kept) > width {
        let worst = kept
            .iter()
            .copied()
            .max_by_key(|index| (columns[*index].rank, *index))?;
        match columns[worst].rank {
            Rank::Always => break,
            Rank::Spare(_) => {}
            Rank::Below => below.push(worst),
        }
        kept.retain(|index| *index != worst);
    }
    if kept.iter().map(least).sum::<usize>() + gaps(&kept) > width {
        return None;
    }
    let mut beside: Vec<(usize, usize)> =
        kept.iter().map(|index| (*index, natural(*index))).collect();
    while beside.iter().map(|(_, width)| width).sum::<usize>() + gaps(&kept) > width {
        // The widest of those that may shrink gives one column.
        let breakable = |(index, width): &&mut (usize, usize)| *width > least(index);
        let shrinks = beside
            .iter_mut()
            .filter(breakable)
            .max_by_key(|(_, width)| *width)?;
        shrinks.1 -= 1;
    }
    below.sort_unstable();
    Some(Layout { beside, below })
}

/// The lines of a table, headings first.
#[must_use]
pub fn table(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let Some(layout) = layout(columns, rows, width) else {
        return blocks(columns, rows, width);
    };
    let heads: Vec<String> = columns
        .iter()
        .map(|column| column.head.to_owned())
        .collect();
    let mut lines = row_lines(columns, &heads, &layout, Some(HEADING));
    for row in rows {
        lines.extend(row_lines(columns, row, &layout, None));
        for index in &layout.below {
            let cell = row.get(*index).map_or("", String::as_str);
            if cell.is_empty() {
                continue;
            }
            let text = format!("{} {cell}", columns[*index].head.to_lowercase());
            let below = wrapped(&text, width.saturating_sub(INDENT));
            let indented = below
                .iter()
                .map(|line| format!("{}{}", " ".repeat(INDENT), styled(DIM, line)));
            lines.extend(indented);
        }
    }
    lines
}

/// The lines of one row.
fn row_lines(
    columns: &[Column],
    row: &[String],
    layout: &Layout,
    style: Option<Style>,
) -> Vec<String> {
    let cells: Vec<Vec<String>> = layout
        .beside
        .iter()
        .map(|(index, width)| {
            let cell = row.get(*index).map_or("", String::as_str);
            match columns[*index].kind {
                Kind::Breakable => shortened(wrapped(cell, *width), *width),
                Kind::Whole | Kind::Status => vec![cell.to_owned()],
            }
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    let last = layout.beside.len().saturating_sub(1);
    (0..height)
        .map(|line| {
            let mut out = String::new();
            for (place, (index, width)) in layout.beside.iter().enumerate() {
                let text = cells[place].get(line).map_or("", String::as_str);
                let style = match (style, columns[*index].kind) {
                    (Some(style), _) => style,
                    (None, Kind::Status) => status_style(text),
                    (None, _) => Style::new(),
                };
                out.push_str(&styled(style, text));
                if place < last {
                    let blanks = width.saturating_sub(width_of(text)) + GAP;
                    out.push_str(&" ".repeat(blanks));
                }
            }
            out.trim_end().to_owned()
        })
        .collect()
}

/// A cell of a list with no more lines than are pleasant.
fn shortened(mut lines: Vec<String>, width: usize) -> Vec<String> {
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        if let Some(last) = lines.last_mut() {
            while width_of(last) + 1 > width {
                last.pop();
            }
            last.push('…');
        }
    }
    lines
}

/// The rows one below the other, each as its fields: for a terminal that is too narrow.
fn blocks(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        let named = columns.iter().zip(row).map(|(column, cell)| {
            let label = column.head.to_lowercase();
            (label, cell.clone(), column.kind)
        });
        let pairs: Vec<(String, String, Kind)> = named.collect();
        lines.extend(fields(&pairs, width));
    }
    lines
}

/// The lines of one thing, field by field; fields without a value are left out.
#[must_use]
pub fn fields(pairs: &[(String, String, Kind)], width: usize) -> Vec<String> {
    let there = || pairs.iter().filter(|(_, value, _)| !value.is_empty());
    let label_width = there()
        .map(|(label, _, _)| width_of(label))
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for (label, value, kind) in there() {
        let room = width.saturating_sub(label_width + GAP).max(1);
        let style = match kind {
            Kind::Status => status_style(value),
            Kind::Whole | Kind::Breakable => Style::new(),
        };
        for (number, line) in wrapped(value, room).iter().enumerate() {
            let label = if number == 0 { label.as_str() } else { "" };
            let label = padded(label, label_width + GAP);
            lines.push(format!("{}{}", styled(DIM, &label), styled(style, line)));
        }
    }
    lines
}
