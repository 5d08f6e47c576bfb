//! kubectl itself against what the sandbox serves: the commands recorded on a real cluster, with their output, their
//! exit codes and the calls that were answered, and more commands of our own, against a sandbox with nodes and operator.
#![cfg(feature = "sim")]

mod binary;
mod mask;
mod own;
mod recorded;
mod served;
mod shapes;
