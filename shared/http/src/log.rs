//! The line that is logged of each call, and what is counted of it.
//!
//! Who called, what for and how it ended; never the key, the body or anything else in the caller's
//! words.

use std::time::Duration;

use domain::Caller;
use domain::limits::ID_CHARS_MAX;

use crate::routes::{FunctionName, Route};

/// What stands for an operation where no route was found.
const NO_OPERATION: &str = "none";

/// What is known of a call at its end.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) function: FunctionName,
    pub(crate) route: Option<&'static Route>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a [(&'static str, String)],
    /// Who called, once that was found out.
    pub(crate) caller: Option<&'a Caller>,
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) elapsed: Duration,
}

impl Line<'_> {
    /// Writes it, and counts the call.
    pub(crate) fn write(&self) {
        let function = self.function.as_str();
        let operation = self.route.map(|route| route.operation.as_str());
        let operation = operation.unwrap_or(NO_OPERATION);
        let values = [function, operation, self.code];
        metrics::CALLS.add(1, values);
        metrics::CALL_DURATION.observe(self.elapsed, values);
        tracing::info!(
            request_id = self.request_id,
            function,
            operation,
            method = method(self.method),
            status = self.status,
            code = self.code,
            duration_us = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX),
            org_id = self.caller.map(|caller| caller.org.as_str()),
            key_id = self.caller.map(|caller| caller.key.as_str()),
            operator = self.caller.map(|caller| caller.operator),
            node_id = self.id(Thing::Node),
            reservation_id = self.id(Thing::Reservation),
            vm_id = self.id(Thing::Vm),
            "call"
        );
    }

    /// The path's id of such a thing.
    fn id(&self, thing: Thing) -> Option<&str> {
        let route = self.route?;
        let mut named = self.path.iter();
        let (_, id) = named.find(|(name, _)| Thing::of(route, name) == Some(thing))?;
        Some(shown(id))
    }
}

/// What a parameter of a path is the id of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Node,
    Reservation,
    Vm,
}

impl Thing {
    fn of(route: &Route, parameter: &str) -> Option<Self> {
        match parameter {
            "nodeId" => Some(Thing::Node),
            "vmId" => Some(Thing::Vm),
            "id" if route.path.starts_with("/v1/vms/") => Some(Thing::Vm),
            "id" if route.path.contains("/reservations/{id}") => Some(Thing::Reservation),
            _ => None,
        }
    }
}

/// An id as it may be shown: not what cannot be one, nor a key that was put in the wrong place.
fn shown(id: &str) -> &str {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    let sound = !id.is_empty() && id.len() <= ID_CHARS_MAX && id.bytes().all(part);
    let key = ["or_", "vl_"].iter().any(|prefix| id.contains(prefix));
    match (sound, key) {
        (true, false) => id,
        (false, _) => "(no id)",
        (true, true) => "(hidden)",
    }
}

/// A method as it may be shown: callers may make up their own.
fn method(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => method,
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Found, find};

    fn line<'a>(found: &'a Found, verb: &'a str) -> Line<'a> {
        let (route, path) = match found {
            Found::Route(route, path) => (Some(*route), path.as_slice()),
            Found::WrongMethod(_) | Found::NoPath => (None, &[][..]),
        };
        Line {
            request_id: "request",
            function: FunctionName::Nodes,
            route,
            method: verb,
            path,
            caller: None,
            status: 200,
            code: "ok",
            elapsed: Duration::ZERO,
        }
    }

    fn ids(verb: &str, path: &str) -> [Option<String>; 3] {
        let found = find(verb, path);
        let line = line(&found, verb);
        [Thing::Node, Thing::Reservation, Thing::Vm].map(|t| line.id(t).map(str::to_owned))
    }

    #[test]
    fn the_ids_of_the_path_are_told_by_what_they_are_of() {
        let some = |text: &str| Some(text.to_owned());
        let found = ids("POST", "/v1/nodes/n-1/reservations/r-1/reclaim");
        assert_eq!(found, [some("n-1"), some("r-1"), None]);
        let found = ids("POST", "/v1/nodes/n-1/terminations/v-1/confirm");
        assert_eq!(found, [some("n-1"), None, some("v-1")]);
        assert_eq!(ids("GET", "/v1/vms/v-2"), [None, None, some("v-2")]);
        assert_eq!(ids("GET", "/nowhere"), [None, None, None]);
    }

    #[test]
    fn what_is_no_id_and_what_may_be_a_key_are_not_shown() {
        let key = app::auth::SecretKey::from_random(&[7; 32]);
        for text in [
            key.reveal(),
            &format!("x{}", key.reveal()),
            "vl_legacy-key-0001",
        ] {
            assert_eq!(shown(text), "(hidden)", "{text}");
        }
        for text in ["", "a b", "a/b", "ü", &"x".repeat(129)] {
            assert_eq!(shown(text), "(no id)", "{text}");
        }
        assert_eq!(shown("gpu-node-1"), "gpu-node-1");
        assert_eq!(method(key.reveal()), "other");
    }
}
