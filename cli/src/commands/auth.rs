//! `orl auth`: a key kept on this machine.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::call::Call;
use crate::client::{Answer, Client};
use crate::config::{self, Kept};
use crate::failure::{Exit, Failure, other_shape};
use crate::output::table::{Kind, fields};
use crate::output::view::at;
use crate::output::{Format, Screen, with_end, yaml};
use crate::prompt;
use crate::redact::Secret;
use crate::settings::{KEY_VARIABLE, Source, no_place};

/// Most bytes of standard input that a key is looked for in.
const INPUT_BYTES_MAX: u64 = 4_096;

/// `orl auth …`
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a key and keep it in the config file
    ///
    /// It is asked for without showing it; --with-key reads it from standard input.
    #[command(after_help = "Examples:
  orl auth login --with-key < key.txt
  orl auth login --url http://127.0.0.1:8083 --api-key-file key.txt")]
    Login {
        /// Read the key from standard input
        #[arg(long)]
        with_key: bool,
    },
    /// Say which platform and key are used, where they come from, and what the key may do
    #[command(after_help = "Example:\n  orl auth status")]
    Status,
    /// Take the key out of the config file; it goes on working elsewhere until it is revoked
    #[command(after_help = "Example:\n  orl auth logout")]
    Logout,
}

const WHO: [&str; 2] = ["v1", "whoami"];

/// Checks a key and keeps it.
///
/// # Errors
/// If there is no key, the platform refuses it, or it cannot be kept.
pub async fn login(
    client: &Client,
    screen: &mut Screen,
    with_key: bool,
    timeout: Duration,
) -> Result<(), Failure> {
    let settings = client.settings();
    let path = settings.file()?;
    let (key, source) = given(client, screen, with_key).await?;
    let client = client.with_key(key.clone(), source)?;
    let who = who(&client, timeout).await?;
    let url = settings.url.value.clone();
    config::write(
        path,
        &Kept {
            url: url.clone(),
            key,
        },
    )?;
    let org = at(&who.body, "organizationId");
    screen.lines(&[format!("Logged in to {url} as {org}{}", rights(&who.body))])?;
    screen.say(&format!("The key is kept in {}", path.display()));
    if std::env::var_os(KEY_VARIABLE).is_some_and(|value| !value.is_empty()) {
        screen.say(&format!("{KEY_VARIABLE} is set and wins over it"));
    }
    Ok(())
}

/// Whose key it is, from a platform that can tell.
async fn who(client: &Client, timeout: Duration) -> Result<Answer, Failure> {
    let answer = client.send(&Call::get(&WHO), timeout).await?;
    match answer.body["organizationId"].is_string() {
        true => Ok(answer),
        false => Err(other_shape("organizationId")),
    }
}

/// The key to check: of a flag, of standard input, or asked for.
async fn given(
    client: &Client,
    screen: &mut Screen,
    with_key: bool,
) -> Result<(Secret, Source), Failure> {
    let flagged = client.settings().key.as_ref();
    let flagged = flagged.filter(|key| matches!(key.source, Source::Flag(_)));
    let (text, source) = if with_key {
        let mut text = String::new();
        let read = std::io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX)
            .read_to_string(&mut text);
        read.map_err(|error| Failure::local(format!("cannot read standard input: {error}")))?;
        (text, Source::Flag("--with-key"))
    } else if let Some(key) = flagged {
        return Ok((key.value.clone(), key.source.clone()));
    } else if std::io::stdin().is_terminal() {
        let ask = format!("API key for {}: ", client.settings().url.value);
        (
            prompt::secret(screen, &ask).await?,
            Source::Flag("the prompt"),
        )
    } else {
        let what = "there is no terminal to ask for the key";
        let hint = "orl auth login --with-key < file";
        return Err(Failure::usage(what).hint(hint));
    };
    match Secret::parse(&text) {
        Some(key) => Ok((key, source)),
        None => Err(Failure::usage(format!(
            "{source} gave no API key: or_… in one word"
        ))),
    }
}

/// The role behind a key, in brackets, if it has one.
fn rights(who: &Value) -> String {
    let operator = who["platformOperator"] == json!(true);
    let role = at(who, "role");
    let words: Vec<&str> = [
        role.as_str(),
        if operator { "platform operator" } else { "" },
    ]
    .into_iter()
    .filter(|word| !word.is_empty())
    .collect();
    if words.is_empty() {
        return String::new();
    }
    format!(" ({})", words.join(", "))
}

/// Says which platform and key are used.
///
/// # Errors
/// If there is no key, or the platform does not take it: after what is known has been said.
pub async fn status(
    client: &Client,
    screen: &mut Screen,
    timeout: Duration,
) -> Result<(), Failure> {
    let settings = client.settings();
    let who = who(client, timeout).await;
    let file = settings
        .file
        .as_ref()
        .map(|path| path.display().to_string());
    let told = match &who {
        Ok(_) => "valid",
        Err(failure) if settings.key.is_none() && failure.exit == Exit::Auth => "none",
        Err(failure) if failure.exit == Exit::Auth => "refused",
        Err(_) => "not checked",
    };
    let mut about = json!({
        "url": settings.url.value,
        "urlSource": settings.url.source.to_string(),
        "key": told,
    });
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            about[name] = value;
        }
    };
    put(
        "keySource",
        json!(settings.key.as_ref().map(|key| key.source.to_string())),
    );
    put("configFile", json!(file));
    if let Ok(Answer { body, .. }) = &who {
        for name in [
            "organizationId",
            "keyId",
            "role",
            "permissions",
            "platformOperator",
        ] {
            put(name, body[name].clone());
        }
    }
    show(screen, &about)?;
    who.map(|_| ())
}

fn show(screen: &mut Screen, about: &Value) -> Result<(), Failure> {
    match screen.format {
        Format::Json => screen.raw(&with_end(&about.to_string())),
        Format::Yaml => screen.raw(&yaml(about)?),
        Format::Id => screen.lines(&[at(about, "keyId")]),
        Format::Table => {
            let from = |name: &str| match at(about, name) {
                source if source.is_empty() => source,
                source => format!(" (from {source})"),
            };
            let mut pairs = Vec::new();
            let mut put = |label: &str, value: String, kind| {
                pairs.push((label.to_owned(), value, kind));
            };
            put(
                "Platform",
                at(about, "url") + &from("urlSource"),
                Kind::Breakable,
            );
            put("Key", at(about, "key"), Kind::Status);
            put("Key from", at(about, "keySource"), Kind::Breakable);
            put("Config file", at(about, "configFile"), Kind::Breakable);
            put("Org", at(about, "organizationId"), Kind::Whole);
            put("Key id", at(about, "keyId"), Kind::Whole);
            put("Role", at(about, "role"), Kind::Whole);
            put("May", at(about, "permissions"), Kind::Breakable);
            put("Operator", at(about, "platformOperator"), Kind::Whole);
            let lines = fields(&pairs, screen.width());
            screen.lines(&lines)
        }
    }
}

/// Takes the key away from this machine.
///
/// # Errors
/// If the file cannot be taken away.
pub fn logout(screen: &mut Screen, env: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let path = config::path(&env).ok_or_else(no_place)?;
    let said = match config::remove(&path)? {
        true => format!(
            "Logged out: {} is gone; the key itself still works",
            path.display()
        ),
        false => "Not logged in: there is no config file".to_owned(),
    };
    screen.lines(&[said])?;
    if env(KEY_VARIABLE).is_some_and(|value| !value.is_empty()) {
        screen.say(&format!("{KEY_VARIABLE} is still set, and is used"));
    }
    Ok(())
}
