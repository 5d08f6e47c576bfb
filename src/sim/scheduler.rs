//! The scheduler: binds pods that have no node to one that fits, or says why none does.

use super::store::objects::{is_deleting, meta, stamp, text};
use super::store::{Store, WatchEvent, WatchKind};
use super::world::Told;
use crate::core::api::quantity::Quantity;
use crate::core::wire::{JSON, Method, Request, STRATEGIC_MERGE_PATCH};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const USER: &str = "system:kube-scheduler";
const EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

/// When the scheduler has something to do.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    due: Option<Timestamp>,
}

/// Disk space as pods ask for it.
const STORAGE: &str = "ephemeral-storage";

/// What a node has left.
struct Room {
    node: Value,
    pods: i128,
    cpu: i128,
    memory: i128,
    storage: i128,
}

impl Room {
    fn take(&mut self, pod: &Value) {
        self.pods -= NANO;
        self.cpu -= request(pod, "cpu");
        self.memory -= request(pod, "memory");
        self.storage -= request(pod, STORAGE);
    }
}

impl Scheduler {
    /// When it acts next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Takes in what has changed; none where the changes are not known.
    pub(super) fn look(&mut self, pods: Option<&[WatchEvent]>, nodes_changed: bool, now: Timestamp) {
        let matters = |event: &WatchEvent| {
            event.kind == WatchKind::Deleted
                || text(&event.object, "/spec/nodeName").is_empty()
                || finished(&event.object)
        };
        if nodes_changed || pods.is_none_or(|events| events.iter().any(matters)) {
            self.due = Some(now);
        }
    }

    /// Looks at every pod without a node, oldest first; false if nothing was due.
    pub(super) fn run(&mut self, store: &mut Store, told: &mut Vec<Told>) -> bool {
        if self.due.is_none_or(|due| due > store.now()) {
            return false;
        }
        self.due = None;
        let mut waiting: Vec<Value> = store.objects("pods", None).filter(|pod| waits(pod)).cloned().collect();
        waiting.sort_by_cached_key(|pod| {
            let version: u64 = meta(pod, "resourceVersion").parse().unwrap_or(0);
            (meta(pod, "creationTimestamp").to_owned(), version, meta(pod, "name").to_owned())
        });
        let mut rooms = if waiting.is_empty() { Vec::new() } else { rooms(store) };
        for pod in waiting {
            match place(&rooms, &pod) {
                Ok(at) => {
                    let Some(room) = rooms.get_mut(at) else { continue };
                    if bind(store, told, &pod, meta(&room.node, "name")) {
                        room.take(&pod);
                    }
                }
                Err(words) => refuse(store, told, &pod, &words),
            }
        }
        true
    }
}

fn waits(pod: &Value) -> bool {
    text(pod, "/spec/nodeName").is_empty()
        && !is_deleting(pod)
        && !finished(pod)
        && text(pod, "/spec/schedulerName") == "default-scheduler"
}

fn finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
}

/// The place of the best node that fits: most preferred, then most room for pods, then by name.
fn place(rooms: &[Room], pod: &Value) -> Result<usize, String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut may_preempt = 0_usize;
    let mut fitting: Vec<(i64, i128, usize)> = Vec::new();
    for (at, room) in rooms.iter().enumerate() {
        let misfits = misfits(room, pod);
        if misfits.is_empty() {
            fitting.push((-preference(&room.node, pod), -room.pods, at));
        } else if misfits.iter().all(|(_, resource)| *resource) {
            may_preempt += 1;
        }
        for (words, _) in misfits {
            *reasons.entry(words).or_insert(0) += 1;
        }
    }
    let best = fitting.into_iter().min();
    best.map(|(_, _, at)| at).ok_or_else(|| no_node(rooms.len(), &reasons, may_preempt))
}

/// The scheduler's own words.
fn no_node(nodes: usize, reasons: &BTreeMap<String, usize>, may_preempt: usize) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut list: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    list.sort();
    let mut helps = Vec::new();
    if may_preempt > 0 {
        helps.push(format!("{may_preempt} No preemption victims found for incoming pod"));
    }
    if nodes > may_preempt {
        helps.push(format!("{} Preemption is not helpful for scheduling", nodes - may_preempt));
    }
    helps.sort();
    format!(
        "0/{nodes} nodes are available: {}. preemption: 0/{nodes} nodes are available: {}.",
        list.join(", "),
        helps.join(", ")
    )
}

