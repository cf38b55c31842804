//! Who may depend on whom: the edges between the crates, as `cargo metadata` tells them.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// An edge of the workspace: what a crate's manifest names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    to: String,
    features: Vec<String>,
    development: bool,
    optional: bool,
}

/// The crates of the workspace with their edges.
type Graph = BTreeMap<String, Vec<Edge>>;

/// The layers from the inside out. A crate may name those in the layers before its own, and none
/// of its own layer or after.
const LAYERS: [&[&str]; 5] = [
    &["domain", "metrics"],
    &["app"],
    &["dynamo", "http-api"],
    &["runtime"],
    &FUNCTIONS,
];

const FUNCTIONS: [&str; 10] = [
    "relet-release",
    "relet-reclaim",
    "relet-end",
    "relet-reservations",
    "relet-vms",
    "relet-nodes",
    "relet-keys",
    "relet-stream",
    "relet-sweep",
    "relet-terminate",
];

/// The platform on one machine: never deployed, may use everything that is.
const LOCAL: &str = "relet";
/// The command for people: it knows the platform by its API alone.
const CLI: &str = "orl";
/// Reads the template for one machine and for tests: never deployed.
const TEMPLATE: &str = "relet-template";
/// What functions are measured beside: never deployed.
const BARE: &str = "relet-bare";
/// The tests of more than one crate.
const TESTS: &str = "relet-tests";
const TESTKIT: &str = "testkit";

/// Everything that `domain` may name.
const DOMAIN_DEPENDENCIES: [&str; 4] = ["serde", "sha2", "thiserror", "time"];

/// Crates that only some of the deployed ones may name, with those that may.
const OWNED: [(&str, &[&str]); 5] = [
    ("aws-sdk-dynamodb", &["dynamo"]),
    ("aws-sdk-sqs", &["runtime"]),
    ("lambda_http", &["http-api"]),
    ("lambda_runtime", &["runtime", "functions"]),
    ("schemars", &["http-api"]),
];

/// The crate with the feature that the API document is made of, and the feature.
const DOCUMENT: (&str, &str) = ("http-api", "openapi");

/// Most lines of a function's `main.rs`.
const MAIN_LINES_MAX: usize = 40;

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

/// The edges of `name` that are built when it is used, with optional ones only where asked for.
fn normal<'a>(graph: &'a Graph, name: &str, optional: bool) -> impl Iterator<Item = &'a str> {
    let edges = graph.get(name).map_or(&[][..], Vec::as_slice);
    let built = edges
        .iter()
        .filter(move |edge| !edge.development && (optional || !edge.optional));
    built.map(|edge| edge.to.as_str())
}

/// Edges between layers that run outwards or sideways.
fn layering(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in graph.keys() {
        let Some(own) = layer(name) else { continue };
        for to in normal(graph, name, true) {
            match layer(to) {
                Some(other) if other >= own => {
                    wrong.push(format!("{name} -> {to}: not a layer further in"));
                }
                None if graph.contains_key(to) => {
                    wrong.push(format!(
                        "{name} -> {to}: never deployed, so nothing deployed has it"
                    ));
                }
                _ => {}
            }
        }
    }
    wrong
}

/// Deployed crates that name a crate which belongs to others.
fn ownership(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in graph.keys().filter(|name| layer(name).is_some()) {
        for to in normal(graph, name, true) {
            let owners = OWNED
                .iter()
                .find(|(owned, _)| *owned == to)
                .map(|(_, owners)| *owners);
            let group = if FUNCTIONS.contains(&name.as_str()) {
                "functions"
            } else {
                name
            };
            if owners.is_some_and(|owners| !owners.contains(&group)) {
                wrong.push(format!("{name} -> {to}: only {owners:?} may name it"));
            }
        }
    }
    wrong
}

/// What `domain` names beyond its few.
fn purity(graph: &Graph) -> Vec<String> {
    let named: BTreeSet<&str> = normal(graph, "domain", true).collect();
    let allowed: BTreeSet<&str> = DOMAIN_DEPENDENCIES.into();
    named
        .symmetric_difference(&allowed)
        .map(|odd| format!("domain and {odd}: it names {DOMAIN_DEPENDENCIES:?}, no more, no less"))
        .collect()
}

fn is_aws(name: &str) -> bool {
    name.starts_with("aws-") || name.starts_with("aws_") || name.starts_with("lambda_")
}

/// What keeps the quick tests quick: `testkit` without features builds no SDK, no engine and no
/// layer further out than `app`.
fn lean_testkit(graph: &Graph) -> Vec<String> {
    let heavy =
        |to: &&str| is_aws(to) || *to == "dynoxide-rs" || layer(to).is_some_and(|layer| layer > 1);
    normal(graph, TESTKIT, false)
        .filter(heavy)
        .map(|to| format!("{TESTKIT} -> {to}: must be optional"))
        .collect()
}

