//! The list of everything that is counted or timed. There is no other place to add one, and
//! `docs/observability.md` repeats it word for word, which a test holds.

use crate::{Counter, Lag, Level, Times};

/// How the values of a metric go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They add up.
    Counter,
    /// The last one counts.
    Gauge,
    /// They are a distribution.
    Histogram,
}

impl Kind {
    /// Its name in Prometheus text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// What a value is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Its name in CloudWatch.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Count => "Count",
            Unit::Seconds => "Seconds",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name in CloudWatch, in the namespace of the deployment.
    pub name: &'static str,
    /// How its values go together.
    pub kind: Kind,
    /// What they are numbers of.
    pub unit: Unit,
    /// The names of its dimensions.
    pub dimensions: &'static [&'static str],
    /// What it tells, in a sentence.
    pub help: &'static str,
}

impl Metric {
    /// Its name in Prometheus text.
    #[must_use]
    pub fn prometheus_name(&self) -> String {
        let unit = match self.unit {
            Unit::Count => "",
            Unit::Seconds => "_seconds",
        };
        let total = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("relet_{}{unit}{total}", self.name)
    }
}

/// The namespace in CloudWatch, where a deployment does not name its own.
pub const NAMESPACE: &str = "Relet";

/// Most dimensions of a metric.
pub(crate) const DIMENSIONS_MAX: usize = 3;

macro_rules! table {
    ($($id:ident $name:literal $handle:ident [$($dimension:literal)*] $help:literal)*) => {
        $(
            #[doc = $help]
            pub const $id: table!(@type $handle $($dimension)*) = $handle(&Metric {
                name: $name,
                kind: table!(@kind $handle),
                unit: table!(@unit $handle),
                dimensions: &[$($dimension),*],
                help: $help,
            });
        )*

        /// All metrics.
        pub const TABLE: &[&Metric] = &[$($id.metric()),*];
    };
    (@type Level) => { Level };
    (@type Lag) => { Lag };
    (@type $handle:ident) => { $handle<0> };
    (@type $handle:ident $one:literal) => { $handle<1> };
    (@type $handle:ident $one:literal $two:literal $three:literal) => { $handle<3> };
    (@kind Counter) => { Kind::Counter };
    (@kind Times) => { Kind::Histogram };
    (@kind $level:ident) => { Kind::Gauge };
    (@unit Counter) => { Unit::Count };
    (@unit Level) => { Unit::Count };
    (@unit $time:ident) => { Unit::Seconds };
}

table! {
    CALLS "calls" Counter ["function" "operation" "outcome"]
        "Calls answered, by the code of their outcome: ok, or the code of the error."
    CALL_DURATION "call_duration" Times ["function" "operation" "outcome"]
        "Time from a call's arrival at its function to its answer."
    STORE_CONFLICTS "store_conflicts" Counter []
        "Tries of a store request that met another writer on the same item."
    STORE_RETRIES "store_retries" Counter []
        "Further tries of a store request, after a conflict, throttling, a fault or a time-out."
    RACES_LOST "races_lost" Counter []
        "Transactions refused since an item had changed after it was read; each is judged anew."
    EVICTIONS "evictions" Counter []
        "VMs that a change of a reservation condemned, counted as their audit record is written."
    ORDERS_SENT "orders_sent" Counter []
        "Termination orders taken by the queue, repeats included."
    RECLAIM_TO_COMMAND "reclaim_to_command" Times []
        "Time from the change that condemned a VM to its order being taken by the queue."
    RECLAIM_TO_CONFIRMED "reclaim_to_confirmed" Times []
        "Time from the change that condemned a VM to its stop being confirmed."
    TERMINATE_ATTEMPTS "terminate_attempts" Counter ["outcome"]
        "Termination orders worked on, by what came of it."
    DRAINS_OPEN "drains_open" Level []
        "Condemned VMs not gone yet that the last sweep came by."
    STUCK "stuck" Level []
        "Condemned VMs whose stop is overdue that the last sweep came by."
    DUE_LAG "due_lag" Lag []
        "How long the longest due item had been due when the last sweep began."
    DUE_BACKLOG "due_backlog" Level []
        "Due items that the last sweep did not take on or could not finish."
    STREAM_AGE "stream_age" Times []
        "Age of a stream record when it is taken up; records are dated to the second."
    AUDIT_GAPS "audit_gaps" Counter []
        "Gaps recorded in an audit trail in the place of records that were lost."
    AUDIT_TAMPERED "audit_tampered" Counter []
        "Attempts to add an audit record where another one stands."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read_in_both_forms() {
        let word = |text: &str| {
            let letters = text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            letters && !text.is_empty() && text.len() <= 255
        };
        let mut names = Vec::new();
        for metric in TABLE {
            assert!(word(metric.name), "{metric:?}");
            assert!(
                metric.dimensions.iter().all(|name| word(name)),
                "{metric:?}"
            );
            assert!(metric.dimensions.len() <= DIMENSIONS_MAX, "{metric:?}");
            assert!(!metric.help.contains(['\n', '\\', '|']), "{metric:?}");
            // A member of the line that is a metric cannot be a dimension as well.
            let clashes = TABLE.iter().any(|m| m.dimensions.contains(&metric.name));
            assert!(!clashes, "{metric:?}");
            names.push(metric.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len(), "a name is there twice");
    }

    #[test]
    fn names_in_prometheus_say_their_unit() {
        let name = |metric: &Metric| metric.prometheus_name();
        assert_eq!(name(CALLS.metric()), "relet_calls_total");
        assert_eq!(name(CALL_DURATION.metric()), "relet_call_duration_seconds");
        assert_eq!(name(DUE_LAG.metric()), "relet_due_lag_seconds");
        assert_eq!(name(DRAINS_OPEN.metric()), "relet_drains_open");
    }
}
