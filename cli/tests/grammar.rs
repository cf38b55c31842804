//! The grammar: every route of the API has exactly one command, path parameters are arguments in
//! their order, fields of bodies and parameters of queries are flags.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser as _;
use http_api::routes::{Access, BodyRule, Found, ROUTES, Route, find};
use orl::call::{Call, Repeat};
use orl::cli::{Cli, grammar};
use orl::commands::plan;

/// A command line, the route that it calls, and the fields of the body that it sends. Between them
/// the lines of a route send all the fields that the contract has.
const LINES: &[(&str, &str, &[&str])] = &[
    (
        "reservations unit release NODE RES --unit-ids a,b --reason hush --if-match 3",
        "POST /v1/nodes/{nodeId}/reservations/{id}/release",
        &["unitIds", "reason"],
    ),
    (
        "reservations unit reclaim NODE RES --unit-ids a --reason hush --yes --if-match 3",
        "POST /v1/nodes/{nodeId}/reservations/{id}/reclaim",
        &["unitIds", "reason"],
    ),
    (
        "reservations unit reclaim NODE RES --unit-ids a --dry-run",
        "POST /v1/nodes/{nodeId}/reservations/{id}/reclaim",
        &["unitIds", "dryRun"],
    ),
    (
        "reservations end NODE RES --reason hush --if-match 3",
        "POST /v1/nodes/{nodeId}/reservations/{id}/end",
        &["reason"],
    ),
    (
        "reservations end NODE RES --if-match 3",
        "POST /v1/nodes/{nodeId}/reservations/{id}/end",
        &[],
    ),
    (
        "reservations create NODE --reserved-unit-ids a,b --allowed-org-ids o --managing-org-ids \
         m --starts-at S --ends-at E --contract-ref C --reason hush",
        "POST /v1/nodes/{nodeId}/reservations",
        &[
            "reservedUnitIds",
            "allowedOrgIds",
            "managingOrgIds",
            "startsAt",
            "endsAt",
            "contractRef",
            "reason",
        ],
    ),
    (
        "reservations list NODE --status active --limit 3 --cursor C",
        "GET /v1/nodes/{nodeId}/reservations",
        &[],
    ),
    (
        "reservations get NODE RES",
        "GET /v1/nodes/{nodeId}/reservations/{id}",
        &[],
    ),
    (
        "reservations reaffirm NODE RES --reason hush --if-match 3",
        "POST /v1/nodes/{nodeId}/reservations/{id}/reaffirm",
        &["reason"],
    ),
    (
        "reservations audit NODE RES --limit 3 --cursor C",
        "GET /v1/nodes/{nodeId}/reservations/{id}/audit",
        &[],
    ),
    (
        "reservations list-for-org ORG --role owner --status active --limit 3 --cursor C",
        "GET /v1/orgs/{orgId}/reservations",
        &[],
    ),
    ("nodes list --limit 3 --cursor C", "GET /v1/nodes", &[]),
    (
        "nodes put NODE --owner-org-id o --gpu-model-id m --units a,b:2 --topology-gen 4",
        "PUT /v1/nodes/{nodeId}",
        &["ownerOrgId", "gpuModelId", "units", "topologyGen"],
    ),
    ("nodes get NODE", "GET /v1/nodes/{nodeId}", &[]),
    (
        "nodes topology put NODE --topology-gen 4 --units a,b:2",
        "PUT /v1/nodes/{nodeId}/topology",
        &["topologyGen", "units"],
    ),
    (
        "nodes terminations list NODE",
        "GET /v1/nodes/{nodeId}/terminations",
        &[],
    ),
    (
        "nodes terminations confirm NODE VM",
        "POST /v1/nodes/{nodeId}/terminations/{vmId}/confirm",
        &[],
    ),
    (
        "vms create ORG --name n --tier spot --node-id N --unit-ids a --reservation-id R",
        "POST /v1/orgs/{orgId}/vms/create",
        &["name", "tier", "nodeId", "unitIds", "reservationId"],
    ),
    (
        "vms create ORG --name n --tier spot --gpu-model-id m --gpu-count 2",
        "POST /v1/orgs/{orgId}/vms/create",
        &["name", "tier", "gpuModelId", "gpuCount"],
    ),
    (
        "vms list ORG --limit 3 --cursor C",
        "GET /v1/orgs/{orgId}/vms",
        &[],
    ),
    ("vms get VM", "GET /v1/vms/{id}", &[]),
    ("vms terminate VM", "POST /v1/vms/{id}/terminate", &[]),
    (
        "gpu-availability get --tier spot --gpu-model-id m --limit 3 --cursor C",
        "GET /v1/gpu-availability",
        &[],
    ),
    (
        "api-keys create ORG --name n --role member --expires-in-seconds 60 --platform-operator",
        "POST /v1/orgs/{orgId}/api-keys/create",
        &["name", "role", "expiresInSeconds", "platformOperator"],
    ),
    (
        "api-keys create ORG --name n --permissions vms:read,vms:write",
        "POST /v1/orgs/{orgId}/api-keys/create",
        &["name", "permissions"],
    ),
    (
        "api-keys list ORG --limit 3 --cursor C",
        "GET /v1/orgs/{orgId}/api-keys",
        &[],
    ),
    (
        "api-keys delete ORG KEY",
        "DELETE /v1/orgs/{orgId}/api-keys/{id}",
        &[],
    ),
    ("whoami", "GET /v1/whoami", &[]),
    ("health", "GET /healthz", &[]),
    ("openapi", "GET /v1/openapi.json", &[]),
];

