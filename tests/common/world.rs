//! The smallest cluster that can answer every action truthfully: objects with uids and versions, preconditions,
//! finalizers, tags, and a node that boots what it is given.

use super::{NAMESPACE, NODE, SET, SET_UID};
use cocoon_operator::core::action::{Action, Change, Live, MetaPatch, Question, Want};
use cocoon_operator::core::cocoonset::observed::{Observed, SetFacts};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::{NodeName, Role, agent_vm};
use cocoon_operator::core::outcome::{Answer, Class, Outcome};
use cocoon_operator::core::pod::render::render;
use cocoon_operator::core::pod::template::{Boot, wanted_main, wanted_sub_agent, wanted_toolbox};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is there.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub set: Option<Value>,
    pub pods: BTreeMap<String, Value>,
    pub namespace: Option<Value>,
    pub nodes: BTreeMap<String, Value>,
    /// `vm:tag` to digest.
    pub tags: BTreeMap<String, String>,
    /// Pods that the watch does not show.
    pub hidden: BTreeSet<String>,
    /// Uids of pods whose VMs the node has stopped.
    pub ended: BTreeSet<String>,
    /// Pods that the node does not touch.
    pub frozen: BTreeSet<String>,
    version: u64,
    uids: u64,
}

/// How a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Unbound,
    Booting,
    Ready,
    /// Failed, and no VM is left.
    Failed,
    /// Reported as failed, and the VM runs.
    FailedButRuns,
}

impl World {
    /// One claimed set with this spec, in an active namespace with one ready node.
    pub fn of(spec: Value) -> Self {
        let mut world = Self { version: 100, ..Self::default() };
        world.namespace = Some(json!({ "metadata": { "name": NAMESPACE, "uid": "ns-uid", "resourceVersion": "1" } }));
        world.add_node(NODE, true);
        world.set = Some(json!({
            "apiVersion": keys::API_VERSION, "kind": keys::SET_KIND,
            "metadata": {
                "name": SET, "namespace": NAMESPACE, "uid": SET_UID, "generation": 1, "resourceVersion": "100",
                "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [keys::SET_FINALIZER],
            },
            "spec": spec,
        }));
        world
    }

