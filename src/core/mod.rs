//! What decides. No I/O, no clock, no async, no client: everything comes in through the observation, everything wanted
//! goes out as actions, and nothing here can fail.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::wildcard_enum_match_arm
)]

pub mod api;
pub mod contract;
pub mod oddity;
pub mod outcome;
pub mod pod;
pub mod wire;
