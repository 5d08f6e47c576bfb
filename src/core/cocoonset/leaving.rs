//! What the status of a set says while the set goes, and after we have let it go.

use super::observed::Observed;
use super::status::{Counts, sub_agents};
use crate::core::api::condition::{self, Condition};
use crate::core::api::set_status::SetStatus;
use crate::core::contract::keys;

/// Finalizers of the garbage collector, which go with the pods.
const COLLECTORS: [&str; 2] = ["foregroundDeletion", "orphan"];

/// The set is being deleted, and is still there when our finalizer goes: somebody else's keeps it.
pub fn outlives_us(seen: &Observed) -> bool {
    let theirs = |entry: &String| entry != keys::SET_FINALIZER && !COLLECTORS.contains(&entry.as_str());
    seen.set.deleting.is_some() && seen.set.finalizers.iter().flatten().any(theirs)
}

/// It outlives us, and its status does not say yet which of its pods are gone (decision R10).
pub fn misleads(seen: &Observed) -> bool {
    let mut status = seen.set.status.clone();
    follow(seen, &mut status);
    let is_ready = condition::find(&status.conditions, "Ready").is_some_and(Condition::is_true);
    outlives_us(seen) && (is_ready || status != seen.set.status)
}

/// The counts that follow the pods, downwards only: a pod that no watch shows would come and go with each look. What is
/// wanted, phase and entries stay.
pub fn follow(seen: &Observed, status: &mut SetStatus) {
    let counts = Counts::of(seen);
    status.ready_agents = status.ready_agents.min(counts.ready_agents);
    status.ready_toolboxes = status.ready_toolboxes.min(counts.ready_toolboxes);
    status.sub_agents = status.sub_agents.map(|count| count.min(sub_agents(seen)));
}
