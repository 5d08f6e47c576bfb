//! A Kubernetes operator for CocoonSet and CocoonHibernation: a pure core that decides, and a shell that acts.

#[cfg(feature = "cli")]
pub mod cli;
pub mod core;
#[cfg(feature = "cli")]
mod reading;
#[cfg(feature = "sim")]
pub mod scenario;
#[cfg(feature = "shell")]
pub mod shell;
#[cfg(feature = "sim")]
pub mod sim;
