//! The refusals of each route: those that follow from its row in the table, and its own.

use crate::routes::{Access, BodyRule, Operation, Otherwise, Route};

/// A status with the code that stands behind it.
type Code = (u16, &'static str);

/// What any call may meet that needs a key: that there is none that is good, bugs, and a store that
/// is busy or away.
const KEYED: [Code; 4] = [
    (401, "unauthorized"),
    (429, "throttled"),
    (500, "internal"),
    (503, "unavailable"),
];

/// Every refusal that a call of this route may be answered with, in order of status and code. What
/// is no call of a route, such as another method on its path, is not among them.
#[must_use]
pub fn codes(route: &Route) -> Vec<Code> {
    let mut codes = vec![(400, "bad_request"), (413, "body_too_large")];
    codes.extend(own(route.operation));
    if route.access != Access::Open {
        codes.extend(KEYED);
    }
    if route.body != BodyRule::None {
        codes.push((415, "unsupported_media_type"));
    }
    let of_org = route.path.contains("{orgId}");
    let permitted = matches!(route.access, Access::Permission(_) | Access::Role(_));
    if of_org || (permitted && route.otherwise == Otherwise::Forbidden) {
        codes.push((403, "forbidden"));
    }
    // What cannot be an id is the id of nothing.
    if route.path.contains('{') {
        codes.push((404, "not_found"));
    }
    if route.if_match {
        codes.push((412, "version_mismatch"));
    }
    if route.repeatable {
        codes.push((409, "idempotency_key_in_flight"));
        codes.push((422, "idempotency_key_reused"));
    }
    codes.sort_unstable();
    codes
}

/// The refusals of what the operation itself does.
fn own(operation: Operation) -> &'static [Code] {
    match operation {
        Operation::ReleaseUnits => &[
            (409, "reservation_not_active"),
            (409, "unit_draining"),
            (422, "unit_not_reserved"),
        ],
        Operation::ReclaimUnits => &[(409, "reservation_not_active"), (422, "unit_not_reserved")],
        Operation::EndReservation => &[(409, "reservation_not_active")],
        Operation::CreateReservation => &[
            (409, "limit_reached"),
            (409, "units_already_reserved"),
            (422, "ends_too_early"),
            (422, "unknown_unit"),
        ],
        Operation::ReaffirmReservation => {
            &[(409, "reservation_not_in_review"), (409, "units_lost")]
        }
        Operation::PutNode => &[(409, "node_already_registered")],
        Operation::PutTopology => &[(409, "limit_reached"), (409, "stale_topology")],
        Operation::ConfirmTermination => &[(409, "vm_not_condemned")],
        Operation::CreateVm => &[(409, "insufficient_capacity")],
        Operation::ListReservations
        | Operation::GetReservation
        | Operation::ListAuditRecords
        | Operation::ListOrgReservations
        | Operation::GetNode
        | Operation::ListNodes
        | Operation::ListTerminations
        | Operation::ListVms
        | Operation::GetVm
        | Operation::TerminateVm
        | Operation::ListAvailability
        | Operation::CreateKey
        | Operation::ListKeys
        | Operation::RevokeKey
        | Operation::GetCaller
        | Operation::GetHealth
        | Operation::GetApiDocument => &[],
    }
}
