//! Events made safe for their conversion into requests, which takes some parts of them on trust:
//! what callers wrote must not be able to fail an invocation as a whole.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

/// What cannot stand in a query as it is.
const IN_QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What cannot stand in a path as it is. Gateways hand over some paths decoded.
const IN_PATH: &AsciiSet = &IN_QUERY.add(b'?').add(b'[').add(b']');

/// Most characters of a path, and of a query: both together fit into an address. What is longer has
/// no meaning here, since ids and cursors are far shorter.
const PART_CHARS_MAX: usize = 32_000;
/// Stands for a path or query that is longer: no route and no parameter has this name, so that the
/// one is not found and the other refused.
const TOO_LONG: &str = "longer-than-32000-characters";

/// Headers that the conversion builds an address from, which nothing here needs.
const OF_THE_ADDRESS: [&str; 2] = ["host", "x-forwarded-proto"];

/// Makes the event safe.
///
/// # Errors
/// Its body is said to be base64 and is not: no gateway sends that.
pub(crate) fn tame(event: &mut Value) -> Result<(), String> {
    let path = event["rawPath"].as_str().map(|path| {
        let encoded = encoded(path, IN_PATH);
        if encoded.starts_with('/') {
            encoded
        } else {
            format!("/{encoded}")
        }
    });
    let query = event["rawQueryString"].as_str();
    let query = query.map(|query| encoded(query, IN_QUERY));
    for (name, value) in [("rawPath", path), ("rawQueryString", query)] {
        if let Some(value) = value {
            event[name] = Value::String(value);
        }
    }
    if let Some(Value::Object(context)) = event.get_mut("requestContext") {
        context.remove("domainName");
    }
    if let Some(Value::Object(headers)) = event.get_mut("headers") {
        tame_headers(headers);
    }
    let is_base64 = event["isBase64Encoded"] == true;
    match event["body"].as_str().filter(|_| is_base64) {
        Some(body) if BASE64_STANDARD.decode(body).is_err() => Err("a body is not base64".into()),
        _ => Ok(()),
    }
}

fn encoded(text: &str, set: &'static AsciiSet) -> String {
    let encoded = utf8_percent_encode(text, set).to_string();
    if encoded.len() > PART_CHARS_MAX {
        return TOO_LONG.to_owned();
    }
    encoded
}

/// Takes out what the address would be built from, and puts a `?` for every character that a header
/// cannot have: a value that was there stays there, so that a bad one is refused and not ignored.
fn tame_headers(headers: &mut Map<String, Value>) {
    headers.retain(|name, _| !OF_THE_ADDRESS.contains(&&*name.to_ascii_lowercase()));
    for value in headers.values_mut() {
        if let Value::String(text) = value {
            let legal = |c: char| c == ' ' || c.is_ascii_graphic();
            *text = text
                .chars()
                .map(|c| if legal(c) { c } else { '?' })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_callers_wrote_is_encoded_and_the_rest_stays() {
        let mut event = json!({
            "rawPath": "v1/ü b?c%20",
            "rawQueryString": "a=b c&d=%20",
            "headers": { "Host": "bad host", "x": "ü\t1", "if-match": "\"7\"" },
            "requestContext": { "domainName": "bad host", "stage": "s" },
        });
        assert_eq!(tame(&mut event), Ok(()));
        let expected = json!({
            "rawPath": "/v1/%C3%BC%20b%3Fc%20",
            "rawQueryString": "a=b%20c&d=%20",
            "headers": { "x": "??1", "if-match": "\"7\"" },
            "requestContext": { "stage": "s" },
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn what_is_too_long_becomes_what_nothing_is_called() {
        // Encoding makes three characters of each.
        let long = "{".repeat(22_000);
        let mut event = json!({ "rawPath": format!("/v1/{long}"), "rawQueryString": long });
        assert_eq!(tame(&mut event), Ok(()));
        assert_eq!(event["rawPath"], format!("/{TOO_LONG}"));
        assert_eq!(event["rawQueryString"], TOO_LONG);
    }

    #[test]
    fn a_body_that_is_said_to_be_base64_must_be() {
        let mut event = json!({ "body": "e30=", "isBase64Encoded": true });
        assert_eq!(tame(&mut event), Ok(()));
        event["body"] = json!("{}");
        assert!(tame(&mut event).is_err());
        event["isBase64Encoded"] = json!(false);
        assert_eq!(tame(&mut event), Ok(()));
    }
}
