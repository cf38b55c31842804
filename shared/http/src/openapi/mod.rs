//! What the API document is made of beside the route table: the schemas of all bodies, out of the
//! types that read and write them, and the refusals of each route. Only with the feature `openapi`.

mod codes;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::handlers::{capacity, keys, nodes, reservations, vms};
use crate::number::Whole;
use crate::problem::Problem;
use crate::request::{NoFields, Object};
use crate::routes::Operation;
use crate::view::{
    AvailabilityView, CallerView, HealthView, KeyView, MadeKeyView, NodeSummaryView, NodeView,
    PageView, RecordView, ReservationView, TerminationView, VmView,
};

pub use codes::codes;

/// The schema of what an operation reads; `None` where it takes no body.
pub fn request(generator: &mut SchemaGenerator, operation: Operation) -> Option<Schema> {
    let schema = match operation {
        Operation::ReleaseUnits => generator.subschema_for::<capacity::ReleaseBody>(),
        Operation::ReclaimUnits => generator.subschema_for::<capacity::ReclaimBody>(),
        Operation::EndReservation | Operation::ReaffirmReservation => {
            generator.subschema_for::<capacity::ReasonBody>()
        }
        Operation::CreateReservation => generator.subschema_for::<reservations::CreateBody>(),
        Operation::PutNode => generator.subschema_for::<nodes::PutBody>(),
        Operation::PutTopology => generator.subschema_for::<nodes::TopologyBody>(),
        Operation::ConfirmTermination | Operation::TerminateVm => {
            generator.subschema_for::<NoFields>()
        }
        Operation::CreateVm => generator.subschema_for::<vms::CreateBody>(),
        Operation::CreateKey => generator.subschema_for::<keys::CreateBody>(),
        Operation::ListReservations
        | Operation::GetReservation
        | Operation::ListAuditRecords
        | Operation::ListOrgReservations
        | Operation::GetNode
        | Operation::ListNodes
        | Operation::ListTerminations
        | Operation::ListVms
        | Operation::GetVm
        | Operation::ListAvailability
        | Operation::ListKeys
        | Operation::RevokeKey
        | Operation::GetCaller
        | Operation::GetHealth
        | Operation::GetApiDocument => return None,
    };
    Some(schema)
}

/// The schema of what an operation answers when all goes well; `None` where there is no body, or
/// where it is any JSON.
pub fn answer(generator: &mut SchemaGenerator, operation: Operation) -> Option<Schema> {
    let schema = match operation {
        Operation::ReleaseUnits
        | Operation::ReclaimUnits
        | Operation::EndReservation
        | Operation::CreateReservation
        | Operation::GetReservation
        | Operation::ReaffirmReservation => generator.subschema_for::<ReservationView>(),
        Operation::ListReservations | Operation::ListOrgReservations => {
            generator.subschema_for::<PageView<ReservationView>>()
        }
        Operation::ListAuditRecords => generator.subschema_for::<PageView<RecordView>>(),
        Operation::PutNode | Operation::GetNode | Operation::PutTopology => {
            generator.subschema_for::<NodeView>()
        }
        Operation::ListNodes => generator.subschema_for::<PageView<NodeSummaryView>>(),
        Operation::ListTerminations => generator.subschema_for::<PageView<TerminationView>>(),
        Operation::ConfirmTermination
        | Operation::CreateVm
        | Operation::GetVm
        | Operation::TerminateVm => generator.subschema_for::<VmView>(),
        Operation::ListVms => generator.subschema_for::<PageView<VmView>>(),
        Operation::ListAvailability => generator.subschema_for::<PageView<AvailabilityView>>(),
        Operation::CreateKey => generator.subschema_for::<MadeKeyView>(),
        Operation::ListKeys => generator.subschema_for::<PageView<KeyView>>(),
        Operation::GetCaller => generator.subschema_for::<CallerView>(),
        Operation::GetHealth => generator.subschema_for::<HealthView>(),
        Operation::RevokeKey | Operation::GetApiDocument => return None,
    };
    Some(schema)
}

/// The schema of every error's body.
pub fn problem(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Problem>()
}

/// Written as what is in it.
impl<T: JsonSchema> JsonSchema for Object<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Written as any whole number.
impl JsonSchema for Whole {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        u64::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u64::json_schema(generator)
    }
}
