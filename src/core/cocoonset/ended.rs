//! Whether the VM of a pod that is gone has ended. A pod's end is not its VM's: only the node agent stops a VM, and where
//! nobody saw that it did, the VM may run for as long as its node may, whoever deleted the pod (D-78, decision R18).
//!
//! A VM has ended where the node agent said so (its pod Succeeded once its deletion had begun), or where a live read showed
//! its node Ready once the pod was gone: an agent that runs stops what has no pod. What a watch says of a node is no such
//! evidence, for a watch may stand still; that a node is lost is believed of either.

use super::observed::{NodeSeen, Observed};
use crate::core::contract::keys;
use crate::core::contract::names::{is_node_name, vm_of_pod};
use crate::core::fact::Fact;
use std::collections::BTreeSet;
use std::time::Duration;

/// The taint by which a person says that nothing runs on a node any more.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Between two looks at a lost node that no watch shows to be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The node on which the last VM of this pod may still run, as far as is known without a look: the node is lost,
/// and its loss not accepted.
pub fn lost_node(seen: &Observed, pod: &str) -> Option<String> {
    let node = unended(seen, pod).filter(|node| !seen.set.accepts_loss_of(node))?;
    (standing(seen, node) == Standing::Lost).then(|| node.to_owned())
}

/// Whether nobody saw the last VM of this pod end.
pub fn may_run(seen: &Observed, pod: &str) -> bool {
    unended(seen, pod).is_some()
}

/// Whether it is open what became of the last VM of this pod: nobody saw it end, and its loss is not accepted.
/// Until that is known it is kept, wanted or not, for who wants the name again has to ask (R18).
pub fn is_open(seen: &Observed, pod: &str) -> bool {
    let is_open = |node: &str| match standing(seen, node) {
        // What this process saw itself is marked by a read that ends it; a refused one ends nothing.
        Standing::Up => seen.memory.vanished.contains_key(pod),
        Standing::Lost => !seen.set.accepts_loss_of(node),
        Standing::Unasked => true,
    };
    unended(seen, pod).is_some_and(is_open)
}

/// Pods that the spec does not want and that went while this process did not watch, each with the node to be read:
/// nothing but their entries speaks of them, and nothing else would ever end those.
pub fn strays_unasked(seen: &Observed) -> Vec<(String, String)> {
    let is_stray = |pod: &&str| {
        let vm = seen.set.status.vm_name_of(pod).unwrap_or_default();
        !seen.set.wants_pod(pod) && seen.memory.absent.contains(*pod) && seen.set.records_name(vm)
    };
    let strays = gone_pods(seen).filter(|pod| !seen.memory.vanished.contains_key(*pod)).filter(is_stray);
    strays.filter_map(|pod| Some((pod.to_owned(), unasked_node(seen, pod)?))).collect()
}

/// The node that has to be read live before a VM of this pod's name may be booted again: nobody saw the last one end.
pub fn unasked_node(seen: &Observed, pod: &str) -> Option<String> {
    let node = unended(seen, pod).filter(|node| !seen.set.accepts_loss_of(node))?;
    (standing(seen, node) == Standing::Unasked).then(|| node.to_owned())
}

/// What a person can do about a lost node, in words that can be followed: losses that are accepted already stay so.
pub fn way_out(seen: &Observed, node: &str) -> String {
    let accepted: Vec<&str> = seen.set.accepted_losses().collect();
    let listed: Vec<&str> = accepted.iter().copied().chain([node]).collect();
    let way_out = format!(
        "bring the node back, taint it {OUT_OF_SERVICE}, or annotate {}={}",
        keys::ACCEPT_NODE_LOSS,
        listed.join(",")
    );
    match accepted.as_slice() {
        [] => way_out,
        others => format!("{way_out} (at present it names {}, not {node})", others.join(", ")),
    }
}

/// When to read the node again: where no watch says when it is back.
pub fn look_after(seen: &Observed, node: &str) -> Option<Duration> {
    (!is_shown_lost(seen, node)).then(|| read_lately(seen, node).unwrap_or(LOOK_AGAIN))
}

/// Whether a live read showed this node lost.
pub fn is_lost(read: &Fact<NodeSeen>) -> bool {
    read.known().is_some_and(NodeSeen::is_lost)
}

/// Whether the watch shows it so.
pub fn is_shown_lost(seen: &Observed, node: &str) -> bool {
    seen.node_shown(node).is_some_and(|shown| shown.is_lost())
}

/// Whether a node that the watch shows Ready is so; `None` where it has to be read live first, for a watch may stand still.
pub fn is_ready(seen: &Observed, node: &str) -> Option<bool> {
    match seen.live.nodes.get(node) {
        // Where nodes may not be read, the operator runs on with what it has (decision R26).
        Some(Fact::Known(NodeSeen::Refused)) => Some(true),
        Some(Fact::Known(read)) => Some(read.is_ready()),
        Some(Fact::Unasked | Fact::Unavailable(_)) | None => read_lately(seen, node).map(|_| false),
    }
}

