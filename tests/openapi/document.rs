//! The API document: put together from the route table, the types of the bodies and the answers
//! that were recorded.

use std::collections::{BTreeMap, BTreeSet};

use http_api::openapi::{answer, codes, problem, request};
use http_api::routes::{Access, BodyRule, Operation, Otherwise, ROUTES, Route};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::examples::{Example, Examples};
use crate::schemas::tidied;
use crate::{fields, operations};

/// What the operation is called in the document: as in logs and metrics, but for its first letter.
pub(crate) fn operation_id(operation: Operation) -> String {
    let name = operation.as_str();
    name[..1].to_ascii_lowercase() + &name[1..]
}

/// The component that stands for an error which looks the same on every route.
fn shared(status: u16) -> Option<&'static str> {
    Some(match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        412 => "VersionMismatch",
        413 => "BodyTooLarge",
        415 => "UnsupportedMediaType",
        429 => "Throttled",
        500 => "Internal",
        503 => "Unavailable",
        _ => return None,
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// A name as a component has it: `If-Match` and `limit` become `IfMatch` and `Limit`.
fn component(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('-').map(capital).collect()
}

/// What is said of a path's parameter; by itself, `id` is that of what stands before it.
fn path_parameter(path: &str, name: &str) -> (String, &'static str) {
    let of = path.split(&format!("/{{{name}}}")).next().unwrap();
    match (name, of.rsplit('/').next().unwrap()) {
        ("nodeId", _) => ("NodeId".into(), "The node."),
        ("orgId", _) => ("OrgId".into(), "The org."),
        ("vmId", _) => ("VmId".into(), "The VM."),
        ("id", "reservations") => ("ReservationIdInPath".into(), "The reservation."),
        ("id", "vms") => ("VmIdInPath".into(), "The VM."),
        ("id", "api-keys") => ("KeyIdInPath".into(), "The API key, by its public id."),
        other => unreachable!("say what the path parameter {other:?} is"),
    }
}

/// The names of a path's parameters.
fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// A document on its way.
pub(crate) struct Builder<'a> {
    examples: &'a Examples,
    /// What to do about each code.
    advice: &'a BTreeMap<String, String>,
    read: SchemaGenerator,
    written: SchemaGenerator,
    parameters: BTreeMap<String, Value>,
    statuses: BTreeSet<u16>,
}

impl<'a> Builder<'a> {
    /// One that knows these examples and, for each code, what to do about it.
    pub(crate) fn new(examples: &'a Examples, advice: &'a BTreeMap<String, String>) -> Self {
        let settings = || {
            SchemaSettings::draft2020_12()
                .with(|settings| settings.definitions_path = "/components/schemas".into())
        };
        Self {
            examples,
            advice,
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
            parameters: BTreeMap::new(),
            statuses: BTreeSet::new(),
        }
    }

