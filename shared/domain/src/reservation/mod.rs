//! Reservations: exclusive placement rights for a set of orgs over units of one node, for a term.

pub mod command;
pub mod decide;
pub mod place;
mod state;

pub use command::{End, Reclaim, Release, Reserve};
pub use decide::{Ended, Victims, end, reclaim, release, reserve, victims};
pub use state::{Relation, Reservation, Status};
