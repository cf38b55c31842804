#![doc = include_str!("../README.md")]

mod error;
mod expr;
mod item;
mod keys;
mod retry;
mod store;
pub mod stream;
pub mod table;

pub use store::{DynamoStore, Touch, retries, timeouts};
