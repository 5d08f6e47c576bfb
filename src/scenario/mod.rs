//! The scenario language: stories about the operator, played on a stage and told.

mod changes;
pub mod claim_forms;
mod claims;
pub mod embedded;
mod gates;
pub mod given;
pub mod happenings;
mod headlines;
pub mod in_memory;
#[cfg(feature = "live")]
pub mod live;
mod nodes;
mod phrases;
mod pods_given;
mod process;
pub mod projection;
pub mod realm;
pub mod replay;
mod replica;
mod requests;
pub mod runner;
pub mod schema;
pub mod script;
pub mod setting;
pub mod stage;
pub mod steps;
pub mod transcript;
mod watching;
pub mod words;