/// The groups and commands that are no call of the API.
const OTHERS: [&str; 6] = [
    "auth login",
    "auth status",
    "auth logout",
    "version",
    "completions",
    "man",
];

fn call(line: &str) -> Call {
    let words = std::iter::once("orl").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
    let planned = plan(&cli.command).unwrap_or_else(|failure| panic!("{line}: {failure:?}"));
    planned.expect("a call of the API").call
}

/// The route that a call comes to, with the parameters of its path.
fn route(call: &Call) -> (&'static Route, Vec<(&'static str, String)>) {
    match find(call.method, &call.path) {
        Found::Route(route, parameters) => (route, parameters),
        other => panic!("{} {}: {other:?}", call.method, call.path),
    }
}

fn kebab(name: &str) -> String {
    let each = name.chars().map(|c| match c {
        c if c.is_ascii_uppercase() => format!("-{}", c.to_ascii_lowercase()),
        c => c.to_string(),
    });
    each.collect()
}

/// The commands without commands below them, by their paths.
fn leaves() -> BTreeMap<String, clap::Command> {
    fn collect(command: &clap::Command, path: &str, found: &mut BTreeMap<String, clap::Command>) {
        if !command.has_subcommands() {
            found.insert(path.trim().to_owned(), command.clone());
        }
        for below in command.get_subcommands() {
            collect(below, &format!("{path} {}", below.get_name()), found);
        }
    }
    let mut found = BTreeMap::new();
    collect(&grammar(), "", &mut found);
    found
}

/// The command of a line: the longest path that it begins with.
fn leaf<'a>(all: &'a BTreeMap<String, clap::Command>, line: &str) -> (&'a str, &'a clap::Command) {
    let begins = |path: &str| line == path || line.starts_with(&format!("{path} "));
    let found = all.iter().find(|(path, _)| begins(path));
    let (path, command) = found.unwrap_or_else(|| panic!("no command: {line}"));
    (path, command)
}

#[test]
fn every_route_has_exactly_one_command_and_every_command_is_known() {
    let all = leaves();
    let mut commands: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (line, route, _) in LINES {
        commands
            .entry(route)
            .or_default()
            .insert(leaf(&all, line).0);
    }
    for (route, commands) in &commands {
        assert_eq!(commands.len(), 1, "{route}: {commands:?}");
    }
    let named: BTreeSet<String> = commands.keys().map(|route| (*route).to_owned()).collect();
    let routes = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.path));
    let routes: BTreeSet<String> = routes.collect();
    assert_eq!(named, routes);
    let known: BTreeSet<&str> = commands.values().flatten().copied().chain(OTHERS).collect();
    let there: BTreeSet<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(known, there);
}

#[test]
fn path_parameters_are_arguments_in_their_order() {
    let all = leaves();
    for (line, expected, _) in LINES {
        let call = call(line);
        let (route, parameters) = route(&call);
        assert_eq!(
            &format!("{} {}", route.method, route.path),
            expected,
            "{line}"
        );
        let (path, command) = leaf(&all, line);
        let arguments: Vec<String> = command
            .get_positionals()
            .map(|argument| argument.get_id().to_string().replace('_', "-"))
            .collect();
        let names: Vec<String> = parameters.iter().map(|(name, _)| kebab(name)).collect();
        assert_eq!(arguments, names, "{line}");
        let given = line[path.len()..].split_whitespace().take(names.len());
        let values: Vec<&str> = parameters.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(given.collect::<Vec<&str>>(), values, "{line}");
    }
}

