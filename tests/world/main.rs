//! The embedded cluster as a whole: VMs, scheduler, lost nodes, deletion, forks.

mod life;
mod setup;
