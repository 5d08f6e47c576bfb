//! What is kept of a pod that is gone.

use super::pod::facts::PodFacts;
use super::pod::template::PodTemplate;
use serde::{Deserialize, Serialize};

/// A pod that went without our delete, or before anybody saw its VM end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vanished {
    /// Its uid.
    pub uid: String,
    /// Where it ran.
    pub node: Option<String>,
    /// Whether it still had a VM id when last seen.
    pub had_vm: bool,
    /// Whether its node agent said that it had stopped the VM.
    pub succeeded: bool,
    /// Whether it had been given up: whoever deletes such a pod asks for another.
    pub given_up: bool,
    /// What its node agent called its VM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vm_id: String,
    /// Whether a live read showed its node Ready once it was gone: then its node agent has stopped the VM.
    pub node_was_ready: Option<bool>,
    /// Whether we deleted it ourselves: that the VM ended is as little said with that (R18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_us: bool,
    /// Whether a live read has confirmed that the name is free.
    pub confirmed: bool,
    /// What it was; unknown where it was not seen.
    pub carried: Option<Box<PodTemplate>>,
}

impl Vanished {
    /// A pod as last seen.
    pub fn of(pod: &PodFacts) -> Self {
        Self {
            uid: pod.uid.to_string(),
            node: pod.node.as_ref().map(ToString::to_string),
            had_vm: pod.has_vm(),
            succeeded: pod.stopped,
            given_up: pod.dead_letter,
            vm_id: pod.runtime.id.clone(),
            node_was_ready: None,
            by_us: false,
            confirmed: pod.deleting,
            carried: Some(Box::new(pod.carries.clone())),
        }
    }
    /// Whether nobody saw its VM end.
    pub fn may_run(&self) -> bool {
        self.had_vm && !self.succeeded && self.node.is_some() && self.node_was_ready != Some(true)
    }
}
