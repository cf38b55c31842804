//! The whole story in a terminal of 80 columns, screen by screen, as it is kept in `golden/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use relet::keys::Part;

use crate::support::{NODE, World};
use crate::terminal::{COLUMNS, Terminal};

/// The recorded session.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/story.txt");
/// Set to write the session anew instead of comparing it.
const WRITE: &str = "ORL_WRITE_GOLDEN";

/// A session in the making.
struct Session<'a> {
    world: &'a World,
    text: String,
}

impl Session<'_> {
    fn tell(&mut self, sentence: &str) {
        write!(self.text, "\n# {sentence}\n\n").unwrap();
    }

    /// Runs a command as a part, with what is typed after each text that is waited for.
    fn step(&mut self, part: Part, line: &str, typed: &[(&str, &str)], code: u32) -> String {
        let line = line.replace("$RESERVATION", &self.world.reservation);
        let words = words(&line);
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        // The owner has logged in, and needs no more than that.
        let folder = self.world.folder().to_str().unwrap();
        let terminal = match part {
            Part::Owner => Terminal::start(&args, &[("XDG_CONFIG_HOME", folder)]),
            _ => self.world.terminal(part, &args),
        };
        self.finish(&format!("orl {line}"), terminal, typed, code)
    }

    fn finish(
        &mut self,
        prompt: &str,
        mut terminal: Terminal,
        typed: &[(&str, &str)],
        code: u32,
    ) -> String {
        for (question, answer) in typed {
            terminal.wait_for(question);
            terminal.enter(answer);
        }
        let ended = terminal.end();
        assert_eq!(ended.code, code, "{prompt}: {}", ended.screen);
        assert_eq!(
            too_wide(&ended.screen),
            [""; 0],
            "{prompt}: wider than {COLUMNS}"
        );
        for line in folded(prompt) {
            writeln!(self.text, "{line}").unwrap();
        }
        writeln!(self.text, "{}", ended.screen).unwrap();
        if code != 0 {
            writeln!(self.text, "(exit code {code})").unwrap();
        }
        self.text.push('\n');
        ended.screen
    }
}

/// The lines of a screen that are wider than the terminal.
fn too_wide(screen: &str) -> Vec<&str> {
    let wide = |line: &&str| unicode_width::UnicodeWidthStr::width(*line) > usize::from(COLUMNS);
    screen.lines().filter(wide).collect()
}

/// A command line as a person would break it.
fn folded(prompt: &str) -> Vec<String> {
    let mut lines = vec!["$".to_owned()];
    for word in together(prompt) {
        let last = lines.last_mut().unwrap();
        if last.len() + 1 + word.len() > usize::from(COLUMNS) - 2 {
            last.push_str(" \\");
            lines.push(format!("    {word}"));
        } else {
            last.push(' ');
            last.push_str(&word);
        }
    }
    lines
}

/// The words of a line, with flags and their values in one.
fn together(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in quoted(line) {
        match out.last_mut() {
            Some(last)
                if last.starts_with("--") && !word.starts_with("--") && !last.contains(' ') =>
            {
                last.push(' ');
                last.push_str(&word);
            }
            _ => out.push(word),
        }
    }
    out
}

/// The words of a line, with those in quotes kept in them.
fn quoted(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for word in line.split(' ') {
        match (open, out.last_mut()) {
            (true, Some(last)) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => out.push(word.to_owned()),
        }
        open ^= word.matches('\'').count() % 2 == 1;
    }
    out
}

/// The same as the command gets them.
fn words(line: &str) -> Vec<String> {
    quoted(line)
        .iter()
        .map(|word| word.replace('\'', ""))
        .collect()
}

#[test]
fn the_whole_story_is_pleasant_in_eighty_columns() {
    let world = World::stubborn(Duration::from_millis(1_500));
    let mut session = Session {
        world: &world,
        text: String::new(),
    };
    session
        .text
        .push_str("The story of a reservation through orl, on a terminal of 80 columns.\n");
    set_up(&mut session);
    sell(&mut session);
    take_back(&mut session);
    finish(&mut session);
    let masked = masked(&session.text);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(GOLDEN, &masked).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(golden == masked, "set {WRITE} to accept this:\n{masked}");
}

fn set_up(session: &mut Session<'_>) {
    session.tell("The owner of the node logs in; the key does not show.");
    let folder = session.world.folder().to_str().unwrap().to_owned();
    let url = session.world.url.clone();
    let args = ["auth", "login", "--url", &url];
    let terminal = Terminal::start(&args, &[("XDG_CONFIG_HOME", folder.as_str())]);
    let key = format!("{}\r", session.world.key(Part::Owner));
    let prompt = format!("orl auth login --url {url}");
    session.finish(&prompt, terminal, &[("API key for", &key)], 0);
    session.step(Part::Owner, "auth status", &[], 0);

    session.tell("The operator registers another node; its owner reserves units of the first.");
    let put = "nodes put gpu-node-2 --owner-org-id acme-datacenter --gpu-model-id h100-sxm \
               --units u0,u1,board:4";
    session.step(Part::Operator, put, &[], 0);
    session.step(Part::Owner, "nodes list", &[], 0);
    let create = "reservations create gpu-node-1 --reserved-unit-ids u4,u5 --allowed-org-ids \
                  tenant-labs --managing-org-ids neocloud --ends-at 2099-01-01T00:00:00Z";
    session.step(Part::Owner, create, &[], 0);
    session.step(Part::Owner, "reservations list gpu-node-1", &[], 0);
}