/// For how long yet a live read that showed it lost is believed.
fn read_lately(seen: &Observed, node: &str) -> Option<Duration> {
    let due = seen.memory.lost_nodes.get(node)?.saturating_add(LOOK_AGAIN);
    due.checked_sub(seen.mono).filter(|left| !left.is_zero())
}

/// Nodes that have to be read live before a set is let go.
pub fn all_unasked(seen: &Observed) -> BTreeSet<String> {
    gone_pods(seen).filter_map(|pod| unasked_node(seen, pod)).chain(all_untold(seen)).collect()
}

/// Nodes that are read once, whatever comes of it, so that the last word says what may run there: nothing is held up by
/// them, for their loss is accepted, or the pods of the set are to live on.
pub fn all_untold(seen: &Observed) -> BTreeSet<String> {
    let nodes = gone_pods(seen).filter_map(|pod| unended(seen, pod));
    let is_untold = |node: &&str| standing(seen, node) == Standing::Unasked && !seen.live.nodes.contains_key(*node);
    nodes.filter(is_untold).map(str::to_owned).collect()
}

/// Pods whose VMs may run on lost nodes, each with its node.
pub fn all_lost(seen: &Observed) -> Vec<(String, String)> {
    gone_pods(seen).filter_map(|pod| Some((pod.to_owned(), lost_node(seen, pod)?))).collect()
}

/// The same, accepted losses included.
pub fn all_left(seen: &Observed) -> Vec<(String, String)> {
    let lost = |pod: &str| unended(seen, pod).filter(|node| standing(seen, node) == Standing::Lost);
    gone_pods(seen).filter_map(|pod| Some((pod.to_owned(), lost(pod)?.to_owned()))).collect()
}

/// The name of the VM of a pod that is gone.
pub fn vm_of(seen: &Observed, pod: &str) -> String {
    let listed = seen.set.status.vm_name_of(pod).map(str::to_owned);
    listed.unwrap_or_else(|| vm_of_pod(&seen.set.namespace, pod).to_string())
}

/// Pods that are gone, as far as memory or status speaks of them. Those that exist, under whatever owner or label,
/// are not gone.
fn gone_pods(seen: &Observed) -> impl Iterator<Item = &str> {
    let remembered = seen.memory.vanished.keys().map(String::as_str);
    let names: BTreeSet<&str> = remembered.chain(seen.set.status.pod_names()).collect();
    let live = |pod: &str| seen.live.pods.known().into_iter().flatten().any(|known| known.name == pod);
    names
        .into_iter()
        .filter(move |pod| !seen.pods.contains_key(*pod) && !seen.strangers.contains_key(*pod) && !live(pod))
}

/// Where it ran, unless it is known to have ended.
fn unended<'a>(seen: &'a Observed, pod: &str) -> Option<&'a str> {
    let node = match seen.memory.vanished.get(pod) {
        Some(gone) => gone.node.as_deref().filter(|_| gone.may_run()),
        // Ours, and its end was seen.
        None if seen.memory.deleted.contains_key(pod) => None,
        None => seen.set.status.last_node_of(pod),
    };
    node.filter(|node| is_node_name(node) && was_managed(seen, pod))
}

/// A static toolbox's VM is somebody else's to start and to stop. What counts is what the pod was, for
/// the spec may want another by now; where nobody saw it, its entry tells by the id.
fn was_managed(seen: &Observed, pod: &str) -> bool {
    let suffix = pod.strip_prefix(seen.set.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
    let listed = seen.set.spec.toolboxes.iter().find(|toolbox| Some(toolbox.name.as_str()) == suffix);
    let carried = seen.memory.vanished.get(pod).and_then(|gone| gone.carried.as_ref());
    let entry = seen.set.status.vm_name_of(pod).is_none_or(|vm| seen.is_of_formula(vm));
    let is_its_own = |id: &str| seen.set.status.vm_id_of(pod) != Some(id);
    let was_managed = match carried {
        Some(carried) => carried.fixed.is_none(),
        None => listed.is_none_or(|toolbox| toolbox.is_managed() || is_its_own(&toolbox.static_vm_id)),
    };
    entry && was_managed
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// A live read showed it up.
    Up,
    /// Lost, by a live read or by the watch.
    Lost,
    /// Nothing is known against it, and it was not read live.
    Unasked,
}

fn standing(seen: &Observed, node: &str) -> Standing {
    match seen.live.nodes.get(node) {
        Some(read) if is_lost(read) => Standing::Lost,
        Some(Fact::Known(NodeSeen::There(_))) => Standing::Up,
        _ if is_shown_lost(seen, node) || read_lately(seen, node).is_some() => Standing::Lost,
        // Where nodes may not be read, the operator runs on with what it has (decision R26).
        Some(Fact::Known(NodeSeen::Refused)) => Standing::Up,
        Some(Fact::Known(NodeSeen::Gone) | Fact::Unasked | Fact::Unavailable(_)) | None => Standing::Unasked,
    }
}
