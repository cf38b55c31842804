//! The names of operations, as log lines and metrics have them.

use crate::routes::Operation;

impl Operation {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::ReleaseUnits => "ReleaseUnits",
            Operation::ReclaimUnits => "ReclaimUnits",
            Operation::EndReservation => "EndReservation",
            Operation::CreateReservation => "CreateReservation",
            Operation::ListReservations => "ListReservations",
            Operation::GetReservation => "GetReservation",
            Operation::ListAuditRecords => "ListAuditRecords",
            Operation::ListOrgReservations => "ListOrgReservations",
            Operation::ListNodes => "ListNodes",
            Operation::ListAvailability => "ListAvailability",
            Operation::PutNode => "PutNode",
            Operation::GetNode => "GetNode",
            Operation::ListTerminations => "ListTerminations",
            Operation::ConfirmTermination => "ConfirmTermination",
            Operation::CreateVm => "CreateVm",
            Operation::ListVms => "ListVms",
            Operation::GetVm => "GetVm",
            Operation::TerminateVm => "TerminateVm",
            Operation::ReaffirmReservation => "ReaffirmReservation",
            Operation::PutTopology => "PutTopology",
            Operation::CreateKey => "CreateKey",
            Operation::ListKeys => "ListKeys",
            Operation::RevokeKey => "RevokeKey",
            Operation::GetCaller => "GetCaller",
            Operation::GetHealth => "GetHealth",
            Operation::GetApiDocument => "GetApiDocument",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::routes::ROUTES;

    #[test]
    fn an_operation_is_called_what_it_is() {
        for route in ROUTES {
            let operation = route.operation;
            assert_eq!(operation.as_str(), format!("{operation:?}"));
        }
    }
}
