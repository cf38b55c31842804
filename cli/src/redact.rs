//! Keys never reach a screen or a file by accident: whatever is said goes through here.

/// What stands in the place of a key.
const GONE: &str = "or_…";

/// What makes something look like a key: how it begins, the fewest characters behind that, and
/// whether those may be other than letters and digits.
const SHAPES: [(&str, usize, bool); 2] = [("or_", 16, false), ("vl_", 13, true)];

/// A key that does not show in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(GONE)
    }
}

impl Secret {
    /// Reads a key: one word of printable ASCII, with blanks around it dropped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let whole = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        whole.then(|| Self(text.to_owned()))
    }

    /// The key itself, for the header that carries it and the file that keeps it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without this key.
    #[must_use]
    pub fn taken_out_of(&self, text: &str) -> String {
        text.replace(&self.0, GONE)
    }
}

/// A text with all that looks like a key taken out.
#[must_use]
pub fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = SHAPES.iter().find_map(|shape| key_length(rest, shape));
        match length {
            Some(_) => out.push_str(GONE),
            None => out.push(c),
        }
        rest = &rest[length.unwrap_or(c.len_utf8())..];
    }
    out
}

/// The bytes of the key that a text begins with, if it does.
fn key_length(text: &str, (prefix, least, marks): &(&str, usize, bool)) -> Option<usize> {
    let behind = text.strip_prefix(prefix)?;
    let part = |b: &u8| b.is_ascii_alphanumeric() || (*marks && matches!(b, b'_' | b'-'));
    let length = behind.bytes().take_while(|b| part(b)).count();
    (length >= *least).then_some(prefix.len() + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_nothing_else_is() {
        let key = format!("or_{}", "aB3".repeat(14));
        assert_eq!(redacted(&format!("x '{key}' y")), "x 'or_…' y");
        assert_eq!(
            redacted(&format!("\u{1b}[33m{key}\u{1b}[0m")),
            "\u{1b}[33mor_…\u{1b}[0m"
        );
        assert_eq!(redacted("vl_legacy-key-0001."), "or_….");
        for text in [
            "for_whatever_it_may_be_good_for",
            "or_short",
            "error_or_not",
            "",
            "ü or_",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_key_is_one_word_and_does_not_show() {
        let key = Secret::parse(" or_x\n").unwrap();
        assert_eq!(key.reveal(), "or_x");
        assert_eq!(format!("{key:?}"), GONE);
        assert_eq!(key.taken_out_of("a or_x b"), "a or_… b");
        for bad in ["", "  ", "a b", "a\nb", "ü", "a\u{7}"] {
            assert_eq!(Secret::parse(bad), None, "{bad:?}");
        }
    }
}
