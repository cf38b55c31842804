//! A call of the API: what a command line comes to.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// Everything of a path's segment but what never needs to be encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Whether a call may be sent again when its answer did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It changes nothing.
    Safe,
    /// The platform does it once for each `Idempotency-Key`.
    Keyed,
    /// It might be done twice.
    Never,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: &'static str,
    /// The path, encoded.
    pub path: String,
    /// The query's parameters.
    pub query: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Value>,
    /// The version for `If-Match`.
    pub if_match: Option<String>,
    /// Whether it may be sent again.
    pub repeat: Repeat,
    /// Whether it goes out without a key.
    pub open: bool,
}

impl Call {
    fn new(method: &'static str, repeat: Repeat, segments: &[&str]) -> Self {
        let path: String = segments
            .iter()
            .map(|segment| format!("/{}", utf8_percent_encode(segment, SEGMENT)))
            .collect();
        Self {
            method,
            path,
            query: Vec::new(),
            body: None,
            if_match: None,
            repeat,
            open: false,
        }
    }

    /// Reads what is at the path of these segments.
    #[must_use]
    pub fn get(segments: &[&str]) -> Self {
        Self::new("GET", Repeat::Safe, segments)
    }

    /// Changes something, once for each `Idempotency-Key`.
    #[must_use]
    pub fn once(segments: &[&str]) -> Self {
        Self::new("POST", Repeat::Keyed, segments)
    }

    /// Changes something by a method that takes no `Idempotency-Key`.
    #[must_use]
    pub fn change(method: &'static str, segments: &[&str]) -> Self {
        Self::new(method, Repeat::Never, segments)
    }

    /// The same without a key.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// The same with a parameter of the query, if it has a value.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.query.push((name, value.to_string()));
        }
        self
    }

    /// The same with a body.
    #[must_use]
    pub fn body(mut self, body: Body) -> Self {
        self.body = Some(Value::Object(body.0));
        self
    }

    /// The same with a body, if there is anything in it.
    #[must_use]
    pub fn optional_body(self, body: Body) -> Self {
        if body.0.is_empty() {
            self
        } else {
            self.body(body)
        }
    }

    /// The same on the condition that the version is still this one.
    #[must_use]
    pub fn if_match(mut self, version: Option<&str>) -> Self {
        self.if_match = version.map(|version| format!("\"{}\"", version.trim_matches('"')));
        self
    }
}

/// A body in the making: fields without a value are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body(Map<String, Value>);

impl Body {
    /// The same with a field.
    #[must_use]
    pub fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.maybe(name, Some(value))
    }

    /// The same with a field, if it has a value.
    #[must_use]
    pub fn maybe(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The same with a list, if there is anything in it.
    #[must_use]
    pub fn list(self, name: &str, values: &[String]) -> Self {
        let some = (!values.is_empty()).then(|| values.to_vec());
        self.maybe(name, some)
    }

    /// The same with a flag, if it is set.
    #[must_use]
    pub fn flag(self, name: &str, set: bool) -> Self {
        self.maybe(name, set.then_some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_paths_cannot_become_other_paths() {
        let call = Call::get(&["v1", "vms", "a/b?c#d e%"]);
        assert_eq!(call.path, "/v1/vms/a%2Fb%3Fc%23d%20e%25");
        assert_eq!(
            Call::get(&["v1", "vms", "a:b.c_d-e"]).path,
            "/v1/vms/a:b.c_d-e"
        );
    }

    #[test]
    fn what_has_no_value_is_left_out() {
        let body = Body::default()
            .with("a", 1)
            .maybe("b", None::<String>)
            .list("c", &[])
            .flag("d", false);
        let call = Call::once(&["x"]).optional_body(body);
        assert_eq!(call.body, Some(serde_json::json!({ "a": 1 })));
        assert_eq!(Call::once(&["x"]).optional_body(Body::default()).body, None);
    }

    #[test]
    fn a_version_is_sent_in_quotes_once() {
        for version in ["3", "\"3\""] {
            let call = Call::once(&["x"]).if_match(Some(version));
            assert_eq!(call.if_match.as_deref(), Some("\"3\""));
        }
    }
}
