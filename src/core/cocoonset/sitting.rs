//! What people should know of a pod that is there.

use super::observed::Observed;
use crate::core::decision::Finding;
use crate::core::pod::drift::written_back;
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::PodTemplate;
use crate::rules;

rules! {
    /// Say which node is not Ready and whose VM is on it. Nothing is forced: the VM may run.  (D-45)
    NODE_UNAVAILABLE = "sitting/node-unavailable";
    /// Say that the scheduler finds no node for a pod, in its own words.  (D-42, D-51)
    UNSCHEDULABLE = "sitting/unschedulable";
    /// Say that the node agent writes its own address of a static VM back: only a new pod has another.  (R20)
    RECREATE_NEEDED = "sitting/recreate-needed";
}

/// Conditions of one pod that no action of ours mends.
pub fn troubles(seen: &Observed, pod: &PodFacts, wanted: &PodTemplate) -> Vec<Finding> {
    let mut findings = Vec::new();
    let node = pod.node.as_ref().and_then(|node| Some((node, seen.nodes.as_ref()?.get(node.as_str()))));
    if let Some((node, facts)) = node
        && facts.is_none_or(|facts| !facts.ready)
    {
        let message = format!("node {node} of pod {} is not Ready", pod.name);
        findings.push(Finding::of(&NODE_UNAVAILABLE, message.clone()).trouble("NodeUnavailable", message));
    }
    if let Some(words) = pod.unschedulable.as_ref().filter(|_| pod.node.is_none()) {
        let words = crate::core::oddity::excerpt(words, 300);
        let message = format!("pod {} is unschedulable: {words}", pod.name);
        findings.push(Finding::of(&UNSCHEDULABLE, message.clone()).trouble("Unschedulable", message));
    }
    let fields = written_back(wanted, pod);
    if !fields.is_empty() {
        let message = format!("pod {} keeps its {}: delete it to have the new one", pod.name, fields.join(", "));
        findings.push(Finding::of(&RECREATE_NEEDED, message.clone()).trouble("RecreateNeeded", message));
    }
    findings
}

/// Decision R22: a managed pod under a VM name that is not its own is nobody's to replace.
pub fn is_misnamed(pod: &PodFacts) -> bool {
    pod.managed && pod.accepted_vm_name().is_none()
}
