#![doc = include_str!("../README.md")]

pub mod batch;
pub mod bootstrap;
pub mod clock;
pub mod config;
pub mod controller;
pub mod function;
pub mod http;
pub mod orders;
pub mod stream;
pub mod sweep;
pub mod telemetry;
pub mod terminate;

pub use bootstrap::Error;
pub use clock::{SystemClock, SystemIds};
pub use function::{Function, FunctionError};
