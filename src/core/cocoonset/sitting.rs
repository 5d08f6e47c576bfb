//! What people should know of a pod that is there.

use super::costs::Costed;
use super::observed::Observed;
use super::seat::Seat;
use super::{rebuild, rollout};
use crate::core::decision::Finding;
use crate::core::pod::drift::{FieldDrift, drift_of, must_recreate, written_back};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::PodTemplate;
use crate::core::rule::Rule;
use crate::rules;

rules! {
    /// Say which node is not Ready and whose VM is on it. Nothing is forced: the VM may run.  (D-45)
    NODE_UNAVAILABLE = "sitting/node-unavailable";
    /// Say that the scheduler finds no node for a pod, in its own words.  (D-42, D-51)
    UNSCHEDULABLE = "sitting/unschedulable";
    /// Say that the node agent writes its own address of a static VM back: only a new pod has another.  (R20)
    RECREATE_NEEDED = "sitting/recreate-needed";
}

/// Reason of Degraded while the scheduler finds no node.
pub const UNSCHEDULABLE_REASON: &str = "Unschedulable";

/// A seat with its pod, and how the pod differs from what is wanted there.
pub struct Sitting<'a> {
    /// The seat.
    pub seat: Seat,
    /// Its pod.
    pub pod: &'a PodFacts,
    /// The pod that the spec wants there.
    pub wanted: PodTemplate,
    /// The difference.
    pub drifts: Vec<FieldDrift>,
}

impl<'a> Sitting<'a> {
    /// A seat, its pod, and what is wanted there.
    pub fn of(seat: Seat, pod: &'a PodFacts, wanted: PodTemplate) -> Self {
        let drifts = drift_of(&wanted, pod);
        Self { seat, pod, wanted, drifts }
    }
    /// Whether the pod has to make room for another, in its turn (decision R20): also a failed one whose VM runs.
    pub fn is_outdated(&self, seen: &Observed) -> bool {
        let at_end = rebuild::is_due(seen, &self.seat, self.pod) && !rebuild::is_at_work(seen, self.pod);
        must_recreate(&self.drifts) && !at_end && !is_misnamed(self.pod)
    }
    /// What it needs, whatever the others do; `await_ready` is the rule that waits for it.
    pub fn tend(&self, seen: &Observed, await_ready: &Rule) -> Vec<Costed> {
        let in_place = rollout::in_place(self.pod, &self.wanted, &self.drifts);
        let troubles = troubles(seen, self.pod, &self.wanted);
        let mut findings: Vec<Costed> = in_place.into_iter().chain(troubles).map(Costed::from).collect();
        if is_misnamed(self.pod) {
            return findings;
        }
        findings.extend(rebuild::recovered(self.pod).map(Costed::from));
        if self.is_outdated(seen) {
            return findings;
        }
        if rebuild::is_due(seen, &self.seat, self.pod) {
            findings.push(rebuild::failed(seen, &self.seat, self.pod, &self.wanted, &self.drifts));
        } else if !self.pod.ready && !must_recreate(&self.drifts) {
            findings.push(rebuild::await_ready(seen, &self.seat, self.pod, await_ready).into());
        } else {
            findings.extend(rebuild::forgive(seen, &self.seat, self.pod));
        }
        findings
    }
    /// Replaces it.
    pub fn replace(&self, seen: &Observed) -> Costed {
        rollout::replace(seen, &self.seat, self.pod, &self.wanted, &self.drifts)
    }
    /// Says what its replacement waits for.
    pub fn await_turn(&self, whom: &str) -> Finding {
        rollout::await_turn(self.pod, &self.drifts, whom)
    }
}

/// Whether every pod that is as wanted is Ready.
pub fn others_are_ready(sitting: &[Sitting<'_>]) -> bool {
    sitting.iter().filter(|at| !must_recreate(&at.drifts)).all(|at| at.pod.ready)
}

/// Conditions of one pod that no action of ours mends.
pub fn troubles(seen: &Observed, pod: &PodFacts, wanted: &PodTemplate) -> Vec<Finding> {
    let mut findings: Vec<Finding> = node_trouble(seen, pod).into_iter().collect();
    if let Some(words) = pod.unschedulable.as_ref().filter(|_| pod.node.is_none()) {
        let words = crate::core::oddity::excerpt(words, 300);
        let message = format!("pod {} is unschedulable: {words}", pod.name);
        findings.push(Finding::of(&UNSCHEDULABLE, message.clone()).trouble(UNSCHEDULABLE_REASON, message));
    }
    let fields = written_back(wanted, pod);
    if !fields.is_empty() {
        let message = format!("pod {} keeps its {}: delete it to have the new one", pod.name, fields.join(", "));
        findings.push(Finding::of(&RECREATE_NEEDED, message.clone()).trouble("RecreateNeeded", message));
    }
    findings
}

/// A node that is not Ready under a pod, one on its way out included: nothing ends there while it is not.
pub fn node_trouble(seen: &Observed, pod: &PodFacts) -> Option<Finding> {
    let node = pod.node.as_ref()?;
    if seen.node_shown(node.as_str())?.is_ready() {
        return None;
    }
    let message = format!("node {node} of pod {} is not Ready", pod.name);
    Some(Finding::of(&NODE_UNAVAILABLE, message.clone()).trouble("NodeUnavailable", message))
}

/// Decision R22: a managed pod under a VM name that is not its own is nobody's to replace.
pub fn is_misnamed(pod: &PodFacts) -> bool {
    pod.managed && pod.accepted_vm_name().is_none()
}
