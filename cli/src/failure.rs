//! Why a command ends without success: what happened, what to do next, and the exit code.

use std::fmt;
use std::time::Duration;

/// An exit code. The numbers are stable: scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Not done, for a reason on this side: you said no, or a file or the terminal failed.
    Local = 1,
    /// The command or what it asks for is wrong.
    Usage = 2,
    /// No key, a key that is refused, or one that may not do this.
    Auth = 3,
    /// Not there, or not visible to this key.
    NotFound = 4,
    /// Not possible in the present state, or the state has changed.
    Conflict = 5,
    /// The platform failed, did not answer in time or in full, or it is not the platform.
    Server = 6,
    /// The reclaim is done, but its units were not usable before `--timeout`.
    Waiting = 7,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them, in order.
    pub const ALL: [Exit; 9] = [
        Exit::Done,
        Exit::Local,
        Exit::Usage,
        Exit::Auth,
        Exit::NotFound,
        Exit::Conflict,
        Exit::Server,
        Exit::Waiting,
        Exit::Interrupted,
    ];

    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What it means, for help and manual pages.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Local => "not done: you said no, or a file or the terminal failed",
            Exit::Usage => "wrong usage, or a request that can never work (400, 413, 415, 422)",
            Exit::Auth => "no key, a refused key, or one that may not do this (401, 403)",
            Exit::NotFound => "not there, or not visible to this key (404)",
            Exit::Conflict => "not possible now, or changed in the meantime (409, 412)",
            Exit::Server => "the platform failed, is down, too slow or cut off (429, 5xx)",
            Exit::Waiting => "reclaimed, but --watch ran out of time before the units were usable",
            Exit::Interrupted => "Ctrl-C",
        }
    }

    /// The exit code of an HTTP status of the platform.
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        match status {
            400 | 413 | 415 | 422 => Exit::Usage,
            401 | 403 => Exit::Auth,
            404 => Exit::NotFound,
            409 | 412 => Exit::Conflict,
            _ => Exit::Server,
        }
    }
}

/// A command that did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What happened, in a sentence without a full stop.
    pub what: String,
    /// The error's code and status, as the platform sent them.
    pub code: Option<String>,
    /// The request's id, as the platform sent it.
    pub request_id: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// How long the platform wants to be left alone.
    pub wait: Option<Duration>,
}

impl Failure {
    /// A failure without details.
    pub fn new(exit: Exit, what: impl fmt::Display) -> Self {
        Self {
            exit,
            what: what.to_string(),
            code: None,
            request_id: None,
            hint: None,
            wait: None,
        }
    }

    /// A failure on this side.
    pub fn local(what: impl fmt::Display) -> Self {
        Self::new(Exit::Local, what)
    }

    /// A command that is wrong.
    pub fn usage(what: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// The same with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

/// An answer that is JSON, but without what this API has there.
#[must_use]
pub fn other_shape(without: &str) -> Failure {
    let what = format!("the answer is not as this API's: it has no {without}");
    let hint = "is the URL right, and no proxy in between? orl auth status shows the URL";
    Failure::new(Exit::Server, what).hint(hint)
}

/// What to do about an error of the platform.
#[must_use]
pub fn hint_of(status: u16, code: &str) -> Option<&'static str> {
    Some(match code {
        "forbidden" => {
            "orl whoami says what this key may do; use a key of that org with the right role"
        }
        "not_found" => "check the ids, and by orl whoami whether this key may see it",
        "reservation_not_active" => "orl reservations get shows its status and its term",
        "unit_draining" => "a VM is still stopping there: release the unit again once it is gone",
        "units_already_reserved" => "take other units, or a term that begins when these are free",
        "units_lost" => "orl reservations end gives the reservation up",
        "stale_topology" => "orl nodes get shows the topologyGen known: send a higher one",
        "insufficient_capacity" => "orl gpu-availability get shows what is free",
        "vm_not_condemned" => "nobody told this VM to stop: do not confirm it",
        "node_already_registered" => {
            "orl nodes get shows it; orl nodes topology put changes its units"
        }
        "version_mismatch" => {
            "somebody changed it: look with orl reservations get, then decide again"
        }
        "unit_not_reserved" => "orl reservations get shows the units it has",
        "unknown_unit" => "orl nodes get shows the units it has",
        "ends_too_early" => "--ends-at lies after --starts-at and ahead of now",
        "throttled" => "wait a second, then try again",
        "unavailable" => "the outcome is not known: look with get or list before you try again",
        "bad_request" => "--help shows the flags, and an example",
        "internal" => "a fault of the platform: tell whoever runs it the request id",
        _ if status >= 500 => "try again later",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_the_exit_code_that_is_documented() {
        for (status, code) in [
            (400, 2),
            (413, 2),
            (415, 2),
            (422, 2),
            (401, 3),
            (403, 3),
            (404, 4),
            (409, 5),
            (412, 5),
            (429, 6),
            (500, 6),
            (502, 6),
            (503, 6),
            (302, 6),
            (405, 6),
        ] {
            assert_eq!(Exit::of_status(status).code(), code, "{status}");
        }
    }
}
