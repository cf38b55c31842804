//! The rules of Relet, pure: custody of GPU units, what may be released, reclaimed, ended and placed, and who must die.
//!
//! Nothing here waits, reads a clock, draws a random number or knows a store. Every decision is a
//! function from an image and a command to the next image or to a [`Refusal`]; the same functions
//! explain a refused conditional write and serve as the reference model of the tests.

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
pub use reservation::{Reservation, Status};
pub use slot::{Dying, Occupant, Slot, Slots, Tier};
pub use stamp::{Caller, Stamp, WriteId};
pub use time::{Term, Timestamp};
pub use unit_set::UnitSet;
pub use version::Version;
pub use vm::{Vm, VmStatus};
