//! The command line: one file per word.

pub mod crds;
