//! Keys: how they get in, where they are kept, and that they come out nowhere.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use relet::keys::Part;
use serde_json::Value;

use crate::support::{NODE, World, flat, said};
use crate::terminal::Terminal;

/// Runs the command with a text on its standard input.
fn fed(world: &World, args: &[&str], text: &str) -> Output {
    let mut command = world.bare(args);
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // It may have ended without reading.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_key_from_a_pipe_is_checked_kept_used_and_taken_away() {
    let world = World::start();
    let key = world.key(Part::Manager).to_owned();
    let none = world.bare(&["whoami"]).output().unwrap();
    assert_eq!(code(&none), Some(3), "{none:?}");
    assert!(said(&none).contains("orl auth login"), "{none:?}");

    let login = fed(
        &world,
        &["auth", "login", "--with-key"],
        &format!("{key}\n"),
    );
    assert_eq!(code(&login), Some(0), "{login:?}");
    let told = String::from_utf8(login.stdout).unwrap();
    assert_eq!(
        told,
        format!("Logged in to {} as neocloud (admin)\n", world.url)
    );
    let file = world.folder().join("orl/config.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let who = world
        .bare(&["whoami", "--output", "json"])
        .output()
        .unwrap();
    let who: Value = serde_json::from_slice(&who.stdout).unwrap();
    assert_eq!(who["organizationId"], "neocloud");

    // The file knows the URL too.
    let mut alone = world.bare(&["auth", "status"]);
    let status = alone.env_remove("ORL_URL").output().unwrap();
    assert_eq!(code(&status), Some(0), "{status:?}");
    let told = String::from_utf8(status.stdout).unwrap();
    assert!(
        told.contains(&format!("{} (from {})", world.url, file.display())),
        "{told}"
    );

    let logout = world.bare(&["auth", "logout"]).output().unwrap();
    assert_eq!((code(&logout), file.exists()), (Some(0), false));
    let again = world.bare(&["auth", "logout"]).output().unwrap();
    assert_eq!(code(&again), Some(0), "{again:?}");
    assert_eq!(code(&world.bare(&["whoami"]).output().unwrap()), Some(3));
}

#[test]
fn a_key_that_is_typed_does_not_show() {
    let world = World::start();
    let key = world.key(Part::Owner).to_owned();
    let folder = world.folder().to_str().unwrap().to_owned();
    let variables = [
        ("XDG_CONFIG_HOME", folder.as_str()),
        ("ORL_URL", &world.url),
    ];
    let mut terminal = Terminal::start(&["auth", "login"], &variables);
    terminal.wait_for("API key for");
    // A slip of the finger is taken back.
    terminal.enter(&format!("x\u{7f}{key}\r"));
    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.screen);
    assert!(
        ended.screen.contains("as acme-datacenter (owner)"),
        "{}",
        ended.screen
    );
    assert!(!ended.raw.contains(&key[3..]), "the key shows");

    let mut terminal = Terminal::start(&["auth", "login"], &variables);
    terminal.wait_for("API key for");
    terminal.enter("or_half\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, 130, "{}", ended.screen);
    assert!(
        world.folder().join("orl/config.json").exists(),
        "the key kept before is left alone"
    );
}

#[test]
fn a_key_that_is_refused_is_not_kept_and_the_host_is_named() {
    let world = World::start();
    let wrong = format!("or_{}", "x".repeat(38));
    for text in [&wrong, "", "two words", "or_ü"] {
        let login = fed(&world, &["auth", "login", "--with-key"], text);
        let expected = if *text == wrong { 3 } else { 2 };
        assert_eq!(code(&login), Some(expected), "{login:?}");
        assert!(!world.folder().join("orl/config.json").exists());
    }
    let refused = world
        .bare(&["nodes", "list"])
        .env("ORL_API_KEY", &wrong)
        .output()
        .unwrap();
    assert_eq!(code(&refused), Some(3));
    let said = flat(&said(&refused));
    assert!(
        said.contains(&format!(
            "{} refuses the API key from ORL_API_KEY",
            world.url
        )),
        "{said}"
    );
    assert!(!said.contains(&wrong[3..]), "{said}");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let world = World::start();
    let login = fed(
        &world,
        &["auth", "login", "--with-key"],
        world.key(Part::Owner),
    );
    assert_eq!(code(&login), Some(0), "{login:?}");
    let org = |extra: &[&str], part: Option<Part>| {
        let mut command = world.bare(&[&["whoami", "--output", "json"], extra].concat());
        if let Some(part) = part {
            command.env("ORL_API_KEY", world.key(part));
        }
        let who: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        who["organizationId"].as_str().unwrap().to_owned()
    };
    assert_eq!(org(&[], None), "acme-datacenter");
    assert_eq!(org(&[], Some(Part::Manager)), "neocloud");
    let flag = ["--api-key", world.key(Part::Stranger)];
    assert_eq!(org(&flag, Some(Part::Manager)), "spot-buyer");
    let file = world.folder().join("key.txt");
    std::fs::write(&file, format!("{}\n", world.key(Part::Audience))).unwrap();
    let flag = ["--api-key-file", file.to_str().unwrap()];
    assert_eq!(org(&flag, Some(Part::Manager)), "tenant-labs");
}

#[test]
fn the_kept_key_goes_to_no_other_platform() {
    let (world, other) = (World::start(), World::start());
    fed(
        &world,
        &["auth", "login", "--with-key"],
        world.key(Part::Owner),
    );
    let elsewhere = world
        .bare(&["whoami", "--url", &other.url])
        .output()
        .unwrap();
    assert_eq!(code(&elsewhere), Some(3), "{elsewhere:?}");
    assert!(
        said(&elsewhere).contains(&format!("is for {}", world.url)),
        "{elsewhere:?}"
    );
}

#[test]
fn a_config_file_that_others_may_read_is_refused_until_it_is_written_anew() {
    let world = World::start();
    let login = || {
        fed(
            &world,
            &["auth", "login", "--with-key"],
            world.key(Part::Owner),
        )
    };
    login();
    let file = world.folder().join("orl/config.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = world.bare(&["whoami"]).output().unwrap();
    assert_eq!(code(&refused), Some(3), "{refused:?}");
    assert!(said(&refused).contains("chmod 600"), "{refused:?}");
    // A key from elsewhere does not need the file; a login mends it.
    let given = world
        .bare(&["whoami"])
        .env("ORL_API_KEY", world.key(Part::Owner))
        .output();
    assert_eq!(code(&given.unwrap()), Some(0));
    assert_eq!(code(&login()), Some(0));
    assert_eq!(code(&world.bare(&["whoami"]).output().unwrap()), Some(0));
}

#[test]
fn no_output_has_the_key_in_it() {
    let world = World::start();
    let key = world.key(Part::Operator).to_owned();
    let reservation = world.reservation.clone();
    let lines: [&[&str]; 12] = [
        &["whoami", "--verbose"],
        &["nodes", "list", "--verbose"],
        &["nodes", "get", "nowhere", "-v"],
        &[
            "reservations",
            "get",
            NODE,
            &reservation,
            "-v",
            "--output",
            "json",
        ],
        &[
            "reservations",
            "audit",
            NODE,
            &reservation,
            "--all",
            "--output",
            "yaml",
        ],
        &["api-keys", "list", "relet", "--output", "json"],
        &["auth", "status", "--verbose", "--output", "json"],
        &["auth", "login", &key],
        &[&key],
        &["vms", "get", &key],
        &["vms", "get", "v", "--output", &key],
        &["vms", "get", "v", "--api-key", &key, "--api-key-file", &key],
    ];
    for line in lines {
        let output = world.run(Part::Operator, line);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(stream);
            assert!(!text.contains(&key[3..]), "{line:?} shows the key: {text}");
        }
        assert!(
            matches!(code(&output), Some(0 | 2 | 4)),
            "{line:?}: {output:?}"
        );
    }
}

#[test]
fn a_new_secret_is_shown_once_and_only_where_it_is_asked_for() {
    let world = World::start();
    let create = [
        "api-keys", "create", "neocloud", "--name", "build", "--role", "member",
    ];
    let table = world.run(Part::Manager, &create);
    let text = String::from_utf8(table.stdout.clone()).unwrap();
    let secret = text
        .lines()
        .find_map(|line| line.strip_prefix("Key       "))
        .unwrap();
    assert!(
        secret.starts_with("or_") && secret.len() > 38,
        "the secret is whole"
    );
    assert!(said(&table).contains("keep it now"), "{}", said(&table));
    let works = world
        .bare(&["whoami", "--output", "json"])
        .env("ORL_API_KEY", secret)
        .output();
    assert_eq!(code(&works.unwrap()), Some(0));

    let id = world.ok(Part::Manager, &[&create[..], &["--output", "id"]].concat());
    assert!(
        !id.contains("or_") && id.lines().count() == 1,
        "an id alone: {id}"
    );
    let json = world.json(Part::Manager, &create);
    assert!(json["key"].as_str().unwrap().starts_with("or_"));
    let listed = world.ok(
        Part::Manager,
        &["api-keys", "list", "neocloud", "--output", "json"],
    );
    assert!(!listed.contains(secret), "lists have no secrets");

    let gone = world.ok(
        Part::Manager,
        &["api-keys", "delete", "neocloud", id.trim()],
    );
    assert_eq!(gone, "");
}