/// Every node by name, less what its pods have asked for.
fn rooms(store: &Store) -> Vec<Room> {
    let mut rooms: BTreeMap<String, Room> = BTreeMap::new();
    for node in store.objects("nodes", None) {
        let of = |resource: &str| amount(node.pointer(&format!("/status/allocatable/{resource}")));
        let (cpu, memory, storage) = (of("cpu"), of("memory"), of(STORAGE));
        let room = Room { node: node.clone(), pods: of("pods"), cpu, memory, storage };
        rooms.insert(meta(node, "name").to_owned(), room);
    }
    for pod in store.objects("pods", None).filter(|pod| !finished(pod)) {
        if let Some(room) = rooms.get_mut(text(pod, "/spec/nodeName")) {
            room.take(pod);
        }
    }
    rooms.into_values().collect()
}

/// Amounts are counted in billionths.
const NANO: i128 = 1_000_000_000;

fn amount(value: Option<&Value>) -> i128 {
    value.and_then(Quantity::read).and_then(|quantity| quantity.nanos()).unwrap_or(0)
}

fn request(pod: &Value, resource: &str) -> i128 {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    containers.iter().map(|container| amount(container.pointer(&format!("/resources/requests/{resource}")))).sum()
}

/// Why a pod does not fit, as the first plugin that refuses says it; whether it is for want of resources.
fn misfits(room: &Room, pod: &Value) -> Vec<(String, bool)> {
    if room.node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        return vec![("node(s) were unschedulable".to_owned(), false)];
    }
    if let Some(taint) = untolerated(&room.node, pod) {
        let shown = format!("{{{}: {}}}", text(taint, "/key"), text(taint, "/value"));
        return vec![(format!("node(s) had untolerated taint {shown}"), false)];
    }
    if !selected(&room.node, pod) || !required(&room.node, pod) {
        return vec![("node(s) didn't match Pod's node affinity/selector".to_owned(), false)];
    }
    let mut short = Vec::new();
    if room.pods < NANO {
        short.push(("Too many pods".to_owned(), true));
    }
    for (resource, left) in [("cpu", room.cpu), ("memory", room.memory), (STORAGE, room.storage)] {
        let wanted = request(pod, resource);
        if wanted > 0 && wanted > left {
            short.push((format!("Insufficient {resource}"), true));
        }
    }
    short
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn untolerated<'a>(node: &'a Value, pod: &Value) -> Option<&'a Value> {
    let tolerates = |toleration: &Value, taint: &Value| {
        let (effect, key) = (text(toleration, "/effect"), text(toleration, "/key"));
        let exists = text(toleration, "/operator") == "Exists";
        (effect.is_empty() || effect == text(taint, "/effect"))
            && ((key.is_empty() && exists) || key == text(taint, "/key"))
            && (exists || text(toleration, "/value") == text(taint, "/value"))
    };
    list(node, "/spec/taints")
        .iter()
        .filter(|taint| EFFECTS.contains(&text(taint, "/effect")))
        .find(|taint| !list(pod, "/spec/tolerations").iter().any(|toleration| tolerates(toleration, taint)))
}

fn label<'a>(node: &'a Value, key: &str) -> Option<&'a str> {
    node.pointer("/metadata/labels").and_then(|labels| labels.get(key)).and_then(Value::as_str)
}

fn selected(node: &Value, pod: &Value) -> bool {
    let wanted = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    wanted.into_iter().flatten().all(|(key, value)| label(node, key) == value.as_str())
}

fn required(node: &Value, pod: &Value) -> bool {
    let place = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    pod.pointer(place).is_none_or(|wanted| list(wanted, "/nodeSelectorTerms").iter().any(|term| fits(node, term)))
}

fn preference(node: &Value, pod: &Value) -> i64 {
    let all = list(pod, "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution");
    let chosen = all.iter().filter(|one| one.get("preference").is_some_and(|term| fits(node, term)));
    chosen.filter_map(|one| one.get("weight").and_then(Value::as_i64)).fold(0, i64::saturating_add)
}

