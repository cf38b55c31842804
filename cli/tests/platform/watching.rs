//! Reclaims that are asked about and watched, on terminals and off.

use std::process::Stdio;
use std::time::Duration;

use relet::keys::Part;

use crate::support::{NODE, World, flat, said, until};

fn reclaim<'a>(world: &'a World, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "reservations",
        "unit",
        "reclaim",
        NODE,
        &world.reservation,
        "--unit-ids",
    ];
    [&args[..], &["u2,u3"], more].concat()
}

fn is_released(world: &World) -> bool {
    let get = ["reservations", "get", NODE, &world.reservation];
    world.json(Part::Owner, &get)["releasedUnitIds"] != serde_json::json!([])
}

#[test]
fn off_a_terminal_nothing_is_reclaimed_without_yes() {
    let world = World::start();
    world.release("u2,u3");
    let refused = world.run(Part::Manager, &reclaim(&world, &[]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(said(&refused).contains("--yes") && said(&refused).contains("--dry-run"));
    assert!(is_released(&world));
    world.ok(Part::Manager, &reclaim(&world, &["--yes"]));
    assert!(!is_released(&world));
}

#[test]
fn on_a_terminal_it_asks_and_only_yes_is_yes() {
    let world = World::start();
    world.release("u2,u3");
    let vm = world.buy("u2");
    for (typed, code) in [
        ("n\r", 1),
        ("\r", 1),
        ("\u{4}", 1),
        ("yep\r", 1),
        ("y\r", 0),
    ] {
        let mut terminal = world.terminal(Part::Manager, &reclaim(&world, &[]));
        terminal.wait_for("terminate this VM? [y/N]");
        terminal.enter(typed);
        let ended = terminal.end();
        assert_eq!(ended.code, code, "{typed:?}: {}", ended.screen);
        assert!(
            ended.screen.contains(&format!("terminate    {vm}")),
            "{}",
            ended.screen
        );
        assert_eq!(is_released(&world), code == 1, "{typed:?}");
    }
}

#[test]
fn where_nothing_would_die_nothing_is_asked() {
    let world = World::start();
    world.release("u2,u3");
    let ended = world.terminal(Part::Manager, &reclaim(&world, &[])).end();
    assert_eq!(ended.code, 0, "{}", ended.screen);
    assert!(!ended.screen.contains("[y/N]"), "{}", ended.screen);
    assert!(!is_released(&world));
}

#[test]
fn what_changes_between_the_plan_and_the_answer_is_shown_and_asked_anew() {
    let world = World::start();
    world.release("u2,u3");
    let first = world.buy("u2");
    let mut terminal = world.terminal(Part::Manager, &reclaim(&world, &[]));
    terminal.wait_for("terminate this VM? [y/N]");
    let second = world.buy("u3");
    terminal.enter("y\r");
    terminal.wait_for("terminate these 2 VMs? [y/N]");
    assert!(
        is_released(&world),
        "nothing is reclaimed on the first answer"
    );
    terminal.enter("y\r");
    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.screen);
    assert!(
        ended.screen.contains("has changed since"),
        "{}",
        ended.screen
    );
    for vm in [first, second] {
        assert!(
            ended.screen.contains(&format!("terminate    {vm}")),
            "{}",
            ended.screen
        );
    }
    assert!(!is_released(&world));
}

#[test]
fn a_version_that_was_named_is_not_given_up() {
    let world = World::start();
    world.release("u2,u3");
    world.buy("u2");
    for version in ["1", "\"1\""] {
        let args = reclaim(&world, &["--yes", "--if-match", version]);
        let refused = world.run(Part::Manager, &args);
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        assert!(said(&refused).contains("version_mismatch"), "{refused:?}");
    }
    assert!(is_released(&world));
}

#[test]
fn a_watch_ends_when_the_units_are_usable_for_whoever_may_reclaim() {
    for part in [Part::Manager, Part::Owner, Part::Operator] {
        let world = World::stubborn(Duration::from_millis(400));
        world.release("u2,u3");
        let vm = world.buy("u2,u3");
        let output = world.run(part, &reclaim(&world, &["--yes", "--watch"]));
        assert_eq!(output.status.code(), Some(0), "{part:?}: {output:?}");
        let said = said(&output);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], format!("VM {vm}  condemned"), "{said}");
        assert!(lines[1].starts_with(&format!("VM {vm}  gone ")), "{said}");
        assert!(lines[2].starts_with("Usable: u2, u3, after "), "{said}");
        assert_eq!(lines.len(), 3, "no progress off a terminal: {said}");
        // Usable at once: the tenant places its own VM there.
        let place = ["--node-id", NODE, "--unit-ids", "u2,u3"];
        let create = [
            "vms",
            "create",
            "tenant-labs",
            "--name",
            "own",
            "--tier",
            "community",
        ];
        let on = ["--reservation-id", &world.reservation];
        world.ok(Part::Audience, &[&create[..], &place, &on].concat());
    }
}

