//! A small Kubernetes and its nodes, in one process.

mod agenda;
pub mod faults;
pub mod node;
pub mod registry;
pub mod scheduler;
pub mod store;
pub mod world;
