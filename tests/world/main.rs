//! The embedded cluster as a whole: VMs, scheduler, lost nodes, deletion, forks, faults, and all of it behind HTTP.

mod faults;
mod life;
mod nodes;
mod served;
mod setup;