/// Whether a node meets every expression of a term; a term without any is met by none.
fn fits(node: &Value, term: &Value) -> bool {
    let (labels, fields) = (list(term, "/matchExpressions"), list(term, "/matchFields"));
    let by_label = |one: &Value| meets(one, label(node, text(one, "/key")));
    let by_field = |one: &Value| meets(one, Some(meta(node, "name")).filter(|_| text(one, "/key") == "metadata.name"));
    !(labels.is_empty() && fields.is_empty()) && labels.iter().all(by_label) && fields.iter().all(by_field)
}

fn meets(expression: &Value, has: Option<&str>) -> bool {
    let values: BTreeSet<&str> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = |holds: fn(&i64, &i64) -> bool| {
        let wanted = values.first().copied().and_then(number);
        has.and_then(number).zip(wanted).is_some_and(|(has, wanted)| holds(&has, &wanted))
    };
    match text(expression, "/operator") {
        "In" => has.is_some_and(|has| values.contains(has)),
        "NotIn" => has.is_none_or(|has| !values.contains(has)),
        "Exists" => has.is_some(),
        "DoesNotExist" => has.is_none(),
        "Gt" => compared(i64::gt),
        "Lt" => compared(i64::lt),
        _ => false,
    }
}

fn path(pod: &Value) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", meta(pod, "namespace"), meta(pod, "name"))
}

fn tell(store: &Store, told: &mut Vec<Told>, pod: &Value, text: String) {
    let object = format!("{}/{}", meta(pod, "namespace"), meta(pod, "name"));
    told.push(Told { at: store.now(), actor: "scheduler".to_owned(), object, text });
}

fn bind(store: &mut Store, told: &mut Vec<Told>, pod: &Value, node: &str) -> bool {
    let body = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta(pod, "name"), "uid": meta(pod, "uid")},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let request = Request::new(Method::Post, format!("{}/binding", path(pod))).with_body(JSON, body);
    let bound = store.handle_as(USER, &request).is_success();
    if bound {
        tell(store, told, pod, format!("{} is bound to {node}", meta(pod, "name")));
        let place = format!("{}/{}", meta(pod, "namespace"), meta(pod, "name"));
        announce(store, pod, ("Normal", "Scheduled"), &format!("Successfully assigned {place} to {node}"));
    }
    bound
}

fn refuse(store: &mut Store, told: &mut Vec<Told>, pod: &Value, words: &str) {
    let known = list(pod, "/status/conditions").iter().any(|one| {
        text(one, "/type") == "PodScheduled" && text(one, "/status") == "False" && text(one, "/message") == words
    });
    if known {
        return;
    }
    let body = json!({"status": {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words,
        "lastTransitionTime": stamp(store.now()),
    }]}});
    let request = Request::new(Method::Patch, format!("{}/status", path(pod))).with_body(STRATEGIC_MERGE_PATCH, body);
    if store.handle_as(USER, &request).is_success() {
        tell(store, told, pod, format!("{} is unschedulable: {words}", meta(pod, "name")));
        announce(store, pod, ("Warning", "FailedScheduling"), words);
    }
}

/// The event that the scheduler records for a pod. One that is refused is lost, as in a real cluster.
fn announce(store: &mut Store, pod: &Value, (of, reason): (&str, &str), words: &str) {
    let now = store.now();
    let distinct = now.as_nanosecond().saturating_add(i128::from(store.version()));
    let body = json!({
        "apiVersion": "v1", "kind": "Event", "type": of, "reason": reason, "message": words, "action": "Scheduling",
        "metadata": {"name": format!("{}.{distinct:x}", meta(pod, "name")), "namespace": meta(pod, "namespace")},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": meta(pod, "namespace"), "name": meta(pod, "name"),
            "uid": meta(pod, "uid"), "resourceVersion": meta(pod, "resourceVersion"),
        },
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(), "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler", "source": {},
    });
    let path = format!("/api/v1/namespaces/{}/events", meta(pod, "namespace"));
    store.handle_as(USER, &Request::new(Method::Post, path).with_body(JSON, body));
}
