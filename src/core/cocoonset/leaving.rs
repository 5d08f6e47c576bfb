//! What the status of a set says while the set goes, and after we have let it go.

use super::concerns::paused;
use super::observed::Observed;
use super::sitting;
use super::status::{Counts, sub_agents};
use crate::core::api::condition::{self, Condition};
use crate::core::api::set_status::SetStatus;
use crate::core::contract::keys;
use crate::core::decision::Finding;
use crate::core::pod::facts::PodFacts;
use std::collections::BTreeMap;
use std::time::Duration;

/// Finalizers of the garbage collector, which go with the pods.
const COLLECTORS: [&str; 2] = ["foregroundDeletion", "orphan"];

/// Reason of Progressing and Ready once the status speaks of the deletion.
pub const REASON: &str = "Terminating";
/// Reason of Degraded while it waits.
const WAITS: &str = "TeardownWaits";
/// A teardown that waits for longer is told of: a node agent saves a VM and stops it in less.
const USUAL: Duration = Duration::from_secs(120);
/// So many pods are named.
const NAMED: usize = 5;

/// A wait for pods on their way out, told of once it is longer than usual, with who and where they are (D-45, D-51).
pub fn patient(seen: &Observed, finding: Finding, whom: Option<String>, recheck: Option<Duration>) -> Finding {
    let awaited = "the pods to be gone";
    let Some(whom) = whom else { return finding.wait(awaited, recheck) };
    if let Some(left) = patience(seen) {
        return finding.wait(awaited, Some(recheck.map_or(left, |recheck| recheck.min(left))));
    }
    let message = format!(
        "the set is not let go: {whom} still terminating; see that the node agent runs there, and whose finalizers are left"
    );
    finding.trouble(WAITS, message).wait(awaited, recheck)
}

/// Who is waited for. Pods whose node is known not to be Ready are told of with it, and need no second word.
pub fn whom(seen: &Observed, pods: &[&PodFacts]) -> Option<String> {
    let silent: Vec<_> = pods.iter().filter(|pod| sitting::node_trouble(seen, pod).is_none()).collect();
    let mut at: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in silent.iter().take(NAMED) {
        at.entry(pod.node.as_ref().map_or("", |node| node.as_str())).or_default().push(pod.name.as_str());
    }
    let places = at.into_iter().map(|(node, names)| match node {
        "" => names.join(", "),
        node => format!("{} on node {node}", names.join(", ")),
    });
    let more = silent.len().saturating_sub(NAMED);
    let places: Vec<String> = places.chain((more > 0).then(|| format!("{more} more"))).collect();
    let are = if silent.len() == 1 { "is" } else { "are" };
    (!silent.is_empty()).then(|| format!("{} {are}", places.join("; ")))
}

/// How long the deletion may yet take before it is told of, in whole minutes; none once it was. One that was paused began
/// when the pause was over, which is when the status came to speak of it.
fn patience(seen: &Observed) -> Option<Duration> {
    let said = |kind: &str| condition::find(&seen.set.status.conditions, kind);
    let told = format!("{WAITS}: ");
    if said("Degraded").is_some_and(|said| said.is_true() && said.message.contains(&told)) {
        return None;
    }
    let begun = match said("Progressing") {
        Some(said) if said.reason == paused::REASON => Some(seen.now),
        Some(said) if said.reason == REASON => said.last_transition_time.parse().ok().max(seen.set.deleting),
        Some(_) | None => seen.set.deleting,
    };
    let waited = Duration::try_from(seen.now.duration_since(begun?)).unwrap_or_default();
    let minutes = USUAL.checked_sub(waited)?.as_millis().div_ceil(60_000);
    (minutes > 0).then(|| Duration::from_secs(60).saturating_mul(u32::try_from(minutes).unwrap_or(1)))
}

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
