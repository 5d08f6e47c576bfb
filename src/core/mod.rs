//! What decides. No I/O, no clock, no async, no client: everything comes in through the observation, everything wanted
//! goes out as actions, and nothing here can fail.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::wildcard_enum_match_arm
)]

pub mod action;
mod action_json;
pub mod announcement;
pub mod api;
pub mod call;
pub mod classify;
pub mod cocoonset;
pub mod contract;
pub mod control;
pub mod decide;
pub mod decision;
pub mod fact;
pub mod graph;
pub mod hibernation;
pub mod memory;
pub mod memory_json;
pub mod meta;
pub mod oddity;
pub mod outcome;
pub mod pod;
pub mod recording;
pub mod rule;
pub mod vanished;
pub mod wire;

/// Every rule there is: the kind its controller reconciles, then file by file in the order of its concerns.
pub const RULES: &[(&str, &[&[&rule::Rule]])] =
    &[(contract::keys::SET_KIND, cocoonset::RULES), (contract::keys::HIBERNATION_KIND, &[hibernation::RULES])];

/// Names that rules once had, and what became of each: never given to another rule.
pub const RETIRED: &[(&str, &str)] = &[];
