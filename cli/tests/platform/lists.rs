//! Lists and the forms of output.

use std::io::Read as _;
use std::process::Stdio;

use relet::keys::Part;
use serde_json::Value;

use crate::support::{NODE, World, said};

/// A world with so many nodes beside the first.
fn nodes(world: &World, count: usize) {
    for number in 0..count {
        let name = format!("node-{number:02}");
        let owner = [
            "--owner-org-id",
            "acme-datacenter",
            "--gpu-model-id",
            "h100-sxm",
        ];
        let args = [&["nodes", "put", &name][..], &owner, &["--units", "a,b:2"]].concat();
        world.ok(Part::Operator, &args);
    }
}

#[test]
fn all_pages_are_followed_in_every_form() {
    let world = World::start();
    nodes(&world, 6);
    let all = ["nodes", "list", "--limit", "2", "--all"];
    let ids = world.ok(Part::Operator, &[&all[..], &["--output", "id"]].concat());
    let ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 7, "{ids:?}");
    let json = world.json(Part::Operator, &all);
    let items = json["items"].as_array().unwrap();
    let named: Vec<&str> = items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(named, ids);
    let table = world.ok(Part::Operator, &all);
    let first: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(first[0], "ID");
    assert_eq!(first[1..], ids);
    let yaml = world.ok(Part::Operator, &[&all[..], &["--output", "yaml"]].concat());
    assert_eq!(yaml.matches("\n  id: ").count(), 7, "{yaml}");
    assert_eq!(yaml.matches("items:").count(), 1, "{yaml}");
}

#[test]
fn one_page_says_that_there_is_more_and_how_to_get_it() {
    let world = World::start();
    nodes(&world, 2);
    let page = world.run(Part::Operator, &["nodes", "list", "--limit", "2"]);
    let said = said(&page);
    let (_, cursor) = said.trim().rsplit_once("--cursor ").unwrap();
    let rest = world.ok(
        Part::Operator,
        &["nodes", "list", "--cursor", cursor, "-o", "id"],
    );
    assert_eq!(rest.lines().count(), 1, "{rest}");
    let whole = world.run(Part::Operator, &["nodes", "list", "--all"]);
    assert_eq!(String::from_utf8_lossy(&whole.stderr), "");
}

#[test]
fn json_is_the_answer_as_it_came() {
    let world = World::start();
    let path = format!("/v1/nodes/{NODE}/reservations/{}", world.reservation);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let call = http
        .get(format!("{}{path}", world.url))
        .bearer_auth(world.key(Part::Owner));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let body = runtime.block_on(async { call.send().await.unwrap().text().await.unwrap() });
    let args = [
        "reservations",
        "get",
        NODE,
        &world.reservation,
        "--output",
        "json",
    ];
    assert_eq!(world.ok(Part::Owner, &args), format!("{body}\n"));
}

#[test]
fn units_are_read_with_their_gpus() {
    let world = World::start();
    nodes(&world, 1);
    let node = world.json(Part::Operator, &["nodes", "get", "node-00"]);
    let units: Vec<(&str, u64)> = node["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| (unit["id"].as_str().unwrap(), unit["gpus"].as_u64().unwrap()))
        .collect();
    assert_eq!(units, [("a", 1), ("b", 2)]);
}

#[test]
fn yaml_is_read_back_as_what_the_json_says() {
    let world = World::start();
    // Words that a reader of YAML takes for something else, if they are written bare.
    let odd = [
        "yes",
        "null",
        "1e3",
        "0x1f",
        "- a",
        "a: b",
        "#",
        "~",
        "2026-12-01",
        "é \u{1F980}",
    ];
    for text in odd {
        let contract = format!("--contract-ref={text}");
        let units = [
            "--reserved-unit-ids",
            "u4",
            "--allowed-org-ids",
            "no",
            &contract,
        ];
        let args = [&["reservations", "create", NODE][..], &units].concat();
        let json = world.json(Part::Owner, &args);
        let id = json["id"].as_str().unwrap();
        let yaml = world.ok(
            Part::Owner,
            &["reservations", "get", NODE, id, "-o", "yaml"],
        );
        let read: Value = yaml_read(&yaml);
        assert_eq!(read, json, "{yaml}");
        world.ok(Part::Operator, &["reservations", "end", NODE, id]);
    }
}

fn yaml_read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let world = World::start();
    let args = ["reservations", "get", NODE, &world.reservation];
    assert!(
        !world.ok(Part::Owner, &args).contains('\u{1b}'),
        "none in a pipe"
    );
    let on_terminal = |args: &[&str], variables: &[(&str, &str)]| {
        let key = world.key(Part::Owner);
        let all = [
            &[("ORL_URL", world.url.as_str()), ("ORL_API_KEY", key)],
            variables,
        ]
        .concat();
        crate::terminal::Terminal::start(args, &all).end().raw
    };
    assert!(
        on_terminal(&args, &[]).contains("\u{1b}[32mactive"),
        "green on a terminal"
    );
    for plain in [
        on_terminal(&args, &[("NO_COLOR", "1")]),
        on_terminal(&[&args[..], &["--no-color"]].concat(), &[]),
        on_terminal(&[&args[..], &["--output", "json"]].concat(), &[]),
        on_terminal(&["--no-color", "nodes", "frobnicate"], &[]),
        on_terminal(&["--no-color", "--help"], &[]),
    ] {
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
    }
}

#[test]
fn tables_fit_any_terminal_and_ids_stay_whole() {
    let world = World::start();
    world.release("u2,u3");
    let vm = world.buy("u2");
    let key = world.key(Part::Operator).to_owned();
    let variables = [
        ("ORL_URL", world.url.as_str()),
        ("ORL_API_KEY", key.as_str()),
    ];
    let reservation = world.reservation.clone();
    let lines: [(&[&str], &str); 5] = [
        (&["reservations", "list", NODE], &reservation),
        (&["reservations", "get", NODE, &reservation], &reservation),
        (&["nodes", "get", NODE], NODE),
        (&["vms", "list", "spot-buyer"], &vm),
        (&["api-keys", "list", "neocloud"], "local-manager-"),
    ];
    for (line, id) in lines {
        for columns in [50, 60, 72, 80, 100, 132, 190] {
            let ended = crate::terminal::Terminal::start_in(line, &variables, columns).end();
            assert!(ended.screen.contains(id), "{columns}: {}", ended.screen);
            let widest = ended.screen.lines().map(|line| line.chars().count()).max();
            assert!(
                widest <= Some(usize::from(columns)),
                "{columns}: {}",
                ended.screen
            );
        }
    }
}

#[test]
fn a_reader_that_goes_early_is_no_failure() {
    let world = World::start();
    nodes(&world, 3);
    for args in [
        &["nodes", "list", "--all", "--limit", "1", "--output", "json"][..],
        &["completions", "bash"],
        &["--help"],
        &["man"],
    ] {
        let mut command = world.bare(args);
        command.env("ORL_API_KEY", world.key(Part::Operator));
        let pipes = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut one = [0];
        out.read_exact(&mut one).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert_eq!(said(&output), "", "{args:?}");
    }
}
