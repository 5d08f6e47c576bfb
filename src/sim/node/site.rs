//! What an agent works on. The same agents serve the API server of `sim` and a real one.

use crate::core::wire::{Reply, Request, Verb};
use crate::sim::registry::{Asker, Registry};
use crate::sim::store::objects::{as_map, child_mut, stamp, text};
use crate::sim::store::{Store, StoreReply};
use crate::sim::world::Told;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The API server as node agents meet it.
pub trait Server {
    /// Answers one request of this user.
    fn handle_as(&mut self, user: &str, request: &Request) -> StoreReply;
    /// The pod of this uid, as last seen.
    fn pod(&self, uid: &str) -> Option<&Value>;
    /// All pods.
    fn pods(&self) -> Vec<Arc<Value>>;
    /// Whether this node is registered.
    fn has_node(&self, node: &str) -> bool;
    /// A node says how it is: what follows from that is the control plane's business.
    fn node_says(&mut self, node: &str, condition: &NodeCondition<'_>, now: Timestamp);
    /// A node has been silent for as long as the control plane bears it. False where that one notices by itself.
    fn node_is_missed(&mut self, node: &str, now: Timestamp) -> bool;
}

/// The snapshot registry as node agents meet it.
pub trait Snapshots {
    /// Answers one request.
    fn ask(&mut self, verb: Verb, vm: &str, tag: &str) -> Reply;
    /// Puts a snapshot under a tag.
    fn put(&mut self, vm: &str, tag: &str, base_image: Option<&str>);
}

/// A node's Ready condition.
#[derive(Clone, Copy, Debug)]
pub struct NodeCondition<'a> {
    /// `True`, `False`, `Unknown`.
    pub status: &'a str,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
}

/// What an agent works on: the API server, the registry, and who is told about it.
pub struct Site<'a> {
    /// The API server.
    pub server: &'a mut dyn Server,
    /// The registry.
    pub registry: &'a mut dyn Snapshots,
    /// What people are told.
    pub told: &'a mut Vec<Told>,
}

impl Snapshots for Registry {
    fn ask(&mut self, verb: Verb, vm: &str, tag: &str) -> Reply {
        self.call(Asker::Node, verb, vm, tag, None)
    }
    fn put(&mut self, vm: &str, tag: &str, base_image: Option<&str>) {
        self.push(vm, tag, base_image);
    }
}

impl Server for Store {
    fn handle_as(&mut self, user: &str, request: &Request) -> StoreReply {
        Self::handle_as(self, user, request)
    }
    fn pod(&self, uid: &str) -> Option<&Value> {
        self.by_uid(uid)
    }
    fn pods(&self) -> Vec<Arc<Value>> {
        self.objects("pods", None).cloned().map(Arc::new).collect()
    }
    fn has_node(&self, node: &str) -> bool {
        self.get("nodes", "", node).is_some()
    }

    /// The condition, and the taints that the control plane derives from it.
    fn node_says(&mut self, node: &str, condition: &NodeCondition<'_>, now: Timestamp) {
        let now = stamp(now);
        let taint = match condition.status {
            "True" => None,
            "False" => Some(NOT_READY),
            _ => Some(UNREACHABLE),
        };
        self.modify("nodes", "", node, |object| {
            let list = child_mut(object, "status").entry("conditions").or_insert(json!([]));
            let entries = list.as_array().cloned().unwrap_or_default();
            let old = entries.iter().find(|entry| text(entry, "/type") == "Ready");
            let since = old.filter(|old| text(old, "/status") == condition.status);
            let since = since.and_then(|old| old.get("lastTransitionTime")).cloned().unwrap_or_else(|| now.clone());
            *list = json!([{
                "type": "Ready", "status": condition.status, "reason": condition.reason, "message": condition.message,
                "lastTransitionTime": since, "lastHeartbeatTime": since,
            }]);
            let taints = as_map(object).entry("spec").or_insert(json!({}));
            let taints = as_map(taints).entry("taints").or_insert(json!([]));
            if let Some(taints) = taints.as_array_mut() {
                taints.retain(|taint| !matches!(text(taint, "/key"), NOT_READY | UNREACHABLE));
                for effect in taint.map(|_| ["NoSchedule", "NoExecute"]).into_iter().flatten() {
                    taints.push(json!({"key": taint, "effect": effect, "timeAdded": now}));
                }
            }
        });
    }

    fn node_is_missed(&mut self, node: &str, now: Timestamp) -> bool {
        let words = "Kubelet stopped posting node status.";
        let silent = NodeCondition { status: "Unknown", reason: "NodeStatusUnknown", message: words };
        self.node_says(node, &silent, now);
        let here = self.objects("pods", None).filter(|pod| text(pod, "/spec/nodeName") == node);
        let name = |pod: &Value, field: &str| text(pod, &format!("/metadata/{field}")).to_owned();
        let pods: Vec<(String, String)> = here.map(|pod| (name(pod, "namespace"), name(pod, "name"))).collect();
        let now = stamp(now);
        for (namespace, name) in pods {
            self.modify("pods", &namespace, &name, |pod| unready(pod, &now));
        }
        true
    }
}

/// The pod's Ready condition as the control plane sets it for a node that is silent.
fn unready(pod: &mut Value, now: &Value) {
    let list = child_mut(pod, "status").get_mut("conditions").and_then(Value::as_array_mut);
    let ready = list.into_iter().flatten().find(|entry| text(entry, "/type") == "Ready");
    if let Some(condition) = ready.filter(|condition| text(condition, "/status") == "True") {
        condition["status"] = json!("False");
        condition["reason"] = json!("NodeNotReady");
        condition["lastTransitionTime"] = now.clone();
    }
}