    /// The document.
    pub(crate) fn build(mut self) -> Value {
        let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for route in ROUTES {
            let operation = self.operation(route);
            let method = route.method.to_ascii_lowercase();
            paths
                .entry(route.path)
                .or_default()
                .insert(method, operation);
        }
        let responses = self.shared_responses();
        problem(&mut self.written);
        let mut schemas = self.read.take_definitions(true);
        schemas.extend(self.written.take_definitions(true));
        json!({
            "openapi": "3.1.0",
            "info": info(self.advice),
            "servers": [{
                "url": "http://127.0.0.1:8083",
                "description": "`relet serve` on this machine",
            }],
            "tags": operations::TAGS
                .map(|(name, description)| json!({ "name": name, "description": description })),
            "security": [{ "apiKey": [] }],
            "paths": paths,
            "components": {
                "schemas": tidied(schemas),
                "parameters": self.parameters,
                "headers": headers(),
                "responses": responses,
                "securitySchemes": { "apiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "or_…",
                    "description": "An API key of an org, as `Authorization: Bearer or_…`; legacy \
                                    keys begin with `vl_`.",
                }},
            },
        })
    }

    fn operation(&mut self, route: &Route) -> Value {
        let words = operations::of(route.operation);
        let mut operation = json!({
            "operationId": operation_id(route.operation),
            "tags": [words.tag],
            "summary": words.summary,
            "description": format!("{}\n\n{}", words.description, permission(route)),
            "responses": self.responses(route),
        });
        let parameters = self.parameters(route);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(schema) = request(&mut self.read, route.operation) {
            operation["requestBody"] = self.body(route, schema.into());
        }
        if route.access == Access::Open {
            operation["security"] = json!([]);
        }
        operation
    }

    fn body(&self, route: &Route, schema: Value) -> Value {
        let mut content = json!({ "schema": schema });
        let examples: Map<String, Value> = self
            .examples
            .good(route.operation)
            .filter_map(|example| {
                let value = json!({ "value": example.request.clone()? });
                Some((example.name.clone(), value))
            })
            .collect();
        if !examples.is_empty() {
            content["examples"] = examples.into();
        }
        json!({
            "required": route.body == BodyRule::Required,
            "content": { "application/json": content },
        })
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let mut all = Vec::new();
        for name in path_names(route.path) {
            let (component, description) = path_parameter(route.path, name);
            all.push((
                component,
                json!({
                    "name": name, "in": "path", "required": true, "description": description,
                    "schema": fields::id(),
                }),
            ));
        }
        for name in route.query {
            let (schema, description) = fields::query(name);
            all.push((
                component(name),
                json!({
                    "name": name, "in": "query", "description": description, "schema": schema,
                }),
            ));
        }
        let conditions = [
            (
                route.if_match,
                "If-Match",
                fields::if_match(),
                "An `ETag` of the reservation: the call goes through only if that is still its \
                 version, and is otherwise answered with 412 and the present state.",
            ),
            (
                route.repeatable,
                "Idempotency-Key",
                fields::idempotency_key(),
                "Of your making, fresh for each call and the same for its repeats: within 24 hours \
                 a repeat does nothing and has the answer of the first.",
            ),
        ];
        for (_, name, schema, description) in conditions.into_iter().filter(|(is, ..)| *is) {
            all.push((
                component(name),
                json!({
                    "name": name, "in": "header", "description": description, "schema": schema,
                }),
            ));
        }
        let names = all.iter().map(|(name, _)| reference("parameters", name));
        let references = names.collect();
        self.parameters.extend(all);
        references
    }

    fn responses(&mut self, route: &Route) -> Value {
        let mut responses: BTreeMap<String, Value> = BTreeMap::new();
        let (status, good) = self.good(route);
        responses.insert(status.to_string(), good);
        let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for (status, code) in codes(route) {
            by_status.entry(status).or_default().push(code);
        }
        for (status, codes) in by_status {
            self.statuses.insert(status);
            let response = match shared(status) {
                Some(name) => reference("responses", name),
                None => self.errors(status, &codes, |example, code| {
                    example.operation == route.operation && example.code == code
                }),
            };
            responses.insert(status.to_string(), response);
        }
        json!(responses)
    }

    fn good(&mut self, route: &Route) -> (u16, Value) {
        let schema = answer(&mut self.written, route.operation);
        let example = self.examples.good(route.operation).next();
        let example = example.unwrap_or_else(|| unreachable!("{:?}: no answer", route.operation));
        let mut headers = json!({ "x-request-id": reference("headers", "XRequestId") });
        if example.headers.contains_key("etag") {
            headers["ETag"] = reference("headers", "ETag");
        }
        let mut response = json!({ "headers": headers });
        if example.status == 204 {
            response["description"] = json!("Done.");
            return (204, response);
        }
        response["description"] = json!("OK.");
        let mut content = Map::new();
        content.insert(
            "schema".to_owned(),
            schema.map_or_else(|| json!({ "type": "object" }), Value::from),
        );
        // The document is not an example of itself.
        if route.operation != Operation::GetApiDocument {
            let named = self
                .examples
                .good(route.operation)
                .map(|example| (example.name.clone(), json!({ "value": example.answer })));
            content.insert("examples".to_owned(), named.collect::<Map<_, _>>().into());
        }
        response["content"] = json!({ "application/json": content });
        if let Some(links) = links(route.operation) {
            response["links"] = links;
        }
        (200, response)
    }

    /// The errors of one status, each code with the first example that fits.
    fn errors(&self, status: u16, codes: &[&str], fits: impl Fn(&Example, &str) -> bool) -> Value {
        let mut examples = Map::new();
        let mut headers = json!({ "x-request-id": reference("headers", "XRequestId") });
        let mut description = Vec::new();
        for code in codes {
            let advice = self.advice.get(*code);
            let advice = advice.unwrap_or_else(|| unreachable!("docs/errors.md has no {code}"));
            description.push(format!("`{code}`: {advice}."));
            let found = self.examples.all().find(|example| fits(example, code));
            let found = found.unwrap_or_else(|| unreachable!("{status} {code}: no example"));
            for (header, component) in [
                ("ETag", "ETag"),
                ("Retry-After", "RetryAfter"),
                ("WWW-Authenticate", "WwwAuthenticate"),
            ] {
                if found.headers.contains_key(&header.to_ascii_lowercase()) {
                    headers[header] = reference("headers", component);
                }
            }
            let value = json!({ "value": found.answer });
            examples.insert((*code).to_owned(), value);
        }
        json!({
            "description": description.join("\n\n"),
            "headers": headers,
            "content": { "application/json": {
                "schema": reference("schemas", "Problem"),
                "examples": examples,
            }},
        })
    }

    fn shared_responses(&self) -> BTreeMap<&'static str, Value> {
        let mut responses = BTreeMap::new();
        for status in &self.statuses {
            let Some(name) = shared(*status) else {
                continue;
            };
            let mut codes: Vec<&str> = ROUTES
                .iter()
                .flat_map(codes)
                .filter(|(of, _)| of == status)
                .map(|(_, code)| code)
                .collect();
            codes.sort_unstable();
            codes.dedup();
            let response = self.errors(*status, &codes, |example, code| example.code == code);
            responses.insert(name, response);
        }
        responses
    }
}

