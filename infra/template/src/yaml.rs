//! CloudFormation's YAML as JSON.

use std::iter::Peekable;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value, json};

/// A template that cannot be read: why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the template cannot be read: {0}")]
pub struct Unreadable(pub String);

/// Most levels of a template: far more than one has.
const DEPTH_MAX: usize = 64;

type Events<'a> = Peekable<Parser<'a, StrInput<'a>>>;

/// A template as JSON, with the tags of CloudFormation in their long forms.
///
/// # Errors
/// [`Unreadable`] if it is no YAML of one document, or has anchors, a tag that CloudFormation has
/// not, or a key twice.
pub fn parse(text: &str) -> Result<Value, Unreadable> {
    let mut events: Events = Parser::new_from_str(text).peekable();
    loop {
        match next(&mut events)? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            first => return value(first, &mut events, 0),
        }
    }
}

fn next<'a>(events: &mut Events<'a>) -> Result<(Event<'a>, Span), Unreadable> {
    match events.next() {
        Some(Ok(event)) => Ok(event),
        Some(Err(error)) => Err(Unreadable(error.to_string())),
        None => Err(Unreadable("it ends too soon".to_owned())),
    }
}

fn at(span: &Span, problem: &str) -> Unreadable {
    Unreadable(format!("line {}: {problem}", span.start.line()))
}

/// The value that begins with this event.
fn value<'a>(
    (event, span): (Event<'a>, Span),
    events: &mut Events<'a>,
    depth: usize,
) -> Result<Value, Unreadable> {
    if depth > DEPTH_MAX {
        return Err(at(&span, "it is too deep"));
    }
    match event {
        Event::Scalar(text, style, 0, tag) => {
            let plain = style == ScalarStyle::Plain && tag.is_none();
            let scalar = if plain {
                resolve(&text)
            } else {
                Value::String(text.into_owned())
            };
            tagged(tag.as_deref(), scalar).ok_or_else(|| at(&span, "an unknown tag"))
        }
        Event::SequenceStart(0, tag) => {
            let mut items = Vec::new();
            loop {
                match next(events)? {
                    (Event::SequenceEnd, _) => break,
                    first => items.push(value(first, events, depth + 1)?),
                }
            }
            let items = Value::Array(items);
            tagged(tag.as_deref(), items).ok_or_else(|| at(&span, "an unknown tag"))
        }
        Event::MappingStart(0, None) => mapping(events, depth),
        Event::Alias(_)
        | Event::Scalar(..)
        | Event::SequenceStart(..)
        | Event::MappingStart(_, None) => Err(at(&span, "anchors are not understood")),
        Event::MappingStart(..) => Err(at(&span, "a tag where none can be")),
        _ => Err(at(&span, "a value is missing")),
    }
}

fn mapping<'a>(events: &mut Events<'a>, depth: usize) -> Result<Value, Unreadable> {
    let mut members = Map::new();
    loop {
        let (event, span) = next(events)?;
        let key = match event {
            Event::MappingEnd => return Ok(Value::Object(members)),
            Event::Scalar(key, _, 0, None) => key.into_owned(),
            _ => return Err(at(&span, "a key that is no text")),
        };
        let first = next(events)?;
        let member = value(first, events, depth + 1)?;
        if members.insert(key, member).is_some() {
            return Err(at(&span, "a key that was there before"));
        }
    }
}

/// What a plain scalar stands for.
fn resolve(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "" | "~" | "null" => Value::Null,
        _ => match text.parse::<i64>() {
            Ok(number) => json!(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

/// The long form of a value with this tag; `None` if CloudFormation has no such tag.
fn tagged(tag: Option<&Tag>, value: Value) -> Option<Value> {
    let Some(tag) = tag else {
        return Some(value);
    };
    let (name, value) = match (tag.handle.as_str(), tag.suffix.as_str()) {
        ("!", "Ref") => ("Ref", value),
        ("!", "Condition") => ("Condition", value),
        ("!", "GetAtt") => {
            let (resource, attribute) = value.as_str()?.split_once('.')?;
            ("Fn::GetAtt", json!([resource, attribute]))
        }
        ("!", "Sub") => ("Fn::Sub", value),
        ("!", "If") => ("Fn::If", value),
        ("!", "Not") => ("Fn::Not", value),
        ("!", "Equals") => ("Fn::Equals", value),
        ("!", "Or") => ("Fn::Or", value),
        ("!", "And") => ("Fn::And", value),
        ("!", "Join") => ("Fn::Join", value),
        _ => return None,
    };
    Some(json!({ name: value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_their_long_forms() {
        let text = "a: !Ref B\nc: !GetAtt D.E.F\ng: [!Sub 'x${Y}', !If [Z, 1, \"1\"]]\n";
        let expected = json!({
            "a": { "Ref": "B" },
            "c": { "Fn::GetAtt": ["D", "E.F"] },
            "g": [{ "Fn::Sub": "x${Y}" }, { "Fn::If": ["Z", 1, "1"] }],
        });
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn plain_words_and_numbers_are_told_from_quoted_ones() {
        let text = "a: true\nb: \"true\"\nc: 12\nd: '12'\ne: 2012-10-17\nf:\ng: |\n  7\n";
        let expected = json!({
            "a": true, "b": "true", "c": 12, "d": "12", "e": "2012-10-17", "f": null, "g": "7\n",
        });
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (text, line) in [
            ("a: 1\nb: &x 1\n", 2),
            ("a: 1\nb: *x\n", 0),
            ("a: !Else 1\n", 1),
            ("a: !GetAtt B\n", 1),
            ("a: 1\nb: 2\na: 3\n", 3),
            ("a: !Sub {b: c}\n", 1),
            ("[1]: 2\n", 1),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!("line {line}")) || line == 0,
                "{error}"
            );
        }
        for text in ["a: [1\n", "", "a:\n\t- 1\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
