//! A Kubernetes operator for CocoonSet and CocoonHibernation: a pure core that decides, and a shell that acts.

pub mod core;
#[cfg(feature = "sim")]
pub mod sim;
