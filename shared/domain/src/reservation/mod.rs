//! Reservations: exclusive placement rights for a set of orgs over units of one node, for a term.

pub mod command;
pub mod create;
pub mod decide;
pub mod place;
pub mod review;
mod state;
pub mod term;

pub use command::{End, Reaffirm, Reclaim, Release, Reserve};
pub use create::reserve;
pub use decide::{Ended, Victims, end, reclaim, release, victims};
pub use review::reaffirm;
pub use state::{Boundary, Relation, Reservation, Status};
pub use term::{activate, expire};
