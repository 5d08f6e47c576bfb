//! What an agent writes: lifecycle, id and ip, status, events. Real requests under the node's own user, guarded by the
//! pod's uid (node-agent.md 2, 6; contract 2.2).

use super::{Nodes, Pod, Site, Work, later};
use crate::core::contract::lifecycle::{Lifecycle, State};
use crate::core::contract::{Annotations, int, keys, text as annotation};
use crate::core::wire::{JSON, Method, Request, STRATEGIC_MERGE_PATCH};
use crate::sim::store::StoreReply;
use crate::sim::store::objects::{stamp, text};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// An unsaid state is said again after this long, twice.
const SOON: Duration = Duration::from_millis(500);
/// And from then on every so often.
const LATER: Duration = Duration::from_secs(15);

/// The annotations of an object.
pub(super) fn annotations(object: &Value) -> Annotations {
    let map = object.pointer("/metadata/annotations").and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

impl Pod {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods/{}", self.namespace, self.name)
    }
    fn user(&self) -> String {
        format!("system:node:{}", self.node)
    }
    fn send(&self, site: &mut Site<'_>, request: &Request) -> StoreReply {
        site.server.handle_as(&self.user(), request)
    }
    /// A patch of annotations; null takes one away.
    fn annotate(&self, site: &mut Site<'_>, changes: &Map<String, Value>) -> StoreReply {
        let body = json!({"metadata": {"uid": self.uid, "annotations": changes}});
        self.send(site, &Request::new(Method::Patch, self.path()).with_body(STRATEGIC_MERGE_PATCH, body))
    }
    /// Removes the object at once.
    pub(super) fn remove_object(&self, site: &mut Site<'_>) -> StoreReply {
        self.delete_object(site, Some(0))
    }
    /// Deletes the object, with its own grace where none is given.
    pub(super) fn delete_object(&self, site: &mut Site<'_>, grace: Option<i64>) -> StoreReply {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": self.uid}});
        if let Some(grace) = grace {
            body["gracePeriodSeconds"] = json!(grace);
        }
        self.send(site, &Request::new(Method::Delete, self.path()).with_body(JSON, body))
    }
}

/// True where trying again can help: the object is there, and is that object.
fn may_succeed_later(reply: &StoreReply) -> bool {
    !reply.is_success() && !matches!(reply.status, 404 | 409 | 422)
}

impl Nodes {
    /// States the lifecycle, in one patch, at the generation that the pod carries now. `failed` is not overwritten by
    /// `ready` at the same generation, and a generation never goes down.
    pub(super) fn say(&mut self, site: &mut Site<'_>, uid: &str, state: State, message: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let known = site.server.pod(uid).map_or(0, |object| int(&annotations(object), keys::GENERATION));
        let generation = known.max(pod.lifecycle.observed_generation);
        let sticks = pod.lifecycle.state == State::Failed && matches!(state, State::Ready | State::Hibernated);
        if sticks && generation == pod.lifecycle.observed_generation {
            return;
        }
        pod.lifecycle = Lifecycle { state, observed_generation: generation, message: message.to_owned() };
        pod.unsaid = 0;
        self.flush(site, uid);
    }

    /// Sends the lifecycle as it is; plans another try where that may help.
    fn flush(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let changes = pod.lifecycle.patch().into_iter().map(|(key, value)| (key, Value::from(value))).collect();
        let reply = pod.annotate(site, &changes);
        if may_succeed_later(&reply) {
            pod.unsaid = pod.unsaid.saturating_add(1);
            let after = if pod.unsaid < 3 { SOON } else { LATER };
            self.agenda.plan(Work::Reconcile(uid.to_owned()), later(self.now, after));
        } else {
            pod.unsaid = 0;
        }
    }

    /// Says id and address of the pod's VM; an empty address takes the key away.
    pub(super) fn say_runtime(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some((pod, vm)) = self.pod_and_vm(uid) else { return };
        let ip = if vm.ip.is_empty() { Value::Null } else { json!(vm.ip) };
        let changes = Map::from_iter([(keys::VM_ID.to_owned(), json!(vm.id)), (keys::VM_IP.to_owned(), ip)]);
        let reply = pod.annotate(site, &changes);
        if may_succeed_later(&reply) {
            self.agenda.plan_once(Work::Reconcile(uid.to_owned()), later(self.now, SOON));
        }
    }

    /// Writes one annotation of the agent's own.
    pub(super) fn note(&mut self, site: &mut Site<'_>, uid: &str, key: &str, value: &str) {
        if let Some(pod) = self.pods.get(uid) {
            pod.annotate(site, &Map::from_iter([(key.to_owned(), json!(value))]));
        }
    }

