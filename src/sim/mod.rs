//! A small Kubernetes and its nodes, in one process.

mod agenda;
mod face;
pub mod faults;
pub(crate) mod http;
pub mod node;
pub mod registry;
pub mod scheduler;
pub mod server;
pub mod store;
pub mod world;
