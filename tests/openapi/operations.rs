//! What each operation does, in words.

use http_api::routes::Operation;

/// The words on one operation.
pub(crate) struct Words {
    /// Under which heading it stands.
    pub(crate) tag: &'static str,
    /// One line.
    pub(crate) summary: &'static str,
    /// What to know before it is called.
    pub(crate) description: &'static str,
}

/// The headings, in the order they are read in.
pub(crate) const TAGS: [(&str, &str); 6] = [
    (
        "Capacity",
        "Sell reserved units a second time, and take them back.",
    ),
    (
        "Reservations",
        "Exclusive rights over units of a node, for a term.",
    ),
    (
        "Market",
        "What is free, and the virtual machines that run on it.",
    ),
    (
        "Nodes",
        "Machines with GPUs, and what their agents report and are told.",
    ),
    ("API keys", "Who may call, and what they may do."),
    ("Service", "About the platform itself."),
];

const fn words(tag: &'static str, summary: &'static str, description: &'static str) -> Words {
    Words {
        tag,
        summary,
        description,
    }
}

/// The words on this one.
pub(crate) fn of(operation: Operation) -> Words {
    capacity(operation)
        .or_else(|| reservations(operation))
        .or_else(|| market(operation))
        .or_else(|| nodes(operation))
        .or_else(|| service(operation))
        .unwrap_or_else(|| unreachable!("{operation:?} has no words"))
}

fn capacity(operation: Operation) -> Option<Words> {
    Some(match operation {
        Operation::ReleaseUnits => words(
            "Capacity",
            "Release GPU units to the spot market",
            "The units stay part of the reservation, and anyone may buy them, at `tier=spot` only: \
             a community or verified request is never placed on them. So they can be reclaimed at \
             any time. Releasing what is released changes nothing. Open to platform operators, to \
             the org that owns the node, and to an org of `managingOrgIds` while the reservation \
             is active and inside its term.",
        ),
        Operation::ReclaimUnits => words(
            "Capacity",
            "Reclaim released GPU units from the spot market",
            "Returns the units to the reservation's exclusive use and terminates the spot VMs on \
             them, in one call and without notice; VMs of another tier are left running. A unit is \
             usable as soon as its VM is confirmed gone. With `dryRun` nothing is changed: the \
             answer says what would be, and its `ETag`, sent as `If-Match`, makes the reclaim do \
             just that or nothing. Open to the same callers as a release.",
        ),
        Operation::EndReservation => words(
            "Capacity",
            "End a reservation now",
            "Returns its units to the public pool at once. Workloads keep running; those that \
             outlive it are the node owner's to stop. Ending it again changes nothing. Open to \
             platform operators alone: to anyone else it is not found.",
        ),
        _ => return None,
    })
}

fn reservations(operation: Operation) -> Option<Words> {
    let (summary, description) = match operation {
        Operation::CreateReservation => (
            "Reserve units of a node",
            "For the orgs of `allowedOrgIds`, from `startsAt`, or now, until `endsAt`, or until it \
             is ended. Units are reserved whole, and no unit twice at any instant. Open to \
             platform operators and to the org that owns the node.",
        ),
        Operation::ListReservations => (
            "List the reservations of a node",
            "Those that the caller may see: an operator and the node's owner all of them, others \
             those in which they have a part.",
        ),
        Operation::GetReservation => (
            "Get a reservation",
            "Its `ETag` is its version: send it as `If-Match` to change it only if nobody else \
             has.",
        ),
        Operation::ReaffirmReservation => (
            "Re-affirm a reservation that needs review",
            "After the node's topology has changed under it, an operator says that it holds for \
             the units as they are now. Open to platform operators alone: to anyone else it is not \
             found.",
        ),
        Operation::ListAuditRecords => (
            "List the audit trail of a reservation",
            "Oldest first, one record for each version and each VM concerned, chained by hashes: \
             nothing can be changed, moved or taken out unnoticed. Open to platform operators, the \
             node's owner and the managing orgs.",
        ),
        Operation::ListOrgReservations => (
            "List the reservations of an org",
            "Those in which it has a part, whatever their nodes.",
        ),
        _ => return None,
    };
    Some(words("Reservations", summary, description))
}

fn market(operation: Operation) -> Option<Words> {
    let (summary, description) = match operation {
        Operation::CreateVm => (
            "Place a VM",
            "On units that are free at its tier, all of one node. `community` and `verified` are \
             placed in the public pool, or on the reservation that is named; `spot` on released \
             units of anyone, or in the pool, and may be terminated without notice.",
        ),
        Operation::ListVms => (
            "List the VMs of an org",
            "In the order that they were made in, those that are gone included.",
        ),
        Operation::GetVm => ("Get a VM", "Open to its org and to platform operators."),
        Operation::TerminateVm => (
            "Terminate a VM",
            "It is told to stop; its units are free once its machine confirms that it is gone. \
             Open to its org and to platform operators; to a managing org for spot VMs on its \
             units; to the node's owner for spot VMs, and for any VM on units that no \
             reservation holds. Terminating it again changes nothing.",
        ),
        Operation::ListAvailability => (
            "List what is free, by GPU model and tier",
            "Counted now, over public pools and released units. A page has at most ten models.",
        ),
        _ => return None,
    };
    Some(words("Market", summary, description))
}

fn nodes(operation: Operation) -> Option<Words> {
    let (summary, description) = match operation {
        Operation::PutNode => (
            "Register a node",
            "With its owner, its GPU model and its units. The same again changes nothing; another \
             owner, model or set of units is refused. Open to platform operators alone.",
        ),
        Operation::GetNode => (
            "Get a node with its units",
            "Who has each unit, and which VM is on it. Open to platform operators and its owner.",
        ),
        Operation::ListNodes => (
            "List nodes",
            "An operator's list has all of them, an org's its own. Units are read node by node.",
        ),
        Operation::PutTopology => (
            "Report the units of a node",
            "All of them, under a higher `topologyGen` than before. A reservation whose units \
             changed needs review: it grants nothing until an operator re-affirms it.",
        ),
        Operation::ListTerminations => (
            "List the VMs that a node is to stop",
            "Read off the state of its units, so that a lost order loses nothing. One page has all \
             of them. Open to platform operators and the node's owner.",
        ),
        Operation::ConfirmTermination => (
            "Confirm that a VM is gone",
            "Said by the node's agent once nothing of the VM runs any more: only then are its \
             units free. Repeats are answered the same way.",
        ),
        _ => return None,
    };
    Some(words("Nodes", summary, description))
}

fn service(operation: Operation) -> Option<Words> {
    let (tag, summary, description) = match operation {
        Operation::CreateKey => (
            "API keys",
            "Make an API key",
            "Its secret is in this answer and never shown again. Without `expiresInSeconds` it is \
             good until it is revoked.",
        ),
        Operation::ListKeys => (
            "API keys",
            "List the API keys of an org",
            "Without their secrets, those that are revoked included.",
        ),
        Operation::RevokeKey => (
            "API keys",
            "Revoke an API key",
            "For good; it is refused everywhere within five seconds. It may be the caller's own.",
        ),
        Operation::GetCaller => (
            "API keys",
            "Get the caller",
            "What the key that is sent belongs to and may do.",
        ),
        Operation::GetHealth => (
            "Service",
            "Get the health of the service",
            "That it answers; it looks at nothing behind.",
        ),
        Operation::GetApiDocument => ("Service", "Get this document", "As it is committed."),
        _ => return None,
    };
    Some(words(tag, summary, description))
}
