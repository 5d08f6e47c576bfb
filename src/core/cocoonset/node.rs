//! A node, as far as a decision depends on it.

use serde_json::Value;

/// A node, as the watch shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Condition Ready is True.
    pub ready: bool,
    /// It carries the taint `node.kubernetes.io/out-of-service`.
    pub out_of_service: bool,
}

/// What a live read said of a node, or what the watch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSeen {
    /// It is there.
    There(NodeFacts),
    /// It is not.
    Gone,
    /// We may not read nodes.
    Refused,
}

impl NodeSeen {
    /// It is there, and its agent at work.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::There(facts) => facts.ready,
            Self::Gone | Self::Refused => false,
        }
    }
    /// What ran there may run on, and nobody can ask.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::There(facts) => !facts.may_be_up(),
            Self::Gone => true,
            Self::Refused => false,
        }
    }
}

impl NodeFacts {
    /// Nobody has to fear for what ran there: its agent is at work, or a person says that nothing runs there any more.
    pub fn may_be_up(&self) -> bool {
        self.ready || self.out_of_service
    }
    /// Reads a node. Total.
    pub fn of(object: &Value) -> Self {
        let list = |path: &str| object.pointer(path).and_then(Value::as_array).into_iter().flatten();
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            ready: list("/status/conditions")
                .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True"),
            out_of_service: list("/spec/taints").any(|taint| text(taint, "key") == "node.kubernetes.io/out-of-service"),
        }
    }
}
