//! Events as the service hands them to functions, and what the replies say.

use app::auth::SecretKey;
use serde_json::{Map, Value, json};

/// An API Gateway event, payload format 2.0, in the making.
#[derive(Debug, Clone)]
pub struct HttpEvent {
    method: String,
    path: String,
    query: String,
    headers: Map<String, Value>,
    body: Option<String>,
}

impl HttpEvent {
    /// A request of `method` for `path`, which may end in a query.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Map::new(),
            body: None,
        }
    }

    /// By the holder of this key.
    #[must_use]
    pub fn by(self, key: &SecretKey) -> Self {
        self.header("authorization", &format!("Bearer {}", key.reveal()))
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), json!(value));
        self
    }

    /// With this JSON body, declared as such.
    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self.header("content-type", "application/json")
    }

    /// The event.
    #[must_use]
    pub fn build(self) -> Value {
        let mut event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": self.path,
            "rawQueryString": self.query,
            "headers": self.headers,
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "domainName": "api.example",
                "http": {
                    "method": self.method,
                    "path": self.path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1",
                    "userAgent": "test"
                },
                "requestId": "gateway-request",
                "routeKey": "$default",
                "stage": "$default",
                "time": "01/Jul/2026:12:00:00 +0000",
                "timeEpoch": 1_782_907_200_000_u64
            },
            "isBase64Encoded": false
        });
        if let Some(body) = self.body {
            event["body"] = Value::String(body);
        }
        event
    }
}

/// The status of an HTTP function's reply; 0 if it is none.
#[must_use]
pub fn status(reply: &Value) -> u16 {
    let status = reply["statusCode"].as_u64();
    status.and_then(|s| u16::try_from(s).ok()).unwrap_or(0)
}

/// The JSON body of an HTTP function's reply; null if it has none.
#[must_use]
pub fn body(reply: &Value) -> Value {
    let text = reply["body"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// A batch of stream records or queue messages as one event.
#[must_use]
pub fn batch(records: &[Value]) -> Value {
    json!({ "Records": records })
}

/// A message of the queue with this id and body.
#[must_use]
pub fn message(id: &str, body: &str) -> Value {
    json!({
        "messageId": id,
        "receiptHandle": format!("receipt-of-{id}"),
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1782907200000",
            "SenderId": "AIDAEXAMPLE",
            "ApproximateFirstReceiveTimestamp": "1782907200001"
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:terminations",
        "awsRegion": "eu-central-1"
    })
}

/// The ids that a reply to a batch names as failed; `None` if it is not such a reply.
#[must_use]
pub fn failed(reply: &Value) -> Option<Vec<String>> {
    let each = reply["batchItemFailures"].as_array()?.iter();
    each.map(|failure| failure["itemIdentifier"].as_str().map(str::to_owned))
        .collect()
}

/// The sequence number of a stream record; empty if it has none.
#[must_use]
pub fn sequence_number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"]
        .as_str()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_parted_from_its_query_and_a_body_is_declared() {
        let event = HttpEvent::new("POST", "/v1/x?a=b")
            .by(&crate::fixtures::secret(1))
            .json(&json!({"n": 1}))
            .build();
        assert_eq!(event["rawPath"], "/v1/x");
        assert_eq!(event["rawQueryString"], "a=b");
        assert_eq!(event["body"], r#"{"n":1}"#);
        assert_eq!(event["headers"]["content-type"], "application/json");
        let key = event["headers"]["authorization"].as_str().unwrap();
        assert!(key.starts_with("Bearer or_"), "{key}");
        assert_eq!(HttpEvent::new("GET", "/").build().get("body"), None);
    }

    #[test]
    fn replies_are_read_and_what_is_no_reply_is_none() {
        let reply = json!({ "statusCode": 404, "body": r#"{"code":"not_found"}"# });
        assert_eq!(status(&reply), 404);
        assert_eq!(body(&reply)["code"], "not_found");
        assert_eq!(status(&json!({})), 0);
        let reply = json!({ "batchItemFailures": [{ "itemIdentifier": "7" }] });
        assert_eq!(failed(&reply), Some(vec!["7".to_owned()]));
        assert_eq!(failed(&json!({ "batchItemFailures": [{}] })), None);
        assert_eq!(failed(&json!({})), None);
    }
}