/// Who builds the embedded engine without being asked to.
fn engine(graph: &Graph) -> Vec<String> {
    graph
        .keys()
        .filter(|name| ![LOCAL, TESTS].contains(&name.as_str()))
        .filter(|name| normal(graph, name, false).any(|to| to == "dynoxide-rs"))
        .map(|name| format!("{name} -> dynoxide-rs: only {LOCAL} and {TESTS} always have it"))
        .collect()
}

/// What the command names of the workspace: it is a client like any other.
fn outsider(graph: &Graph) -> Vec<String> {
    normal(graph, CLI, true)
        .filter(|to| graph.contains_key(*to) || is_aws(to))
        .map(|to| format!("{CLI} -> {to}: it calls the API, and knows nothing else"))
        .collect()
}

/// Deployed crates, and the platform on one machine, that build what only the API document is made
/// of.
fn document(graph: &Graph) -> Vec<String> {
    let shipped = |name: &&String| layer(name).is_some() || *name == LOCAL;
    let mut wrong = Vec::new();
    for name in graph.keys().filter(shipped) {
        let edges = graph[name].iter().filter(|edge| !edge.development);
        let asks =
            |edge: &Edge| edge.to == DOCUMENT.0 && edge.features.contains(&DOCUMENT.1.into());
        if edges.clone().any(asks) {
            wrong.push(format!("{name} -> {}: without {}", DOCUMENT.0, DOCUMENT.1));
        }
        if edges
            .clone()
            .any(|edge| edge.to == "schemars" && !edge.optional)
        {
            wrong.push(format!("{name} -> schemars: must be optional"));
        }
    }
    wrong
}

/// Members of the workspace that no rule knows.
fn strangers(graph: &Graph) -> Vec<String> {
    let others = [LOCAL, TEMPLATE, BARE, CLI, TESTS, TESTKIT];
    let known = |name: &&String| layer(name).is_some() || others.contains(&name.as_str());
    graph
        .keys()
        .filter(|name| !known(name))
        .map(|name| format!("{name}: say in architecture.rs which layer it is in"))
        .collect()
}

/// Whether a manifest takes its lints from the workspace.
fn takes_lints(manifest: &str) -> bool {
    let mut lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1);
    let section = lines.by_ref().take_while(|line| !line.starts_with('['));
    let whole = manifest
        .lines()
        .any(|line| line.trim() == "lints.workspace = true");
    whole || section.into_iter().any(|line| line == "workspace = true")
}

/// The workspace as it is: each crate with its edges, and each crate's folder.
fn workspace() -> (Graph, BTreeMap<String, PathBuf>) {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo describes the workspace");
    let mut graph = Graph::new();
    let mut folders = BTreeMap::new();
    for package in metadata.packages {
        let edges = package.dependencies.iter().map(|dependency| Edge {
            to: dependency.name.clone(),
            features: dependency.features.clone(),
            development: dependency.kind == DependencyKind::Development,
            optional: dependency.optional,
        });
        let folder = package
            .manifest_path
            .parent()
            .expect("a manifest is in a folder");
        folders.insert(package.name.to_string(), folder.into());
        graph.insert(package.name.to_string(), edges.collect());
    }
    (graph, folders)
}

#[test]
fn every_edge_runs_inwards() {
    assert_eq!(layering(&workspace().0), [""; 0]);
}

#[test]
fn outside_crates_are_named_by_their_owners_alone() {
    assert_eq!(ownership(&workspace().0), [""; 0]);
}

#[test]
fn the_domain_is_pure() {
    assert_eq!(purity(&workspace().0), [""; 0]);
}

#[test]
fn quick_tests_stay_quick() {
    let graph = workspace().0;
    assert_eq!(lean_testkit(&graph), [""; 0]);
    assert_eq!(engine(&graph), [""; 0]);
}

#[test]
fn the_command_is_a_client_like_any_other() {
    assert_eq!(outsider(&workspace().0), [""; 0]);
}

#[test]
fn nothing_shipped_has_what_the_api_document_is_made_of() {
    assert_eq!(document(&workspace().0), [""; 0]);
}

#[test]
fn every_crate_has_its_layer_and_every_layer_its_crates() {
    let graph = workspace().0;
    assert_eq!(strangers(&graph), [""; 0]);
    let named = LAYERS
        .iter()
        .copied()
        .flatten()
        .chain(&[LOCAL, TEMPLATE, BARE, CLI, TESTS, TESTKIT]);
    let missing: Vec<_> = named.filter(|name| !graph.contains_key(**name)).collect();
    assert_eq!(missing, [&""; 0]);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (name, folder) in workspace().1 {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
        assert!(
            takes_lints(&manifest),
            "{name}: write `[lints] workspace = true`"
        );
    }
}