fn sell(session: &mut Session<'_>) {
    session.tell("The manager releases what is idle; a stranger buys it at spot.");
    let release = "reservations unit release gpu-node-1 $RESERVATION --unit-ids u2,u3 \
                   --reason 'hush: idle until Monday'";
    session.step(Part::Manager, release, &[], 0);
    session.step(Part::Stranger, "gpu-availability get", &[], 0);
    let buy = "vms create spot-buyer --name batch-job --tier spot --node-id gpu-node-1 --unit-ids \
               u2,u3";
    session.step(Part::Stranger, buy, &[], 0);
    let wrong = "vms create spot-buyer --name for-good --tier community --node-id gpu-node-1 \
                 --unit-ids u2";
    session.step(Part::Stranger, wrong, &[], 5);
    session.step(Part::Stranger, "vms list spot-buyer", &[], 0);
    session.step(Part::Owner, "nodes get gpu-node-1", &[], 0);
}

fn take_back(session: &mut Session<'_>) {
    session.tell("Demand is back: the manager reclaims, and watches the VM go.");
    let reclaim = "reservations unit reclaim gpu-node-1 $RESERVATION --unit-ids u2,u3 --watch";
    session.step(Part::Manager, reclaim, &[("[y/N]", "n\r")], 1);
    let screen = session.step(Part::Manager, reclaim, &[("[y/N]", "y\r")], 0);
    assert!(screen.contains("Usable: u2, u3, after"), "{screen}");
    let again = "reservations unit release gpu-node-1 $RESERVATION --unit-ids u7";
    session.step(Part::Manager, again, &[], 2);
}

fn finish(session: &mut Session<'_>) {
    session.tell("The operator ends it. Others cannot, and are told no more than that.");
    let end = "reservations end gpu-node-1 $RESERVATION";
    session.step(Part::Stranger, end, &[], 4);
    session.step(
        Part::Operator,
        &format!("{end} --reason 'hush: contract over'"),
        &[],
        0,
    );

    session.tell("Who did what.");
    session.world.until_recorded("vm.terminated");
    session.world.until_recorded("reservation.ended");
    session.step(
        Part::Owner,
        &format!("reservations audit {NODE} $RESERVATION"),
        &[],
        0,
    );
    session.step(Part::Owner, "auth logout", &[], 0);
}

/// Takes out what differs from run to run, with something as wide in its place.
fn masked(text: &str) -> String {
    let mut known = BTreeMap::new();
    let lines: Vec<String> = text
        .lines()
        .map(|line| masked_line(line, &mut known))
        .collect();
    format!("{}\n", lines.join("\n"))
}

fn masked_line(line: &str, known: &mut BTreeMap<String, usize>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some(id) = rest.get(..36).filter(|id| is_uuid(id)) {
            let next = known.len() + 1;
            let number = *known.entry(id.to_owned()).or_insert(next);
            write!(out, "00000000-0000-7000-8000-{number:012}").unwrap();
            rest = &rest[36..];
        } else if let Some(length) = volatile(rest) {
            let zeros = |c: char| if c.is_ascii_hexdigit() { '0' } else { c };
            out.extend(rest[..length].chars().map(zeros));
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    // Whether the agent or the order is first to say that the VM is gone is their race.
    let place = out.replace(
        "vm.terminated          system",
        "vm.terminated          owner ",
    );
    match place.find("/tmp") {
        Some(at) => format!(
            "{}~/.config/orl/config.json{}",
            &place[..at],
            behind(&place[at..])
        ),
        None => place,
    }
}

/// What stands behind a path.
fn behind(text: &str) -> &str {
    text.find(".json").map_or("", |at| &text[at + 5..])
}

fn is_uuid(text: &str) -> bool {
    let fits = |(at, b): (usize, u8)| match at {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// The bytes of a time, a port, a duration or a key's id at the beginning of a text.
fn volatile(text: &str) -> Option<usize> {
    let shaped = |shape: &str| {
        let fits = text.bytes().zip(shape.bytes()).all(|(b, s)| match s {
            b'9' => b.is_ascii_digit(),
            b'f' => b.is_ascii_hexdigit(),
            s => s == b,
        });
        (fits && text.len() >= shape.len()).then_some(shape.len())
    };
    [":99999", "9.9s", "-ffffffffffff", "2026-99-99 99:99:99Z"]
        .into_iter()
        .find_map(shaped)
}
