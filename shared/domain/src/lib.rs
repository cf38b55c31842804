#![doc = include_str!("../README.md")]

pub mod audit;
pub mod id;
pub mod invariants;
pub mod limits;
pub mod node;
pub mod refusal;
pub mod reservation;
pub mod slot;
pub mod stamp;
pub mod time;
pub mod unit_set;
pub mod version;
pub mod vm;

pub use id::{GpuModelId, KeyId, NodeId, OrgId, ReservationId, UnitId, VmId};
pub use node::{Booking, Node};
pub use refusal::Refusal;
pub use reservation::{Boundary, Reservation, Status};
pub use slot::{Dying, Occupant, Slot, Slots, Tier};
pub use stamp::{Caller, Stamp, WriteId};
pub use time::{Term, Timestamp};
pub use unit_set::UnitSet;
pub use version::Version;
pub use vm::{Vm, VmStatus};
