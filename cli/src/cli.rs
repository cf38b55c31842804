//! The command line: one command for each call of the API, and a few around them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::commands::{auth, gpus, keys, nodes, reservations, vms};
use crate::failure::Exit;
use crate::output::Format;
use crate::settings::Flags;

/// Longest time for a call where the command line does not say.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Reserve GPU units, sell them again at spot, and take them back at once.
///
/// Which platform, with which key: a flag wins over the environment, and that over the config file
/// that `orl auth login` writes. `orl auth status` says which one it is.
#[derive(Debug, Parser)]
#[command(
    name = "orl",
    version,
    max_term_width = 80,
    disable_help_subcommand = true
)]
#[command(propagate_version = false, infer_long_args = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How to do it.
    #[command(flatten)]
    pub global: Global,
}

/// The flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Base URL of the platform; else ORL_URL, the config file, http://127.0.0.1:8083
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// API key; else --api-key-file, ORL_API_KEY, the config file. Others may see it in the list
    /// of processes
    #[arg(
        long,
        global = true,
        value_name = "KEY",
        conflicts_with = "api_key_file"
    )]
    pub api_key: Option<String>,
    /// File with the API key alone in it
    #[arg(long, global = true, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Let the key go over plain HTTP to another machine
    #[arg(long, global = true)]
    pub insecure_http: bool,
    /// How answers are shown
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    #[arg(
        hide_possible_values = true,
        help = "How answers are shown: table, json, yaml or id"
    )]
    pub output: Format,
    /// Longest time for each call with its retries, and for all of --watch: 500ms, 30s, 2m
    /// [default: 30s, with --watch 10m]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// No colours, whatever the terminal can show
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Say on standard error which calls are made; never a key
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

impl Global {
    /// What they say of the platform and the key.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags {
            url: self.url.clone(),
            key: self.api_key.clone(),
            key_file: self.api_key_file.clone(),
            insecure_http: self.insecure_http,
        }
    }

    /// Longest time for a call.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT_DEFAULT)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reservations: exclusive rights over units of a node, for a term
    #[command(
        subcommand,
        after_help = "Example:\n  orl reservations list gpu-node-1"
    )]
    Reservations(reservations::Command),
    /// Nodes and their units
    #[command(subcommand, after_help = "Example:\n  orl nodes list")]
    Nodes(nodes::Command),
    /// Virtual machines
    #[command(subcommand, after_help = "Example:\n  orl vms list spot-buyer")]
    Vms(vms::Command),
    /// What is free
    #[command(subcommand, after_help = "Example:\n  orl gpu-availability get")]
    GpuAvailability(gpus::Command),
    /// API keys of an org
    #[command(subcommand, after_help = "Example:\n  orl api-keys list neocloud")]
    ApiKeys(keys::Command),
    /// Say whose key it is, and what it may do
    #[command(after_help = "Example:\n  orl whoami")]
    Whoami,
    /// Say whether the platform is there; needs no key
    #[command(after_help = "Example:\n  orl health")]
    Health,
    /// Print the platform's OpenAPI document; needs no key
    #[command(after_help = "Example:\n  orl openapi --output yaml")]
    Openapi,
    /// Keep a key on this machine, or take it away
    #[command(subcommand, after_help = "Example:\n  orl auth status")]
    Auth(auth::Command),
    /// Print the version of orl
    #[command(after_help = "Example:\n  orl version")]
    Version,
    /// Print a shell's completions of every command and flag
    #[command(after_help = "Example:\n  orl completions bash > orl.bash && . ./orl.bash")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page for every command, or print that of orl itself
    #[command(after_help = "Examples:\n  orl man > orl.1\n  orl man man1")]
    Man {
        /// Folder to write them to; it is made if it is not there
        dir: Option<PathBuf>,
    },
}

/// The exit codes, as help and manual pages list them.
#[must_use]
pub fn exit_codes() -> String {
    let each = Exit::ALL
        .iter()
        .map(|exit| format!("  {:<4} {}", exit.code(), exit.meaning()));
    let lines: Vec<String> = each.collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// The whole grammar.
#[must_use]
pub fn grammar() -> clap::Command {
    let files = "Files:\n  $XDG_CONFIG_HOME/orl/config.json, else ~/.config/orl/config.json";
    let example =
        "Examples:\n  orl auth login --with-key < key.txt\n  orl reservations list gpu-node-1";
    Cli::command().after_help(format!("{example}\n\n{files}\n\n{}", exit_codes()))
}

/// Reads a time: a number with `ms`, `s`, `m` or `h` behind it, or of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is a number above 0 with ms, s, m or h, such as 30s".to_owned();
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let each_ms = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let ms = number
        .checked_mul(each_ms)
        .filter(|ms| (1..=MS_MAX).contains(ms));
    ms.map(Duration::from_millis).ok_or_else(wrong)
}

/// The longest time that is taken: a week.
const MS_MAX: u64 = 7 * 24 * 3_600_000;

/// An id in a path: anything that a path can hold as one part.
///
/// # Errors
/// A sentence, if it cannot be an id.
pub fn path_id(text: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if (1..=128).contains(&text.len()) && text.chars().all(legal) && !matches!(text, "." | "..") {
        return Ok(text.to_owned());
    }
    Err("an id has 1 to 128 characters of A-Z a-z 0-9 . _ : -".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let ms = |text| duration(text).map(|time| time.as_millis());
        for (text, expected) in [
            ("1ms", 1),
            ("30", 30_000),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "0",
            "0s",
            "-1s",
            "1d",
            "1.5s",
            "1 s",
            "9999999999999999999h",
            "200h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_is_one_part_of_a_path() {
        for good in ["a", "gpu-node-1", "0199:x_y.z"] {
            assert_eq!(path_id(good).as_deref(), Ok(good));
        }
        for bad in ["", ".", "..", "a/b", "a b", "ü", "a%2Fb", &"x".repeat(129)] {
            assert!(path_id(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }
}
