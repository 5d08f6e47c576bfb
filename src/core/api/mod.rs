//! The two custom resources, read from whatever the API server returned.

pub mod cocoonset;
pub mod condition;
pub mod crd;
pub mod hibernation;
pub mod quantity;
pub mod reader;
mod schema;
pub mod set_status;
pub mod words;
