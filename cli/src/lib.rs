#![doc = include_str!("../README.md")]

pub mod call;
pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod failure;
pub mod manual;
pub mod output;
pub mod prompt;
pub mod reclaim;
pub mod redact;
pub mod run;
pub mod settings;
pub mod watch;