fn info(advice: &BTreeMap<String, String>) -> Value {
    let method = &advice["method_not_allowed"];
    json!({
        "title": "Relet",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "Sell a reserved GPU twice, and take it back at once.",
        "description": format!(
            "JSON both ways. Clients tolerate fields of answers that they do not know; a field of \
             a request, a query parameter or a condition that a call does not know is refused \
             with 400 and named. Times are RFC 3339 in UTC. What has no value is left \
             out.\n\n\
             Every answer has an `x-request-id`. Every error has one body: a sentence, a stable \
             `code` and the request's id. Beside the errors listed with each operation, a path \
             that is none is answered with 404 `not_found`, and another method on a path that is \
             one with 405 `method_not_allowed`: {method}. A gateway in front that cannot reach the \
             service answers by itself, with a `message`."
        ),
        "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
    })
}

/// Who may call, as the route table has it.
fn permission(route: &Route) -> String {
    let names = |names: &mut dyn Iterator<Item = &str>| {
        let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        quoted.join(" or ")
    };
    let refused = match route.otherwise {
        Otherwise::NotFound => "404",
        Otherwise::Forbidden => "403",
    };
    let of_org = match route.path.contains("{orgId}") {
        true => " The key belongs to the org, or to an operator; any other is answered with 403.",
        false => "",
    };
    match route.access {
        Access::Open => "Open to anyone, without a key.".to_owned(),
        Access::AnyKey => format!("Needs any valid key.{of_org}"),
        Access::Permission(any_of) => format!(
            "Needs the permission {}; a key without it is answered with {refused}.{of_org}",
            names(&mut any_of.iter().map(|permission| permission.as_str()))
        ),
        Access::Role(any_of) => format!(
            "Needs the role {} in the org, or an operator's key; any other is answered with \
             {refused}.",
            names(&mut any_of.iter().map(|role| role.as_str()))
        ),
    }
}

fn headers() -> Value {
    json!({
        "XRequestId": {
            "description": "The request's id, which the logs and the audit trail know it by.",
            "required": true,
            "schema": { "type": "string", "format": "uuid" },
        },
        "ETag": {
            "description": "The reservation's version, in quotes.",
            "required": true,
            "schema": { "type": "string", "pattern": "^\"[1-9][0-9]*\"$" },
        },
        "RetryAfter": {
            "description": "Seconds to wait before the same call is sent again.",
            "schema": { "type": "integer", "minimum": 1 },
        },
        "WwwAuthenticate": {
            "description": "The way to send a key.",
            "required": true,
            "schema": { "type": "string", "const": "Bearer" },
        },
    })
}

/// Where an answer leads.
fn links(operation: Operation) -> Option<Value> {
    let to = |operations: &[Operation], parameters: Value| -> Option<Value> {
        let links = operations.iter().map(|operation| {
            let id = operation_id(*operation);
            let link = json!({ "operationId": id, "parameters": parameters });
            (operation.as_str().to_owned(), link)
        });
        Some(links.collect::<Map<_, _>>().into())
    };
    match operation {
        Operation::CreateReservation => to(
            &[
                Operation::GetReservation,
                Operation::ReleaseUnits,
                Operation::ReclaimUnits,
                Operation::EndReservation,
                Operation::ListAuditRecords,
            ],
            json!({ "nodeId": "$response.body#/nodeId", "id": "$response.body#/id" }),
        ),
        Operation::PutNode => to(
            &[
                Operation::GetNode,
                Operation::PutTopology,
                Operation::CreateReservation,
                Operation::ListReservations,
                Operation::ListTerminations,
            ],
            json!({ "nodeId": "$response.body#/id" }),
        ),
        Operation::CreateVm => to(
            &[Operation::GetVm, Operation::TerminateVm],
            json!({ "id": "$response.body#/id" }),
        ),
        Operation::TerminateVm => to(
            &[Operation::ConfirmTermination],
            json!({ "nodeId": "$response.body#/nodeId", "vmId": "$response.body#/id" }),
        ),
        Operation::CreateKey => to(
            &[Operation::RevokeKey],
            json!({ "orgId": "$response.body#/organizationId", "id": "$response.body#/id" }),
        ),
        _ => None,
    }
}
