//! The command line: one file per word.

pub mod crds;
#[cfg(feature = "shell")]
pub mod run;