    /// Publishes a status; what the agent does not speak of stays.
    pub(super) fn publish(&mut self, site: &mut Site<'_>, uid: &str, status: Value) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let body = json!({"metadata": {"uid": pod.uid}, "status": status});
        let path = format!("{}/status", pod.path());
        let reply = pod.send(site, &Request::new(Method::Patch, path).with_body(STRATEGIC_MERGE_PATCH, body));
        pod.status = Some(status);
        if may_succeed_later(&reply) {
            self.agenda.plan_once(Work::Reconcile(uid.to_owned()), later(self.now, SOON));
        }
    }

    /// The status of a pod whose VM runs: Ready as the probe and the lifecycle have it.
    pub(super) fn publish_running(&mut self, site: &mut Site<'_>, uid: &str, ready: bool, words: &str) {
        let now = self.now;
        let Some((pod, vm)) = self.pod_and_vm(uid) else { return };
        let was_ready = pod.ready_since.is_some();
        let ip = vm.ip.clone();
        let since = if ready == was_ready { pod.ready_since.unwrap_or(pod.started) } else { now };
        let mut condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": stamp(since)});
        if !words.is_empty() {
            condition["message"] = json!(words);
        }
        let image = text(&pod.object, "/spec/containers/0/image");
        let name = text(&pod.object, "/spec/containers/0/name");
        let mut status = json!({
            "phase": "Running", "reason": null, "message": null, "startTime": stamp(pod.started),
            "conditions": [
                {"type": "Initialized", "status": "True", "lastTransitionTime": stamp(pod.started)},
                condition,
            ],
            "containerStatuses": [{
                "name": name, "image": image, "imageID": "", "ready": ready, "restartCount": 0, "started": true,
                "state": {"running": {"startedAt": stamp(pod.started)}},
            }],
        });
        if !ip.is_empty() {
            status["podIP"] = json!(ip);
            // The list merges by address: without the directive an earlier one would stay, and two of one family are
            // refused.
            status["podIPs"] = json!([{"$patch": "replace"}, {"ip": ip}]);
        }
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.ready_since = ready.then_some(since);
        }
        self.publish(site, uid, status);
    }

    /// The agent's framework says that it could not make the pod.
    pub(super) fn publish_failed_create(&mut self, site: &mut Site<'_>, uid: &str, words: &str) {
        self.publish(site, uid, json!({"phase": "Pending", "reason": "ProviderFailed", "message": words}));
    }

    /// Writes an event about the pod. A refusal is nobody's business.
    pub(super) fn event(&mut self, site: &mut Site<'_>, uid: &str, kind: &str, reason: &str, words: &str) {
        self.events = self.events.saturating_add(1);
        let Some(pod) = self.pods.get(uid) else { return };
        let now = stamp(self.now);
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{}.{:016x}", pod.name, self.events), "namespace": pod.namespace},
            "involvedObject": {
                "kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
            },
            "type": kind, "reason": reason, "message": words, "count": 1, "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": "vk-cocoon", "host": pod.node},
        });
        let path = format!("/api/v1/namespaces/{}/events", pod.namespace);
        pod.send(site, &Request::new(Method::Post, path).with_body(JSON, body));
    }

    /// Says again what was not taken, and what somebody has changed since.
    pub(super) fn reconcile(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid) else { return };
        let Some(object) = site.server.pod(uid) else { return };
        let (unsaid, runtime, status) =
            (pod.unsaid > 0, self.runtime_differs(pod, object), status_differs(pod, object));
        let published = pod.status.clone();
        if unsaid {
            self.flush(site, uid);
        }
        if runtime {
            self.say_runtime(site, uid);
        }
        if let (true, Some(status)) = (status, published) {
            self.publish(site, uid, status);
        }
    }

    /// True where somebody has changed what the agent said.
    pub(super) fn has_drifted(&self, pod: &Pod, object: &Value) -> bool {
        self.runtime_differs(pod, object) || status_differs(pod, object)
    }

    fn runtime_differs(&self, pod: &Pod, object: &Value) -> bool {
        let Some((_, vm)) = self.pod_and_vm(&pod.uid) else { return false };
        let has = annotations(object);
        pod.managed && (annotation(&has, keys::VM_ID) != vm.id || annotation(&has, keys::VM_IP) != vm.ip)
    }
}

/// The agent compares what it speaks of: phase, address, and its own conditions.
fn status_differs(pod: &Pod, object: &Value) -> bool {
    let Some(said) = &pod.status else { return false };
    let same = |pointer: &str| {
        said.pointer(pointer).and_then(Value::as_str).is_none_or(|want| {
            want == object.pointer(&format!("/status{pointer}")).and_then(Value::as_str).unwrap_or("")
        })
    };
    let condition = |status: Option<&Value>, kind: &str| {
        let list = status.and_then(|status| status.get("conditions")).and_then(Value::as_array);
        let one = list.into_iter().flatten().find(|one| text(one, "/type") == kind);
        one.map(|one| text(one, "/status").to_owned())
    };
    let ready = condition(Some(said), "Ready");
    !same("/phase") || !same("/podIP") || (ready.is_some() && ready != condition(object.get("status"), "Ready"))
}
