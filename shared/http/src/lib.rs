#![doc = include_str!("../README.md")]

pub mod cursor;
pub mod endpoint;
mod event;
pub mod handlers;
mod log;
mod number;
#[cfg(feature = "openapi")]
pub mod openapi;
mod operation;
pub mod problem;
pub mod record;
pub mod request;
pub mod routes;
pub mod view;

pub use cursor::CursorKey;
pub use endpoint::{HttpFunction, Service};
pub use routes::FunctionName;
