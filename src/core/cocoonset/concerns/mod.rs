//! The parts of a set's life, one file each. `ls` of this folder is the feature list.

pub mod claim;
pub mod failure;
pub mod freshness;
pub mod left_alone;
pub mod main_agent;
pub mod namespace;
pub mod oddities;
pub mod paused;
pub mod stamp;
pub mod sub_agents;
pub mod teardown;
pub mod toolboxes;
