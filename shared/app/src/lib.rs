//! The use cases: what each function of the platform does, over ports, knowing neither HTTP nor AWS.

pub mod auth;
pub mod error;
pub mod ports;

pub use error::{Error, StoreError};