/// A panic over one record must leave the process, and the other records of its batch, alone.
#[test]
fn no_profile_gives_up_unwinding() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let manifest = std::fs::read_to_string(root).expect("it is there");
    let (_, profiles) = manifest.split_once("[profile.").expect("it has profiles");
    assert!(profiles.contains("[profile.lambda]"), "functions have one");
    let named = |line: &str| {
        line.split('=')
            .next()
            .is_some_and(|name| name.trim() == "panic")
    };
    assert!(!profiles.lines().any(named), "leave panics to unwinding");
}

#[test]
fn a_function_s_main_is_short() {
    let folders = workspace().1;
    for name in FUNCTIONS {
        let main = folders[name].join("src/main.rs");
        let text = std::fs::read_to_string(main).expect("a function has a main.rs");
        let lines = text.lines().count();
        assert!(
            lines <= MAIN_LINES_MAX,
            "{name}: {lines} lines; move them into a shared crate"
        );
    }
}

/// A graph out of `crate: edge edge`, where `?` marks an optional edge, `~` a development one, and
/// `+` one that asks for the API document.
fn sketch(lines: &[&str]) -> Graph {
    let edge = |text: &str| Edge {
        to: text.trim_matches(['?', '~', '+']).to_owned(),
        features: text
            .ends_with('+')
            .then(|| DOCUMENT.1.to_owned())
            .into_iter()
            .collect(),
        development: text.ends_with('~'),
        optional: text.ends_with('?'),
    };
    let crates = lines.iter().map(|line| {
        let (name, edges) = line.split_once(':').expect("a crate and its edges");
        (
            name.to_owned(),
            edges.split_whitespace().map(edge).collect(),
        )
    });
    crates.collect()
}

/// Checks how many findings a rule has on each of some graphs, their crates parted by `;`.
fn assert_finds(rule: fn(&Graph) -> Vec<String>, cases: &[(&str, usize)]) {
    for (text, expected) in cases {
        let lines: Vec<&str> = text.split("; ").collect();
        let found = rule(&sketch(&lines));
        assert_eq!(found.len(), *expected, "{text}: {found:?}");
    }
}

#[test]
fn the_rules_of_the_layers_find_what_is_wrong() {
    let cases = [
        ("domain:; app: domain; runtime: app domain", 0),
        ("app: dynamo; dynamo: http-api; http-api:", 2),
        ("relet-end: relet-vms; relet-vms: runtime", 1),
        ("app: testkit; testkit: app", 1),
        ("app: testkit?; testkit: app", 1),
        ("app: testkit~ domain; testkit: app", 0),
    ];
    assert_finds(layering, &cases);
    assert_finds(strangers, &[("domain:; relet:; newcomer:", 1)]);
}

#[test]
fn the_rules_on_outside_crates_find_what_is_wrong() {
    let cases = [
        ("dynamo: aws-sdk-dynamodb; runtime: lambda_runtime", 0),
        ("app: aws-sdk-dynamodb; relet-end: lambda_http", 2),
        ("dynamo: aws-sdk-sqs?; http-api: lambda_runtime", 2),
        ("relet-end: lambda_runtime; relet: aws-sdk-dynamodb", 0),
    ];
    assert_finds(ownership, &cases);
    let cases = [
        ("domain: serde sha2 thiserror time proptest~", 0),
        ("domain: serde sha2 thiserror time tokio", 1),
    ];
    assert_finds(purity, &cases);
    let cases = [
        ("testkit: app dynamo? aws-sdk-dynamodb?", 0),
        ("testkit: aws-smithy-types dynamo runtime?", 2),
    ];
    assert_finds(lean_testkit, &cases);
    let cases = [
        ("relet: dynoxide-rs; testkit: dynoxide-rs?", 0),
        ("dynamo: dynoxide-rs", 1),
    ];
    assert_finds(engine, &cases);
    let cases = [
        ("orl: reqwest http-api~ relet~; http-api:; relet:", 0),
        ("orl: domain aws-sdk-sqs; domain:", 2),
    ];
    assert_finds(outsider, &cases);
    let cases = [
        (
            "http-api: schemars?; runtime: http-api; testkit: http-api+",
            0,
        ),
        (
            "http-api: schemars; runtime: http-api+; relet: http-api+",
            3,
        ),
    ];
    assert_finds(document, &cases);
}

#[test]
fn lints_are_only_taken_where_the_manifest_says_so() {
    for good in [
        "[package]\n[lints]\nworkspace = true\n[dependencies]",
        "lints.workspace = true",
    ] {
        assert!(takes_lints(good), "{good}");
    }
    for bad in ["[lints]\n[dependencies]\nworkspace = true", "[package]"] {
        assert!(!takes_lints(bad), "{bad}");
    }
}
