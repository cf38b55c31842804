//! Text from elsewhere, made fit for a terminal: it neither moves the cursor nor breaks a line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands in the place of a character that would do something to a terminal.
const ODD: char = '\u{fffd}';

/// A text without characters that control a terminal or turn its writing around. Lines become one.
#[must_use]
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => ' ',
        c if c.is_control() || turns(c) => ODD,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// A JSON text without such characters: they stand in its strings alone, where they may be written
/// as escapes.
#[must_use]
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        let blank = matches!(c, '\n' | '\r' | '\t');
        if !blank && (c.is_control() || turns(c)) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character turns the writing around.
fn turns(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// A text with at most so many columns.
#[must_use]
pub fn clipped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if columns(&out) > width {
            out.pop();
            break;
        }
    }
    out
}

/// The columns that a text takes on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// A text with blanks behind it, up to `width` columns.
#[must_use]
pub fn padded(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(blanks))
}

/// A text in lines of at most `width` columns, broken between words; a word that is longer than a
/// line is broken anywhere. There is at least one line.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if columns(&line) + gap + columns(word) <= width {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if columns(&line) + c.width().unwrap_or(0) > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_controls_the_terminal() {
        let odd = "a\u{1b}[31mb\rc\u{7}\u{9b}d\ne\u{202e}f";
        let shown = plain(odd);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert_eq!(shown, "a\u{fffd}[31mb\u{fffd}c\u{fffd}\u{fffd}d e\u{fffd}f");
        assert_eq!(plain("ü 数 …"), "ü 数 …");
    }

    #[test]
    fn json_stays_the_same_and_controls_nothing() {
        let odd = "{ \"a\":\r\n\t\"\u{7f}\u{9b}2J\u{202e}\u{61c} ü 数\" }";
        let shown = escaped(odd);
        let blank = |c: char| matches!(c, '\n' | '\r' | '\t');
        assert!(
            !shown
                .chars()
                .any(|c| turns(c) || (c.is_control() && !blank(c)))
        );
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(odd));
        assert_eq!(escaped("{\"ü\": [1]}\n"), "{\"ü\": [1]}\n");
    }

    #[test]
    fn what_is_clipped_has_no_more_columns_than_there_are() {
        assert_eq!(clipped("数数数", 5), "数数");
        assert_eq!(clipped("abc", 3), "abc");
        assert_eq!(clipped("abc", 0), "");
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrapped("u1, u2, u3", 7), ["u1, u2,", "u3"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(
            wrapped("数数数", 4),
            ["数数", "数"],
            "wide characters take two"
        );
        for width in 0..12 {
            let lines = wrapped("one two-three 数数 four", width);
            let most = lines.iter().map(|line| columns(line)).max();
            assert!(most <= Some(width.max(2)), "{width}: {lines:?}");
        }
    }
}
