//! The scenario language: stories about the operator, played on a stage and told.

mod changes;
pub mod claim_forms;
mod claims;
pub mod embedded;
pub mod from_recording;
mod gates;
pub mod given;
pub mod happenings;
mod headlines;
pub mod in_memory;
#[cfg(feature = "live")]
pub mod live;
mod nodes;
pub mod patience;
mod phrases;
mod pods_given;
mod process;
pub mod projection;
pub mod realm;
mod recorded_changes;
pub mod replay;
mod replica;
mod requests;
mod resource;
pub mod ring;
pub mod runner;
pub mod schema;
pub mod script;
pub mod setting;
pub mod stage;
mod standing;
pub mod steps;
pub mod transcript;
mod watching;
pub mod words;
