//! A set that is being deleted while a VM of it may run on a lost node: held until somebody knows better, and told of.

use super::ended;
use super::observed::Observed;
use crate::core::action::{Live, Question};
use crate::core::decision::Finding;
use crate::core::oddity::many;
use crate::rules;

rules! {
    /// Read the nodes live on which nobody saw a VM of the set end, before it is let go: afterwards nothing says that a VM
    /// may run there.  (D-78, R8, R18)
    ASK_NODES = "teardown/ask-nodes";
    /// Keep the finalizer while a VM of the set may run on a lost node: its tags may still be pushed, and a set of the same
    /// name would boot a second VM beside it. A person can accept the loss.  (D-45, D-78, R18)
    NODE_LOST = "teardown/node-lost";
    /// Say which VMs are left behind on lost nodes, their loss accepted or their pods orphaned: once the set is gone, the
    /// event is all that tells.  (D-78, R18)
    LEFT_BEHIND = "teardown/left-behind";
}

/// The question after one node.
pub(super) fn ask(node: String) -> Finding {
    Finding::of(&ASK_NODES, format!("nobody saw a VM of the set end on node {node}"))
        .ask(Question::ReadLive(Live::Node(node)))
}

/// What holds the set, VM by VM, and what a person can do about it.
pub(super) fn held(seen: &Observed, lost: &[(String, String)]) -> Vec<Finding> {
    let held = lost.iter().map(|(pod, node)| {
        let message = format!("VM {} may still run on node {node}, which is lost", ended::vm_of(seen, pod));
        let told = format!("the set is not let go: {message}; {}", ended::way_out(seen, node));
        Finding::of(&NODE_LOST, message)
            .trouble("NodeLost", told)
            .wait(format!("node {node} to be back"), ended::look_after(seen, node))
    });
    held.collect()
}

/// The last word about VMs that nobody saw end.
pub(super) fn told(seen: &Observed) -> Option<Finding> {
    let left = ended::all_left(seen);
    let listed: Vec<String> =
        left.iter().take(5).map(|(pod, node)| format!("{} on node {node}", ended::vm_of(seen, pod))).collect();
    let message = format!("{} on lost nodes: {}", many(left.len(), "VM may run", "VMs may run"), listed.join(", "));
    (!left.is_empty()).then(|| Finding::of(&LEFT_BEHIND, message.clone()).announce(true, "VMLeftBehind", message))
}
