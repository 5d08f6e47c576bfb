//! A small Kubernetes and its nodes, in one process.

pub mod store;
