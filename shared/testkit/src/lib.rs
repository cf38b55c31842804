#![doc = include_str!("../README.md")]
//!
//! Every module documents itself; nothing of this crate is ever shipped.

pub mod clock;
#[cfg(feature = "runtime-api")]
pub mod door;
pub mod doubles;
#[cfg(feature = "engine")]
pub mod engine;
pub mod events;
pub mod fixtures;
pub mod halt;
#[cfg(feature = "http")]
pub mod http;
pub mod logs;
pub mod memory;
pub mod play;
pub mod random;
#[cfg(feature = "runtime-api")]
pub mod runtime_api;
#[cfg(feature = "runtime-api")]
pub mod services;
#[cfg(feature = "engine")]
pub mod stage;
mod store;
#[cfg(feature = "engine")]
pub mod stream;

pub use clock::{SeededIds, TestClock};
pub use doubles::{RecordingOrders, ScriptedController, Step};
pub use halt::Halt;
pub use memory::{Fault, MemoryStore, World};
pub use play::Play;
pub use random::Rng;
pub use store::Store;
