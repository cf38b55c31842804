//! A request as the event that an HTTP API of API Gateway makes of it, payload format 2.0.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use domain::Timestamp;
use http::HeaderMap;
use http::request::Parts;
use http_api::FunctionName;
use http_api::routes::{Found, find};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

/// The account, the API and the stage that events name here.
const ACCOUNT_ID: &str = "000000000000";
const API_ID: &str = "local";
const STAGE: &str = "$default";

/// The route of everything that no route matches.
const DEFAULT_ROUTE: &str = "$default";

/// Which function answers, and under which route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The function.
    pub function: FunctionName,
    /// The route as the gateway names it: method and path, or `$default`.
    pub route_key: String,
    /// The parameters of the path.
    pub parameters: BTreeMap<&'static str, String>,
}

/// Finds the target of a request in the route table.
#[must_use]
pub fn target(method: &str, path: &str) -> Target {
    match find(method, path) {
        Found::Route(route, parameters) => Target {
            function: route.function,
            route_key: format!("{} {}", route.method, route.path),
            parameters: parameters.into_iter().collect(),
        },
        Found::WrongMethod(_) | Found::NoPath => Target {
            function: FunctionName::DEFAULT,
            route_key: DEFAULT_ROUTE.to_owned(),
            parameters: BTreeMap::new(),
        },
    }
}

/// What the gateway knows of a request beside its own text.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Who sent it.
    pub peer: SocketAddr,
    /// When.
    pub at: Timestamp,
    /// The gateway's own id for it.
    pub request_id: String,
}

/// The event. What is no text in a header is replaced, so that the function sees that it is wrong.
#[must_use]
pub fn event(parts: &Parts, body: &[u8], target: &Target, arrival: &Arrival) -> Value {
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or_default();
    let (headers, cookies) = headers(&parts.headers, arrival);
    let host = headers.get("host").cloned().unwrap_or_default();
    let agent = headers.get("user-agent").cloned().unwrap_or_default();
    let method = parts.method.as_str();
    let mut event = json!({
        "version": "2.0",
        "routeKey": target.route_key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": API_ID,
            "domainName": host,
            "domainPrefix": API_ID,
            "http": {
                "method": method,
                "path": path,
                "protocol": format!("{:?}", parts.version),
                "sourceIp": arrival.peer.ip().to_string(),
                "userAgent": agent,
            },
            "requestId": arrival.request_id,
            "routeKey": target.route_key,
            "stage": STAGE,
            "time": common_log_time(arrival.at),
            "timeEpoch": arrival.at.unix_ms(),
        },
        "isBase64Encoded": false,
    });
    if let Value::Object(members) = &mut event {
        add_optional(members, cookies, query, target);
        add_body(members, &parts.headers, body);
    }
    event
}

/// Members that are left out where they would be empty.
fn add_optional(
    members: &mut Map<String, Value>,
    cookies: Vec<String>,
    query: &str,
    target: &Target,
) {
    if !cookies.is_empty() {
        members.insert("cookies".to_owned(), json!(cookies));
    }
    let parameters = query_parameters(query);
    if !parameters.is_empty() {
        members.insert("queryStringParameters".to_owned(), json!(parameters));
    }
    if !target.parameters.is_empty() {
        members.insert("pathParameters".to_owned(), json!(target.parameters));
    }
}

/// The body: as text where it is declared and readable as text, in base 64 otherwise.
fn add_body(members: &mut Map<String, Value>, headers: &HeaderMap, body: &[u8]) {
    if body.is_empty() {
        return;
    }
    let text = str::from_utf8(body).ok().filter(|_| declares_text(headers));
    let (body, encoded) = match text {
        Some(text) => (text.to_owned(), false),
        None => (BASE64_STANDARD.encode(body), true),
    };
    members.insert("body".to_owned(), json!(body));
    members.insert("isBase64Encoded".to_owned(), json!(encoded));
}

fn declares_text(headers: &HeaderMap) -> bool {
    let declared = headers.get("content-type").and_then(|v| v.to_str().ok());
    let essence = declared.unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    let known = [
        "application/json",
        "application/xml",
        "application/javascript",
    ];
    essence.starts_with("text/") || known.contains(&essence.as_str())
}

/// Headers by their lower-case names, repeated ones joined by commas, and the cookies apart.
fn headers(given: &HeaderMap, arrival: &Arrival) -> (BTreeMap<String, String>, Vec<String>) {
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    let mut cookies = Vec::new();
    for (name, value) in given {
        let text = String::from_utf8_lossy(value.as_bytes());
        if name == "cookie" {
            cookies.extend(text.split(';').map(|cookie| cookie.trim().to_owned()));
            continue;
        }
        out.entry(name.as_str().to_owned())
            .and_modify(|there| {
                there.push(',');
                there.push_str(&text);
            })
            .or_insert_with(|| text.into_owned());
    }
    let peer = arrival.peer.ip().to_string();
    out.entry("x-forwarded-for".to_owned())
        .and_modify(|there| {
            there.push_str(", ");
            there.push_str(&peer);
        })
        .or_insert(peer);
    out.insert("x-forwarded-proto".to_owned(), "http".to_owned());
    (out, cookies)
}