#[test]
fn a_watch_without_vms_ends_at_once() {
    let world = World::start();
    world.release("u2");
    let output = world.run(Part::Manager, &reclaim(&world, &["--yes", "--watch"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said(&output).starts_with("Usable: u2, u3, after 0."),
        "{output:?}"
    );
}

#[test]
fn a_watch_ends_after_its_time_and_says_what_is_left() {
    let world = World::stubborn(Duration::from_secs(20));
    world.release("u2,u3");
    world.buy("u2,u3");
    let args = reclaim(&world, &["--yes", "--watch", "--timeout", "3s"]);
    let output = world.run(Part::Manager, &args);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = flat(&said(&output));
    assert!(
        said.contains("reclaimed, but 1 of 1 VMs are still there after 3s"),
        "{said}"
    );
    assert!(!is_released(&world), "the reclaim is done");
}

#[test]
fn ctrl_c_leaves_the_reclaim_running_and_says_so() {
    let world = World::stubborn(Duration::from_secs(2));
    world.release("u2,u3");
    let vm = world.buy("u2,u3");
    let mut terminal = world.terminal(Part::Manager, &reclaim(&world, &["--watch"]));
    terminal.wait_for("[y/N]");
    terminal.enter("y\r");
    terminal.wait_for("0 of 1 gone");
    terminal.enter("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, 130, "{}", ended.screen);
    let screen = flat(&ended.screen);
    assert!(
        screen.contains("stopped watching; the reclaim is done and goes on"),
        "{screen}"
    );
    assert!(screen.contains("orl reservations audit"), "{screen}");
    until("the VM is gone all the same", || {
        world.json(Part::Stranger, &["vms", "get", &vm])["status"] == "terminated"
    });
}

#[test]
fn ctrl_c_at_the_question_changes_nothing() {
    let world = World::start();
    world.release("u2,u3");
    world.buy("u2");
    let mut terminal = world.terminal(Part::Manager, &reclaim(&world, &["--watch"]));
    terminal.wait_for("[y/N]");
    terminal.enter("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, 130, "{}", ended.screen);
    assert!(
        ended.screen.contains("nothing was reclaimed"),
        "{}",
        ended.screen
    );
    assert!(is_released(&world));
}

#[test]
fn a_watch_goes_on_when_the_reservation_ends_meanwhile() {
    let world = World::stubborn(Duration::from_secs(2));
    world.release("u2,u3");
    world.buy("u2,u3");
    let mut command = world.bare(&reclaim(&world, &["--yes", "--watch"]));
    command.env("ORL_API_KEY", world.key(Part::Manager));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it is reclaimed", || !is_released(&world));
    world.ok(
        Part::Operator,
        &["reservations", "end", NODE, &world.reservation],
    );
    let output = child.wait_with_output().unwrap();
    // The VMs are followed to their end, but the units are in the pool.
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(said(&output).contains("gone "), "{output:?}");
    assert!(flat(&said(&output)).contains("the units are not usable"));
}
