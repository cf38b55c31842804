#![doc = include_str!("../README.md")]

pub mod agent;
pub mod cli;
pub mod client;
pub mod data;
pub mod demo;
pub mod engine;
pub mod failure;
pub mod fleet;
pub mod gateway;
pub mod keys;
pub mod logs;
pub mod output;
pub mod platform;
pub mod pump;
pub mod queue;
pub mod serve;
