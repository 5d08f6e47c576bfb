//! A small Kubernetes and its nodes, in one process.
