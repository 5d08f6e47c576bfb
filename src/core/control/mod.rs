//! The control loop as data: deterministic machines that are told the time and driven by whoever has sockets, or none.

pub mod backoff;
pub mod bugs;
pub mod election;
pub mod errors;
pub mod flow;
pub mod kinds;
pub mod lease;
pub mod mirror;
pub mod names_index;
pub mod pass;
pub mod queue;
pub mod terms;
pub mod view;
mod view_events;
pub mod wake;
