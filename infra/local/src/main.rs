#![doc = include_str!("../README.md")]

use std::process::ExitCode;

use clap::Parser as _;
use relet::cli::{AuditCommand, Cli, Command, one_line};
use relet::failure::Failure;
use relet::output::Output;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return failed(&Failure::Start(one_line(&error))),
        // Help and version are asked for, and are no failure.
        Err(text) => text.exit(),
    };
    let mut output = Output::default();
    let outcome = match cli.command() {
        Command::Serve(args) => {
            relet::logs::to_stderr("info");
            relet::serve::serve(&args.options(), &mut output).await
        }
        Command::Demo => {
            relet::logs::to_stderr("error");
            relet::demo::demo(&mut output).await
        }
        Command::Key(args) => relet::keys::print(&args.data, args.part, &mut output),
        Command::OperatorKey(args) => {
            relet::logs::to_stderr("info");
            relet::operator::make(args.asked(), &mut output).await
        }
        Command::Audit(AuditCommand::Verify(args)) => {
            relet::logs::to_stderr("error");
            match args.source(|name| std::env::var(name).ok()) {
                Some((source, head)) => {
                    relet::audit::verify_trail(&source, head, &mut output).await
                }
                None => Err(Failure::Start("name a node and a reservation".to_owned())),
            }
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    use std::io::Write as _;
    // Nothing is left to do if nobody reads it.
    let _ = writeln!(std::io::stderr(), "relet: {failure}");
    ExitCode::from(failure.exit_code())
}