/// The long flags of a command.
fn flags(command: &clap::Command) -> BTreeSet<String> {
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    longs.map(str::to_owned).collect()
}

#[test]
fn fields_of_bodies_and_parameters_of_queries_are_flags_of_the_same_name() {
    let all = leaves();
    for (line, _, fields) in LINES {
        let call = call(line);
        let (route, _) = route(&call);
        let flags = flags(leaf(&all, line).1);
        let sent = call.body.as_ref().map(|body| body.as_object().unwrap());
        let names = sent
            .into_iter()
            .flat_map(|body| body.keys().map(String::as_str));
        let expected: BTreeSet<&str> = fields.iter().copied().collect();
        assert_eq!(names.collect::<BTreeSet<&str>>(), expected, "{line}");
        for field in *fields {
            assert!(flags.contains(&kebab(field)), "{line}: --{}", kebab(field));
        }
        let query: BTreeSet<&str> = call.query.iter().map(|(name, _)| *name).collect();
        // What a body may carry as well is sent there.
        let wanted = route.query.iter().copied().filter(|name| *name != "dryRun");
        assert_eq!(query, wanted.collect(), "{line}");
        let none = call.body.is_none();
        assert!(
            route.body != BodyRule::None || none,
            "{line}: no body goes there"
        );
        assert!(
            route.body != BodyRule::Required || !none,
            "{line}: a body is needed"
        );
    }
}

/// The fields that the API document has for a route's body.
fn documented(document: &serde_json::Value, route: &str) -> BTreeSet<String> {
    let (method, path) = route.split_once(' ').unwrap();
    let operation = &document["paths"][path][method.to_lowercase()];
    assert!(operation.is_object(), "the document has no {route}");
    let mut schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let Some(reference) = schema["$ref"].as_str() {
        schema = document.pointer(reference.trim_start_matches('#')).unwrap();
    }
    let properties = schema["properties"].as_object();
    properties
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn the_fields_are_those_of_the_api_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let text = std::fs::read_to_string(path).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut fields: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (_, route, names) in LINES {
        let all = fields.entry(route).or_default();
        all.extend(names.iter().map(|name| (*name).to_owned()));
    }
    for (route, fields) in fields {
        assert_eq!(fields, documented(&document, route), "{route}");
    }
}

#[test]
fn what_a_route_understands_beside_its_body_is_sent() {
    let all = leaves();
    for (line, _, _) in LINES {
        let call = call(line);
        let (route, _) = route(&call);
        let command = leaf(&all, line).1;
        assert_eq!(
            flags(command).contains("if-match"),
            route.if_match,
            "{line}"
        );
        let condition = call.if_match.as_deref();
        assert_eq!(condition.is_some(), line.contains("--if-match"), "{line}");
        assert_eq!(call.open, route.access == Access::Open, "{line}");
        let reads = route.method == "GET" || line.contains("--dry-run");
        let repeat = match (reads, route.repeatable) {
            (true, _) => Repeat::Safe,
            (false, true) => Repeat::Keyed,
            (false, false) => Repeat::Never,
        };
        assert_eq!(call.repeat, repeat, "{line}");
        let listed = route.query.contains(&"cursor");
        assert_eq!(flags(command).contains("all"), listed, "{line}");
    }
}

#[test]
fn every_command_says_what_it_does_and_has_an_example_of_itself() {
    fn check(command: &clap::Command, path: &str) {
        assert!(command.get_about().is_some(), "{path}");
        let help = command.get_after_help().unwrap_or_default().to_string();
        assert!(help.starts_with("Example"), "{path}: {help:?}");
        assert!(help.contains(&format!("  {path}")), "{path}: {help:?}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{path}: {argument:?}");
        }
        for below in command.get_subcommands() {
            check(below, &format!("{path} {}", below.get_name()));
        }
    }
    check(&grammar(), "orl");
}

#[test]
fn the_readme_and_the_help_name_every_exit_code() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let (readme, help) = (readme.unwrap(), grammar().render_long_help().to_string());
    // The lines of help are broken where the terminal ends.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for exit in orl::failure::Exit::ALL {
        let (code, meaning) = (exit.code(), exit.meaning());
        let row = format!("| {code} | {meaning} |");
        assert!(readme.replace('`', "").contains(&row), "README: {row}");
        assert!(
            flat(&help).contains(&format!("{code} {meaning}")),
            "help: {code}"
        );
    }
}
