//! Runs a command: its calls, and what is shown of their answers.

use std::collections::BTreeSet;
use std::env::VarError;
use std::path::Path;
use std::time::Duration;

use clap_complete::generate;

use crate::cli::{Cli, Command, grammar};
use crate::client::{Answer, Client};
use crate::commands::{Plan, auth, plan, reservations};
use crate::failure::{Exit, Failure, other_shape};
use crate::manual;
use crate::output::text::plain;
use crate::output::view::{View, at};
use crate::output::{Format, Screen, rows_of, with_end, yaml};
use crate::reclaim;
use crate::settings::{KEY_VARIABLE, Settings, URL_VARIABLE};

/// Runs a command to its end.
///
/// # Errors
/// [`Failure`] has the exit code.
pub async fn run(cli: &Cli, screen: &mut Screen) -> Result<(), Failure> {
    match &cli.command {
        Command::Version => {
            return screen.lines(&[format!("orl {}", env!("CARGO_PKG_VERSION"))]);
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            generate(*shell, &mut grammar(), "orl", &mut script);
            return screen.raw(&String::from_utf8_lossy(&script));
        }
        Command::Man { dir } => return man(dir.as_deref(), screen),
        _ => {}
    }
    for name in [URL_VARIABLE, KEY_VARIABLE] {
        // To pass over it would be to call another platform, or with another key.
        if let Err(VarError::NotUnicode(_)) = std::env::var(name) {
            return Err(Failure::usage(format!("{name} is no UTF-8")).hint("set it anew"));
        }
    }
    let env = |name: &str| std::env::var(name).ok();
    let timeout = cli.global.call_timeout();
    if let Command::Auth(auth::Command::Logout) = &cli.command {
        return auth::logout(screen, env);
    }
    let settings = match &cli.command {
        // A file that is of no use must not stand in the way of a new one.
        Command::Auth(auth::Command::Login { .. }) => {
            Settings::resolve_past_the_file(cli.global.flags(), env)?
        }
        _ => Settings::resolve(cli.global.flags(), env)?,
    };
    let client = Client::new(settings, cli.global.verbose)?;
    match &cli.command {
        Command::Auth(auth::Command::Login { with_key }) => {
            auth::login(&client, screen, *with_key, timeout).await
        }
        Command::Auth(auth::Command::Status) => auth::status(&client, screen, timeout).await,
        Command::Reservations(reservations::Command::Unit(reservations::UnitCommand::Reclaim(
            args,
        ))) if !args.dry_run => reclaim::reclaim(&client, screen, args, &cli.global).await,
        command => match plan(command)? {
            Some(plan) => call(&client, screen, &plan, timeout).await,
            None => Ok(()),
        },
    }
}

/// Makes a planned call and shows its answer.
async fn call(
    client: &Client,
    screen: &mut Screen,
    plan: &Plan,
    timeout: Duration,
) -> Result<(), Failure> {
    if screen.format == Format::Id && plan.view.id.is_none() && plan.call.method == "GET" {
        let what = "this answer has no id to show";
        return Err(Failure::usage(what).hint("use --output json or yaml"));
    }
    match &plan.page {
        Some(page) if page.all => all(client, screen, plan, timeout).await,
        Some(_) => {
            let answer = client.send(&plan.call, timeout).await?;
            is_list(&answer)?;
            one_page(screen, plan.view, &answer)
        }
        None => {
            let answer = client.send(&plan.call, timeout).await?;
            let shown = screen.answer(plan.view, &answer);
            shown.map_err(|failure| match plan.call.method {
                "GET" => failure,
                _ => reclaim::done_all_the_same(failure),
            })?;
            if answer.body["key"].is_string() && screen.format != Format::Id {
                screen.say("The key is shown this once: keep it now.");
            }
            Ok(())
        }
    }
}

/// An answer without items must not pass for a list with nothing in it.
fn is_list(answer: &Answer) -> Result<(), Failure> {
    let items = answer.body["items"].as_array();
    items.map(|_| ()).ok_or_else(|| other_shape("items"))
}

fn one_page(screen: &mut Screen, view: &View, answer: &Answer) -> Result<(), Failure> {
    match screen.format {
        Format::Json | Format::Yaml => return screen.answer(view, answer),
        Format::Id => screen.lines(&ids(view, answer))?,
        Format::Table => {
            let rows = rows_of(view, &answer.body);
            if rows.is_empty() {
                screen.say("Nothing there.");
            } else {
                screen.rows(view, &rows)?;
            }
        }
    }
    if let Some(cursor) = next(answer) {
        screen.say(&format!(
            "There is more: --all, or --cursor {}",
            plain(cursor)
        ));
    }
    Ok(())
}

fn ids(view: &View, answer: &Answer) -> Vec<String> {
    let name = view.id.unwrap_or("id");
    let items = answer.body["items"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    items.iter().map(|item| at(item, name)).collect()
}

fn next(answer: &Answer) -> Option<&str> {
    answer.body["nextCursor"]
        .as_str()
        .filter(|cursor| !cursor.is_empty())
}

/// Follows a list to its end. Items go out page by page; only a table waits for all of them, since
/// its columns are as wide as the widest.
async fn all(
    client: &Client,
    screen: &mut Screen,
    plan: &Plan,
    timeout: Duration,
) -> Result<(), Failure> {
    let mut call = plan.call.clone();
    let (mut rows, mut first) = (Vec::new(), true);
    let mut known: BTreeSet<String> = plan.page.iter().filter_map(|p| p.cursor.clone()).collect();
    loop {
        let answer = client.send(&call, timeout).await?;
        is_list(&answer)?;
        match screen.format {
            Format::Table => rows.extend(rows_of(plan.view, &answer.body)),
            Format::Id => screen.lines(&ids(plan.view, &answer))?,
            Format::Json | Format::Yaml => page_of_many(screen, &answer, first)?,
        }
        first = false;
        let Some(cursor) = next(&answer) else { break };
        if !known.insert(cursor.to_owned()) {
            return Err(Failure::new(
                Exit::Server,
                "the list does not end: its nextCursor is one that was sent before",
            ));
        }
        call.query.retain(|(name, _)| *name != "cursor");
        call = call.query("cursor", Some(cursor));
    }
    match screen.format {
        Format::Json => screen.raw("]}\n"),
        Format::Table if rows.is_empty() => {
            screen.say("Nothing there.");
            Ok(())
        }
        Format::Table => screen.rows(plan.view, &rows),
        Format::Yaml | Format::Id => Ok(()),
    }
}

/// One page of a list that is written as a whole.
fn page_of_many(screen: &mut Screen, answer: &Answer, first: bool) -> Result<(), Failure> {
    let items = answer.body["items"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if screen.format == Format::Yaml {
        let text = match (items.is_empty(), first) {
            (true, true) => "items: []\n".to_owned(),
            (true, false) => String::new(),
            (false, true) => format!("items:\n{}", with_end(&yaml(&answer.body["items"])?)),
            (false, false) => with_end(&yaml(&answer.body["items"])?),
        };
        return screen.raw(&text);
    }
    if first {
        screen.raw("{\"items\":[")?;
    }
    for (number, item) in items.iter().enumerate() {
        let comma = if first && number == 0 { "\n" } else { ",\n" };
        screen.raw(&format!("{comma}{item}"))?;
    }
    Ok(())
}

fn man(dir: Option<&Path>, screen: &mut Screen) -> Result<(), Failure> {
    let Some(dir) = dir else {
        return screen.raw(&manual::page(&grammar())?);
    };
    let names = manual::write(dir)?;
    screen.lines(&[format!("{} pages in {}", names.len(), dir.display())])
}