/// Parameters of the query by their decoded names, repeated ones joined by commas.
fn query_parameters(query: &str) -> BTreeMap<String, String> {
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name), decoded(value));
        out.entry(name)
            .and_modify(|there| {
                there.push(',');
                there.push_str(&value);
            })
            .or_insert(value);
    }
    out
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// The time as access logs write it: `29/Nov/2026:14:05:00 +0000`.
fn common_log_time(at: Timestamp) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(at.unix_ms().div_euclid(1_000)) else {
        return String::new();
    };
    let month = at.month().to_string();
    let (hour, minute, second) = at.to_hms();
    format!(
        "{:02}/{}/{}:{hour:02}:{minute:02}:{second:02} +0000",
        at.day(),
        month.get(..3).unwrap_or_default(),
        at.year()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(request: http::Request<&[u8]>) -> Value {
        let (parts, body) = request.into_parts();
        let target = target(parts.method.as_str(), parts.uri.path());
        let arrival = Arrival {
            peer: SocketAddr::from(([127, 0, 0, 1], 5_000)),
            at: Timestamp::from_unix_ms(1_782_907_200_123),
            request_id: "r-1".to_owned(),
        };
        event(&parts, body, &target, &arrival)
    }

    #[test]
    fn a_request_becomes_an_event_of_payload_format_2() {
        let request =
            http::Request::post("/v1/nodes/n%2D1/reservations/r/reclaim?dryRun=true&a=b%20c&a=d")
                .header("Host", "localhost:8083")
                .header("Content-Type", "application/json; charset=utf-8")
                .header("Cookie", "a=1; b=2")
                .header("X-Twice", "one")
                .header("X-Twice", "two")
                .header("User-Agent", "test")
                .body(&br#"{"unitIds":["u0"]}"#[..])
                .unwrap();
        let event = event_of(request);
        let key = "POST /v1/nodes/{nodeId}/reservations/{id}/reclaim";
        let expected = json!({
            "version": "2.0",
            "routeKey": key,
            "rawPath": "/v1/nodes/n%2D1/reservations/r/reclaim",
            "rawQueryString": "dryRun=true&a=b%20c&a=d",
            "cookies": ["a=1", "b=2"],
            "headers": {
                "content-type": "application/json; charset=utf-8",
                "host": "localhost:8083",
                "user-agent": "test",
                "x-forwarded-for": "127.0.0.1",
                "x-forwarded-proto": "http",
                "x-twice": "one,two",
            },
            "queryStringParameters": { "dryRun": "true", "a": "b c,d" },
            "pathParameters": { "nodeId": "n-1", "id": "r" },
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "domainName": "localhost:8083",
                "domainPrefix": "local",
                "http": {
                    "method": "POST",
                    "path": "/v1/nodes/n%2D1/reservations/r/reclaim",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "127.0.0.1",
                    "userAgent": "test",
                },
                "requestId": "r-1",
                "routeKey": key,
                "stage": "$default",
                "time": "01/Jul/2026:12:00:00 +0000",
                "timeEpoch": 1_782_907_200_123_i64,
            },
            "body": r#"{"unitIds":["u0"]}"#,
            "isBase64Encoded": false,
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn what_is_not_text_travels_in_base_64() {
        for (declared, body) in [
            ("application/octet-stream", &b"{}"[..]),
            ("application/json", &b"\xff\xfe"[..]),
            ("application/x-www-form-urlencoded", &b"a=b"[..]),
        ] {
            let request = http::Request::post("/v1/nodes/n/reservations")
                .header("Content-Type", declared)
                .body(body)
                .unwrap();
            let event = event_of(request);
            assert_eq!(event["isBase64Encoded"], true, "{declared}");
            assert_eq!(event["body"], BASE64_STANDARD.encode(body), "{declared}");
        }
    }

    #[test]
    fn what_no_route_matches_goes_to_the_default_route() {
        for (method, path) in [
            ("GET", "/"),
            ("DELETE", "/v1/nodes/n"),
            ("HEAD", "/v1/nodes/n"),
        ] {
            let target = target(method, path);
            assert_eq!(target.route_key, "$default", "{method} {path}");
            assert_eq!(target.function, FunctionName::Nodes, "{method} {path}");
        }
    }

    #[test]
    fn what_is_no_text_in_a_header_is_replaced() {
        let value = http::HeaderValue::from_bytes(b"a\xff").unwrap();
        let request = http::Request::get("/").header("x-odd", value);
        let event = event_of(request.body(&b""[..]).unwrap());
        assert_eq!(event["headers"]["x-odd"], "a\u{fffd}");
    }
}
