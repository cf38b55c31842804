//! A function's reply as the response that the gateway makes of it.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// The response; `None` if the reply is not of payload format 2.0, which the gateway answers
/// itself.
#[must_use]
pub fn response(reply: &Value) -> Option<Response> {
    let status = u16::try_from(reply.get("statusCode")?.as_u64()?).ok()?;
    let body = match (reply.get("body"), reply.get("isBase64Encoded")) {
        (Some(Value::String(body)), Some(Value::Bool(true))) => {
            BASE64_STANDARD.decode(body).ok()?
        }
        (Some(Value::String(body)), _) => body.clone().into_bytes(),
        (None | Some(Value::Null), _) => Vec::new(),
        (Some(_), _) => return None,
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    let headers = members(reply.get("headers"));
    let several = members(reply.get("multiValueHeaders"));
    for (name, value) in headers.chain(several) {
        let name = HeaderName::try_from(name).ok()?;
        // A header in both forms is meant once.
        response.headers_mut().remove(&name);
        for value in texts(value)? {
            let value = HeaderValue::try_from(value).ok()?;
            response.headers_mut().append(&name, value);
        }
    }
    for cookie in texts(reply.get("cookies").unwrap_or(&Value::Null))? {
        let cookie = HeaderValue::try_from(cookie).ok()?;
        response.headers_mut().append("set-cookie", cookie);
    }
    Some(response)
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

/// A text, or a list of them; `None` for anything else.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(each) => each
            .iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect(),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Bool(_) | Value::Number(_) => Some(vec![value.to_string()]),
        Value::Object(_) => None,
    }
}

/// An answer of the gateway itself.
#[must_use]
pub fn own(status: StatusCode, message: &str) -> Response {
    let body = json!({ "message": message }).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_becomes_a_response() {
        let reply = json!({
            "statusCode": 409,
            "headers": { "etag": "\"7\"", "x-one": "1" },
            "multiValueHeaders": { "x-one": ["1"], "x-two": ["a", "b"] },
            "cookies": ["c=1"],
            "body": "e30=",
            "isBase64Encoded": true,
        });
        let response = response(&reply).unwrap();
        assert_eq!(response.status(), 409);
        let values = |name: &str| -> Vec<&str> {
            let all = response.headers().get_all(name).iter();
            all.map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!(values("etag"), ["\"7\""]);
        assert_eq!(values("x-one"), ["1"]);
        assert_eq!(values("x-two"), ["a", "b"]);
        assert_eq!(values("set-cookie"), ["c=1"]);
    }

    #[test]
    fn what_is_no_reply_is_none() {
        for bad in [
            json!(null),
            json!({}),
            json!({ "statusCode": 42 }),
            json!({ "statusCode": "x" }),
            json!({ "statusCode": 200, "body": {} }),
            json!({ "statusCode": 200, "body": "%", "isBase64Encoded": true }),
            json!({ "statusCode": 200, "headers": { "bad name": "x" } }),
            json!({ "statusCode": 200, "headers": { "x": "a\nb" } }),
        ] {
            assert!(response(&bad).is_none(), "{bad}");
        }
    }
}
