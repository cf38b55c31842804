//! Why the command ends without success, and with which exit code.

/// A reason to end, in one line for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The command cannot start as it was told to: a busy port, a folder that cannot be written.
    #[error("{0}")]
    Start(String),
    /// Something went wrong once it ran.
    #[error("{0}")]
    Run(String),
}

impl Failure {
    /// The exit code: 2 where the caller can mend it by another argument, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Start(_) => 2,
            Failure::Run(_) => 1,
        }
    }
}

/// A failure to start: what was attempted, and why it did not work.
pub(crate) fn start(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::Start(format!("{what}: {why}"))
}

/// A failure while running: what was attempted, and why it did not work.
pub(crate) fn run(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::Run(format!("{what}: {why}"))
}
