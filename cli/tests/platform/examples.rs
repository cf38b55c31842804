//! Every example of every command's help works as it stands.

use std::process::Command;

use orl::cli::grammar;
use relet::keys::Part;

use crate::support::{NODE, World, until};

/// The examples of a command and those below it, each in one line.
fn collect(command: &clap::Command, found: &mut Vec<String>) {
    let help = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let joined = help.replace("\\\n   ", "");
    let examples = joined.lines().filter_map(|line| line.strip_prefix("  "));
    found.extend(
        examples
            .filter(|line| line.starts_with("orl "))
            .map(str::to_owned),
    );
    for below in command.get_subcommands() {
        collect(below, found);
    }
}

/// What must come late, since it takes something away that others need.
const LATE: [&str; 4] = [
    "vms terminate",
    "reservations end",
    "api-keys delete",
    "auth logout",
];

/// The examples in an order in which they can all work: VMs and reclaims after the release.
fn examples() -> Vec<String> {
    let mut found = Vec::new();
    collect(&grammar(), &mut found);
    found.sort_by_key(|line| {
        let late = LATE
            .iter()
            .position(|late| line.contains(late))
            .map_or(0, |at| at + 3);
        let reclaim = usize::from(line.contains("--yes")) * 2;
        let release = usize::from(!line.contains("unit release"));
        late.max(reclaim).max(release)
    });
    found
}

/// A reservation that needs a review, on a node of its own.
fn reviewed(world: &World) -> String {
    let owner = [
        "--owner-org-id",
        "acme-datacenter",
        "--gpu-model-id",
        "h100-sxm",
    ];
    let put = [
        &["nodes", "put", "node-9"][..],
        &owner,
        &["--units", "u0,u1"],
    ]
    .concat();
    world.ok(Part::Operator, &put);
    let units = [
        "--reserved-unit-ids",
        "u0",
        "--allowed-org-ids",
        "tenant-labs",
        "-o",
        "id",
    ];
    let create = [&["reservations", "create", "node-9"][..], &units].concat();
    let id = world.ok(Part::Owner, &create).trim().to_owned();
    let gone = [
        "nodes",
        "topology",
        "put",
        "node-9",
        "--topology-gen",
        "2",
        "--units",
        "u1",
    ];
    world.ok(Part::Operator, &gone);
    let back = [
        "nodes",
        "topology",
        "put",
        "node-9",
        "--topology-gen",
        "3",
        "--units",
        "u0,u1",
    ];
    world.ok(Part::Operator, &back);
    let shown = world.json(Part::Owner, &["reservations", "get", "node-9", &id]);
    assert_eq!(shown["status"], "needs-review");
    id
}

/// A VM that was condemned, and a running one of the tenant's; their ids.
fn vms(world: &World) -> (String, String) {
    world.release("u0");
    let condemned = world.buy("u0");
    let args = ["reservations", "unit", "reclaim", NODE, &world.reservation];
    world.ok(
        Part::Manager,
        &[&args[..], &["--unit-ids", "u0", "--yes"]].concat(),
    );
    let place = [
        "--gpu-model-id",
        "h100-sxm",
        "--gpu-count",
        "1",
        "--output",
        "id",
    ];
    let create = [
        "vms",
        "create",
        "spot-buyer",
        "--name",
        "own",
        "--tier",
        "community",
    ];
    let vm = world.ok(Part::Stranger, &[&create[..], &place].concat());
    (condemned, vm.trim().to_owned())
}

/// Runs an example in a shell as the operator, who may do everything.
fn run(world: &World, line: &str, variables: &[(&str, &str)]) -> std::process::Output {
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_orl"))
        .parent()
        .unwrap();
    let mut command = Command::new("bash");
    command
        .args(["--norc", "-euo", "pipefail", "-c", line])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("XDG_CONFIG_HOME", world.folder())
        .envs(variables.iter().copied())
        .current_dir(world.folder());
    command.output().unwrap()
}

#[test]
fn every_example_of_the_help_works() {
    let world = World::start();
    let key = world.key(Part::Operator).to_owned();
    std::fs::write(world.folder().join("key.txt"), format!("{key}\n")).unwrap();
    let (review, (condemned, vm)) = (reviewed(&world), vms(&world));
    let create = [
        "api-keys", "create", "neocloud", "--name", "old", "--role", "viewer",
    ];
    let made = world.ok(Part::Operator, &[&create[..], &["--output", "id"]].concat());
    let examples = examples();
    assert!(examples.len() > 30, "{examples:?}");
    for line in examples {
        // The platform of a test listens where there is room, not where the default is.
        let line = line.replace("http://127.0.0.1:8083", &world.url);
        let (node, id) = match line.contains(" reaffirm ") {
            true => ("node-9", &review),
            false => (NODE, &world.reservation),
        };
        let line = line.replace(NODE, node);
        let variables = [
            ("RESERVATION", id.as_str()),
            ("VM", vm.as_str()),
            ("CONDEMNED_VM", condemned.as_str()),
            ("KEY_ID", made.trim()),
            ("ORL_URL", world.url.as_str()),
        ];
        // What logs in and out works on the key of the file, as it does for people.
        let mut all = variables.to_vec();
        if !line.contains("orl auth") {
            all.push(("ORL_API_KEY", &key));
        }
        if line.contains("terminations confirm") {
            let get = ["vms", "get", &condemned];
            until("the VM is gone", || {
                world.json(Part::Operator, &get)["status"] == "terminated"
            });
        }
        if line.contains("auth status") {
            run(&world, "orl auth login --with-key < key.txt", &variables);
        }
        let output = run(&world, &line, &all);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    }
}
