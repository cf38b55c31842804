//! Whether a command printed what a page shows.
//!
//! What differs from run to run is taken as equal: ids, times, hashes, keys and durations. On the
//! page, `…` in a line stands for any text, and a line of `…` alone for any lines.

/// What the page may leave out.
const ELLIPSIS: char = '…';

/// Whether `printed` is what `shown` says.
pub(crate) fn agree(shown: &str, printed: &str) -> bool {
    let shown: Vec<String> = shown.trim_end().lines().map(masked).collect();
    let printed: Vec<String> = printed.trim_end().lines().map(masked).collect();
    lines_agree(&shown, &printed)
}

fn lines_agree(shown: &[String], printed: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if first.trim() == "…" {
        return (0..=printed.len()).any(|skipped| lines_agree(rest, &printed[skipped..]));
    }
    let Some((line, others)) = printed.split_first() else {
        return false;
    };
    line_agrees(first, line) && lines_agree(rest, others)
}

/// Whether a line is what another shows, whose `…` stand for anything.
fn line_agrees(shown: &str, line: &str) -> bool {
    let mut parts = shown.split(ELLIPSIS);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A line without trailing blanks and with a name in the place of each text that differs from run
/// to run.
pub(crate) fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        let word = rest.find(|c: char| !part_of_word(c)).unwrap_or(rest.len());
        if word == 0 {
            let next = rest.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        out.push_str(name(&rest[..word]));
        rest = &rest[word..];
    }
    durations(&out)
}

fn part_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | ELLIPSIS)
}

/// The name of what a word is, or the word.
fn name(word: &str) -> &str {
    let bare = word.trim_end_matches(['.', ':']);
    let begin = bare.strip_suffix(ELLIPSIS).filter(|begin| begin.len() > 3);
    let local = bare.starts_with("local-") && bare.rsplit('-').next().is_some_and(is_hex);
    if is_shape(bare, "8-4-4-4-12") || local {
        return "<id>";
    }
    if TIMES.contains(&digits_as_0(bare).as_str()) {
        return "<time>";
    }
    if (bare.len() == 64 && is_hex(bare)) || begin.is_some_and(is_hex) {
        return "<hash>";
    }
    if bare.starts_with("or_") && bare.len() > 3 {
        return "<key>";
    }
    match ["ms", "s"].iter().find_map(|unit| bare.strip_suffix(unit)) {
        Some(number) if is_number(number) => "<duration>",
        _ => word,
    }
}

/// How times are written: as the API has them, and as people read them, in two words.
const TIMES: [&str; 4] = [
    "0000-00-00T00:00:00.000Z",
    "0000-00-00T00:00:00Z",
    "0000-00-00",
    "00:00:00Z",
];

fn digits_as_0(word: &str) -> String {
    let each = word.chars();
    each.map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether a word is groups of hexadecimal digits of these lengths.
fn is_shape(word: &str, lengths: &str) -> bool {
    let (groups, lengths) = (word.split('-'), lengths.split('-'));
    groups.clone().count() == lengths.clone().count()
        && groups
            .zip(lengths)
            .all(|(group, length)| group.len().to_string() == length && is_hex(group))
}

/// A line with a name in the place of each number before `ms` or `s`.
fn durations(line: &str) -> String {
    let number = |word: &str| is_number(word.trim_start_matches('('));
    let unit = |word: &str| matches!(word.trim_end_matches([',', '.', ')']), "ms" | "s");
    let words: Vec<&str> = line.split(' ').collect();
    let each = words.iter().enumerate().map(|(index, word)| {
        let timed = words.get(index + 1).is_some_and(|next| unit(next));
        if timed && number(word) { "<n>" } else { word }
    });
    each.collect::<Vec<_>>().join(" ")
}

/// What a run printed as a page may show it: no key in full.
pub(crate) fn presentable(printed: &str) -> String {
    let words = printed.split_inclusive(|c: char| !part_of_word(c));
    let each = words.map(|word| {
        let bare = word.trim_end_matches(|c: char| !part_of_word(c));
        match name(bare) {
            "<key>" => word.replace(bare, "or_…"),
            "<hash>" => word.replace(bare, &format!("{}…", &bare[..8])),
            _ => word.to_owned(),
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_agrees_and_nothing_else_does() {
        let id = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000";
        let other = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001";
        assert!(agree(
            &format!("VM {id}: gone."),
            &format!("VM {other}: gone.\n\n")
        ));
        assert!(agree(
            &format!("{{\"id\":\"{id}\"}}"),
            &format!("{{\"id\":\"{other}\"}}")
        ));
        assert!(agree(
            "at 2026-01-02T03:04:05.678Z",
            "at 2027-01-02T03:04:05.000Z"
        ));
        assert!(agree("took 12 ms, all 0.5 s.", "took 7 ms, all 12.25 s."));
        assert!(agree(
            "at 2026-01-02 03:04:05Z, after 1.2s",
            "at 2027-02-03 04:05:06Z, after 10s"
        ));
        assert!(agree(
            "local-agent-66ef2e655841",
            "local-agent-901f3d5f702e"
        ));
        assert!(agree(&"a".repeat(64), &"b".repeat(64)));
        assert!(agree("key or_AbC", "key or_xyz123"));
        assert!(!agree("u1 released", "u2 released"));
        assert!(!agree("a  b", "a b"));
        assert!(!agree("12 units", "13 units"));
        assert!(!agree("a\nb", "a") && !agree("a", "a\nb") && !agree("", "a"));
    }

    #[test]
    fn an_ellipsis_stands_for_any_text_and_alone_for_any_lines() {
        assert!(agree("a … d", "a b c d") && agree("…d", "abcd") && agree("a…", "abcd"));
        assert!(!agree("a … d", "a b c e") && !agree("a … c d", "a d"));
        assert!(agree("a\n…\nd", "a\nb\nc\nd") && agree("a\n…", "a"));
        assert!(!agree("a\n…\nd", "a\nb\nc"));
        assert!(agree(
            "head 0123abcd…",
            &format!("head 0123abcd{}", "0".repeat(56))
        ));
    }

    #[test]
    fn a_page_shows_no_key_in_full() {
        let printed = format!("key  or_AbCdEf123\nhash {}\n", "0a".repeat(32));
        assert_eq!(presentable(&printed), "key  or_…\nhash 0a0a0a0a…\n");
    }
}
