//! The control loop as data: deterministic machines that are told the time.

pub mod queue;