    pub fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
    pub fn add_node(&mut self, name: &str, ready: bool) {
        let version = self.next_version();
        let status = if ready { "True" } else { "False" };
        let node = json!({
            "metadata": { "name": name, "resourceVersion": version },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        });
        self.nodes.insert(name.to_owned(), node);
    }
    /// Changes the set in place; a changed spec moves the generation.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let version = self.next_version();
        let set = self.set.as_mut().expect("a set");
        let spec = set["spec"].clone();
        change(set);
        if set["spec"] != spec {
            set["metadata"]["generation"] = json!(set["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        set["metadata"]["resourceVersion"] = json!(version);
    }
    /// Marks the set as being deleted, since
    /// stages begin: a deletion that is older is told of.
    pub fn delete_set(&mut self) {
        self.edit(|set| set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:16:40Z"));
    }
    pub fn facts(&self) -> SetFacts {
        SetFacts::of(self.set.as_ref().expect("a set"))
    }
    /// Adds the pod of this role as the operator itself would have created it.
    pub fn add_pod(&mut self, role: &Role, state: State) -> String {
        let mut pod = manifest(&self.facts(), role);
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        self.bear(&mut pod);
        set_state(&mut pod, state);
        self.pods.insert(name.clone(), pod);
        name
    }
    /// Changes a pod in place.
    pub fn edit_pod(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let version = self.next_version();
        let pod = self.pods.get_mut(name).expect("a pod");
        change(pod);
        pod["metadata"]["resourceVersion"] = json!(version);
    }
    pub fn set_state(&mut self, name: &str, state: State) {
        self.edit_pod(name, |pod| set_state(pod, state));
    }
    fn bear(&mut self, pod: &mut Value) {
        self.uids += 1;
        pod["metadata"]["uid"] = json!(format!("pod-uid-{}", self.uids));
        pod["metadata"]["resourceVersion"] = json!(self.next_version());
        pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    }

    /// Answers an action truthfully.
    pub fn answer(&mut self, action: &Action) -> Outcome {
        match &action.want {
            Want::Ask(question) => self.ask(question),
            Want::Change(change) => self.change(change),
            Want::Announce(_) | Want::Wait(_) => Outcome::of(Class::Done),
        }
    }

    fn ask(&self, question: &Question) -> Outcome {
        let found = |object: Option<&Value>| {
            object.map_or_else(|| Outcome::of(Class::NotFound), |object| Outcome::done(object.clone()))
        };
        match question {
            Question::ReadLive(Live::Object) => found(self.set.as_ref()),
            Question::ReadLive(Live::Pod(pod)) => found(self.pods.get(pod)),
            Question::ReadLive(Live::Namespace) => found(self.namespace.as_ref()),
            Question::ReadLive(Live::Node(node)) => found(self.nodes.get(node)),
            Question::ReadLive(Live::Pods) => Outcome {
                answer: Answer::List {
                    items: self.pods.values().cloned().collect(),
                    version: self.version.to_string(),
                    continue_token: String::new(),
                },
                ..Outcome::of(Class::Done)
            },
            Question::ProbeSnapshot { vm, tag } => match self.tags.get(&format!("{vm}:{tag}")) {
                Some(digest) => Outcome {
                    answer: Answer::Snapshot { digest: Some(digest.clone()), base_image: None },
                    ..Outcome::of(Class::Present)
                },
                None => Outcome::of(Class::Absent),
            },
        }
    }

    fn change(&mut self, change: &Change) -> Outcome {
        match change {
            Change::AddFinalizer { tested, finalizers } | Change::RemoveFinalizer { tested, finalizers } => {
                self.finalizers(tested.as_deref(), finalizers)
            }
            Change::PatchObject { annotations, resource_version } => self.set_write(resource_version, |set| {
                merge(&mut set["metadata"], "annotations", annotations);
            }),
            Change::PatchStatus { status, dropped, resource_version } => self.set_write(resource_version, |set| {
                for key in dropped {
                    set["status"].as_object_mut().map(|status| status.remove(key));
                }
                if !set["status"].is_object() {
                    set["status"] = json!({});
                }
                for (key, value) in status.as_object().expect("a status") {
                    set["status"][key] = value.clone();
                }
            }),
            Change::CreatePod { pod, manifest, dry_run } => self.create(pod, manifest, *dry_run),
            Change::DeletePod { pod, uid, resource_version } => self.delete(pod, uid, resource_version.as_deref()),
            Change::PatchPod { pod, uid, patch } => self.patch_pod(pod, uid, patch),
            Change::DeleteSnapshot { vm, tag, .. } => {
                self.tags.remove(&format!("{vm}:{tag}"));
                Outcome::of(Class::Absent)
            }
        }
    }

    fn finalizers(&mut self, tested: Option<&[String]>, finalizers: &[String]) -> Outcome {
        let Some(set) = &self.set else { return Outcome::of(Class::NotFound) };
        if SetFacts::of(set).finalizers.as_deref() != tested {
            return Outcome::of(Class::PreconditionFailed).saying("the test failed");
        }
        self.edit(|set| {
            if finalizers.is_empty() {
                set["metadata"].as_object_mut().expect("metadata").remove("finalizers");
            } else {
                set["metadata"]["finalizers"] = json!(finalizers);
            }
        });
        let after = self.set.clone().expect("a set");
        if finalizers.is_empty() && after["metadata"]["deletionTimestamp"].is_string() {
            self.set = None;
        }
        Outcome::done(after)
    }

    fn set_write(&mut self, version: &str, change: impl FnOnce(&mut Value)) -> Outcome {
        let Some(set) = &self.set else { return Outcome::of(Class::NotFound) };
        if set["metadata"]["resourceVersion"] != version {
            return Outcome::of(Class::Conflict).saying("the object has been modified");
        }
        self.edit(change);
        Outcome::done(self.set.clone().expect("a set"))
    }

    fn create(&mut self, name: &str, manifest: &Value, dry_run: bool) -> Outcome {
        if let Some(there) = self.pods.get(name) {
            let deleting = there["metadata"]["deletionTimestamp"].is_string();
            return Outcome::of(if deleting { Class::AlreadyExistsTerminating } else { Class::AlreadyExists });
        }
        let mut pod = manifest.clone();
        self.bear(&mut pod);
        set_state(&mut pod, State::Unbound);
        if !dry_run {
            self.pods.insert(name.to_owned(), pod.clone());
        }
        Outcome::done(pod)
    }

    fn delete(&mut self, name: &str, uid: &str, version: Option<&str>) -> Outcome {
        let Some(pod) = self.pods.get(name) else { return Outcome::of(Class::NotFound) };
        let meta = &pod["metadata"];
        if meta["uid"] != uid || version.is_some_and(|version| meta["resourceVersion"] != version) {
            return Outcome::of(Class::PreconditionFailed).saying("the precondition does not hold");
        }
        if pod["spec"]["nodeName"].is_string() {
            self.edit_pod(name, |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z"));
            return Outcome::done(self.pods[name].clone());
        }
        Outcome::done(self.pods.remove(name).expect("it is there"))
    }

    fn patch_pod(&mut self, name: &str, uid: &str, patch: &MetaPatch) -> Outcome {
        let Some(pod) = self.pods.get(name) else { return Outcome::of(Class::NotFound) };
        if pod["metadata"]["uid"] != uid {
            return Outcome::of(Class::PreconditionFailed).saying("the uid does not match");
        }
        self.edit_pod(name, |pod| {
            merge(&mut pod["metadata"], "annotations", &patch.annotations);
            merge(&mut pod["metadata"], "labels", &patch.labels);
        });
        Outcome::done(self.pods[name].clone())
    }

    /// Whether the node has something to do.
    pub fn has_work(&self) -> bool {
        let touched = self.pods.iter().filter(|(name, _)| !self.frozen.contains(*name));
        touched
            .map(|(_, pod)| pod)
            .any(|pod| pod["metadata"]["deletionTimestamp"].is_string() || pod["status"]["phase"] == "Pending")
    }
    /// One step of the node: pods that are being deleted go, new ones boot. True where something changed.
    pub fn node_works(&mut self) -> bool {
        let touched: Vec<String> = self.pods.keys().filter(|name| !self.frozen.contains(*name)).cloned().collect();
        let mut changed = false;
        for name in touched {
            let pod = &self.pods[&name];
            if pod["metadata"]["deletionTimestamp"].is_string() {
                self.ended.insert(pod["metadata"]["uid"].to_string());
                self.pods.remove(&name);
                changed = true;
            } else if pod["status"]["phase"] == "Pending" {
                self.set_state(&name, State::Ready);
                changed = true;
            }
        }
        changed
    }
}

/// The pod of this role as the operator itself would create it.
pub fn manifest(set: &SetFacts, role: &Role) -> Value {
    let seen = Observed::of(set.clone(), jiff::Timestamp::UNIX_EPOCH, Duration::ZERO);
    let id = seen.identity();
    let template = match role {
        Role::Main => wanted_main(&set.spec, &id, Boot::Fresh, None),
        Role::SubAgent(slot) => {
            let main = agent_vm(&set.namespace, &set.name, 0);
            wanted_sub_agent(&set.spec, &id, *slot, &main, Some(&NodeName::from(NODE)), Boot::Fresh)
        }
        Role::Toolbox(name) => {
            let listed = set.spec.toolboxes.iter().find(|toolbox| toolbox.name == *name).cloned();
            let toolbox = listed.unwrap_or_else(|| cocoon_operator::core::api::cocoonset::Toolbox {
                name: name.clone(),
                image: "img".to_owned(),
                ..Default::default()
            });
            wanted_toolbox(&set.spec, &id, &toolbox, Boot::Fresh)
        }
        Role::Unknown => panic!("nobody creates such a pod"),
    };
    render(&template, &id)
}

/// Puts a pod into a state, as scheduler, kubelet and node agent would.
pub fn set_state(pod: &mut Value, state: State) {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (phase, ready, lifecycle, vm) = match state {
        State::Unbound | State::Booting => ("Pending", "False", None, false),
        State::Ready => ("Running", "True", Some("ready"), true),
        State::Failed => ("Failed", "False", Some("failed"), false),
        State::FailedButRuns => ("Running", "False", Some("failed"), true),
    };
    if state != State::Unbound {
        pod["spec"]["nodeName"] = json!(NODE);
    }
    pod["status"] = json!({ "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] });
    let generation = pod["metadata"]["annotations"][keys::GENERATION].clone();
    let notes = &mut pod["metadata"]["annotations"];
    if let Some(word) = lifecycle {
        notes[keys::LIFECYCLE_STATE] = json!(word);
        notes[keys::LIFECYCLE_GENERATION] = generation;
    }
    if vm {
        notes[keys::VM_ID] = json!(format!("vm-of-{name}"));
        pod["status"]["containerStatuses"] = json!([{ "state": { "running": {} } }]);
    } else if let Some(notes) = notes.as_object_mut() {
        notes.remove(keys::VM_ID);
    }
}

fn merge(metadata: &mut Value, key: &str, patch: &BTreeMap<String, Option<String>>) {
    if metadata[key].is_null() {
        metadata[key] = json!({});
    }
    for (name, value) in patch {
        match value {
            Some(value) => metadata[key][name] = json!(value),
            None => drop(metadata[key].as_object_mut().map(|map| map.remove(name))),
        }
    }
}
