#![doc = include_str!("../README.md")]

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{ColorChoice, FromArgMatches as _};
use orl::cli::{Cli, grammar};
use orl::failure::Failure;
use orl::output::{Format, Screen};
use orl::redact::redacted;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let colour = !args.iter().any(|arg| arg == "--no-color");
    if !colour {
        anstream::ColorChoice::Never.write_global();
    }
    let cli = match parsed(args, colour) {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let mut screen = Screen::new(cli.global.output);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(orl::run::run(&cli, &mut screen));
            // A question to a name server cannot be called back: it is not waited for.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Failure::local(format!("cannot start: {error}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.failure(&failure);
            ExitCode::from(failure.exit.code())
        }
    }
}

fn parsed(args: Vec<OsString>, colour: bool) -> Result<Cli, clap::Error> {
    let choice = if colour {
        ColorChoice::Auto
    } else {
        ColorChoice::Never
    };
    let matches = grammar().color(choice).try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// Help that was asked for, or what is wrong with the command line. Somebody may have typed a key
/// where none belongs, so it goes without one.
fn misread(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let mut screen = Screen::new(Format::Table);
    if error.use_stderr() {
        let mut stream = anstream::stderr();
        // Nothing is left to do if nobody reads it.
        let _ = write!(stream, "{}", redacted(&text.ansi().to_string()));
        return ExitCode::from(2);
    }
    match screen.raw(&text.ansi().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.exit.code()),
    }
}
