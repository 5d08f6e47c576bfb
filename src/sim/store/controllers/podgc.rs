//! The pod garbage collector: pods of nodes that are gone, and terminating pods that never had a node.

use super::super::delete::Options;
use super::super::log::Entry;
use super::super::objects::{Key, child_mut, is_deleting, stamp, text};
use super::super::pods;
use super::{Store, Work};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// How long a node has to be gone before its pods go too.
const QUARANTINE: i64 = 40;
/// How often the collector sweeps.
const PERIOD: i64 = 20;

impl Store {
    pub(super) fn notice_pods(&mut self, entry: &Entry) {
        if entry.key.resource == "nodes" {
            if entry.after.is_none() {
                self.schedule(Work::LostNode(entry.key.name.clone()), SignedDuration::from_secs(QUARANTINE));
            } else if entry.after.as_ref().is_some_and(|node| is_out_of_service(node)) {
                let at = self.round(self.now, PERIOD);
                self.due.add(Work::PodSweep, at);
            }
            return;
        }
        let Some(pod) = &entry.after else { return };
        let node = text(pod, "/spec/nodeName");
        let was = entry.before.as_ref().map_or("", |before| text(before, "/spec/nodeName"));
        if node.is_empty() {
            if is_deleting(pod) && text(pod, "/status/phase") != "Failed" {
                let at = self.round(self.now, PERIOD);
                self.due.add(Work::PodSweep, at);
            }
        } else if node != was && self.get("nodes", "", node).is_none() {
            self.schedule(Work::LostNode(node.to_owned()), SignedDuration::from_secs(QUARANTINE));
        }
    }

    /// Fails and deletes the pods of a node that is still gone.
    pub(super) fn collect_lost_pods(&mut self, node: &str) {
        if self.get("nodes", "", node).is_some() {
            return;
        }
        let lost = |pod: &Value| text(pod, "/spec/nodeName") == node;
        let keys: Vec<Key> =
            self.entries("pods", None).filter(|(_, pod)| lost(pod)).map(|(key, _)| key.clone()).collect();
        let now = stamp(self.now);
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": now,
        });
        for key in keys {
            self.fail_and_delete(&key, Some(&condition));
        }
    }

    /// Fails and deletes terminating pods that were never bound (what holds them are finalizers), and the pods of nodes
    /// that a person has taken out of service.
    pub(super) fn sweep_unbound_pods(&mut self) {
        let stuck = |pod: &Value| match text(pod, "/spec/nodeName") {
            "" => is_deleting(pod),
            node => self.get("nodes", "", node).is_some_and(is_out_of_service),
        };
        let keys: Vec<Key> =
            self.entries("pods", None).filter(|(_, pod)| stuck(pod)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.fail_and_delete(&key, None);
        }
    }

    fn fail_and_delete(&mut self, key: &Key, condition: Option<&Value>) {
        self.modify(&key.resource, &key.namespace, &key.name, |pod| {
            if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
                return;
            }
            if let Some(condition) = condition {
                pods::set_condition(pod, condition.clone());
            }
            child_mut(pod, "status").insert("phase".to_owned(), json!("Failed"));
        });
        if let Some(resource) = self.resource(&key.resource) {
            // Without preconditions nothing but absence can be refused.
            self.delete_object(&resource, key, &Options::with_grace(0)).ok();
        }
    }
}

/// True for a node that is not ready and bears the taint by which a person says that nothing runs there any more.
fn is_out_of_service(node: &Value) -> bool {
    let list = |pointer: &str| node.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ready = |one: &Value| text(one, "/type") == "Ready" && text(one, "/status") == "True";
    list("/spec/taints").iter().any(|taint| text(taint, "/key") == "node.kubernetes.io/out-of-service")
        && !list("/status/conditions").iter().any(ready)
}
