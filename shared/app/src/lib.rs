#![doc = include_str!("../README.md")]

pub mod auth;
pub mod availability;
pub mod capacity;
pub mod context;
pub mod end;
pub mod error;
pub mod grant;
pub mod idempotency;
pub mod keys;
mod market;
pub mod nodes;
pub mod org_reservations;
pub mod ports;
mod race;
pub mod react;
pub mod reclaim;
pub mod release;
pub mod reservations;
pub mod settle;
pub mod sweep;
pub mod terminate;
pub mod terms;
pub mod topology;
pub mod trail;
pub mod vms;

pub use context::Context;
pub use error::{Error, StoreError};
