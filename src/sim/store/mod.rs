//! The API server's store: versions, uids, generations, finalizers, graceful deletion, patches, lists and watches,
//! admission and the controllers of the control plane. Synchronous data without a clock: whoever drives it says what
//! time it is. Built against `tests/facts`, the recorded answers of a real control plane.

mod admission;
mod apply;
mod bounds;
mod cel_check;
mod controllers;
mod crd;
mod crd_errors;
mod crd_names;
mod crd_shape;
mod create;
mod delete;
mod event_rules;
mod events;
mod grammar;
mod list;
mod log;
pub(in crate::sim) mod objects;
mod options;
mod patch;
mod path;
mod pod_errors;
mod pods;
mod quantity;
mod reply;
mod resource;
mod review;
mod scale;
mod schema;
mod selectors;
mod status_error;
mod strategic;
mod typed;
mod update;
mod versions;
mod watch;

pub use admission::rules::{Match, Refusal, Rule};
pub use controllers::{Change, Ran};
pub use objects::Key;
pub use path::About;
pub use reply::{ReplyBody, StoreReply};
pub use resource::{Column, Resource};
pub use review::{Attributes, unreadable};
pub use selectors::Selector;
pub use versions::by_preference;
pub use watch::{Expired, Watch, WatchEvent, WatchKind, WatchQuery};

use crate::core::wire::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The user whom `handle` speaks for; no rule of authorization is meant for it unless it says so.
pub const ADMIN: &str = "admin";

/// The control plane itself: no rule is ever asked about what it does.
const SYSTEM: &str = "system:control-plane";

/// How the control plane behaves where real ones differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Namespace deletion as of Kubernetes 1.33: pods first, everything else once they are gone.
    pub ordered_namespace_deletion: bool,
    /// Whether a new namespace gets its `default` service account.
    pub service_accounts: bool,
    /// How many events the log keeps before the oldest are compacted away.
    pub log_capacity: usize,
    /// What mutating admission merges into every pod that is created, as a strategic merge patch; null for nothing.
    pub admission_adds: Value,
    /// Annotations that mutating admission takes off whatever is patched, by key.
    pub admission_strips: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ordered_namespace_deletion: true,
            service_accounts: true,
            log_capacity: 20_000,
            admission_adds: Value::Null,
            admission_strips: Vec::new(),
        }
    }
}

/// A cluster's state. Cloning it forks the cluster; objects are shared until they are written.
#[derive(Clone, Debug)]
pub struct Store {
    now: Timestamp,
    epoch: Timestamp,
    version: u64,
    uids: u64,
    names: u64,
    resources: BTreeMap<String, Arc<Resource>>,
    objects: BTreeMap<Key, Arc<Value>>,
    by_uid: BTreeMap<String, Key>,
    log: log::Log,
    rules: Vec<Rule>,
    settings: Settings,
    due: controllers::Due,
    /// How often the namespace controller has found something in a namespace that should be gone.
    unexpected: BTreeMap<String, u32>,
}

impl Store {
    /// An empty cluster with the namespaces of every cluster.
    pub fn new(now: Timestamp) -> Self {
        Self::with_settings(now, Settings::default())
    }

    /// The same, with another control plane.
    pub fn with_settings(now: Timestamp, settings: Settings) -> Self {
        let mut store = Self {
            now,
            epoch: now,
            version: 0,
            uids: 0,
            names: 0,
            resources: resource::builtin().into_iter().map(|kind| (kind.qualified(), Arc::new(kind))).collect(),
            objects: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            log: log::Log::default(),
            rules: Vec::new(),
            settings,
            due: controllers::Due::default(),
            unexpected: BTreeMap::new(),
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            store.add_namespace(name);
        }
        for (name, value) in [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)] {
            let class = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            });
            store.post("/apis/scheduling.k8s.io/v1/priorityclasses", class);
        }
        store
    }

    /// Creates a namespace. An existing one stays as it is.
    pub fn add_namespace(&mut self, name: &str) -> StoreReply {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", object)
    }

    /// Installs a CustomResourceDefinition, or replaces the one of this name.
    pub fn install_crd(&mut self, crd: &Value) -> StoreReply {
        use crate::core::wire::{JSON, Method};
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let name = objects::meta(crd, "name");
        let known = self.get(crd::DEFINITIONS, "", name);
        let version = known.map(|known| Value::from(objects::meta(known, "resourceVersion")));
        let mut crd = crd.clone();
        objects::set_meta(&mut crd, "resourceVersion", version.clone().unwrap_or_default());
        if version.is_none() {
            return self.post(path, crd);
        }
        let one = format!("{path}/{}", objects::meta(&crd, "name"));
        objects::set_meta(&mut crd, "uid", Value::Null);
        self.handle_as(SYSTEM, &Request::new(Method::Put, one).with_body(JSON, crd))
    }

    fn post(&mut self, path: &str, object: Value) -> StoreReply {
        use crate::core::wire::{JSON, Method};
        self.handle_as(SYSTEM, &Request::new(Method::Post, path).with_body(JSON, object))
    }

    /// The time that the next requests and controllers see.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time as last set.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The resourceVersion of the last write.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How this control plane behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes how this control plane behaves from now on.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Adds a refusal; rules are asked in the order in which they were added.
    pub fn add_rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Takes all refusals away.
    pub fn clear_rules(&mut self) {
        self.rules.clear();
    }

    /// The refusals in force, to change or remove single ones.
    pub fn rules_mut(&mut self) -> &mut Vec<Rule> {
        &mut self.rules
    }

    /// Answers one request that is not a watch, as the cluster's administrator.
    pub fn handle(&mut self, request: &Request) -> StoreReply {
        self.handle_as(ADMIN, request)
    }

    /// Answers one request that is not a watch, as this user. `system:anonymous` stands for a request without
    /// credentials.
    pub fn handle_as(&mut self, user: &str, request: &Request) -> StoreReply {
        match self.answer(user, request) {
            Ok(reply) => reply,
            Err(status_error::Refused(reply)) => *reply,
        }
    }

    /// One object: `get("pods", "ns", "demo-0")`, `get("widgets.example.test", "ns", "w")`, `get("nodes", "", "n1")`.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&Key::new(events::storage(resource), namespace, name)).map(Arc::as_ref)
    }

    /// The object that has this uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Value> {
        self.by_uid.get(uid).and_then(|key| self.objects.get(key)).map(Arc::as_ref)
    }

    /// All objects of a resource, or those of one namespace, by namespace and name.
    pub fn objects<'a>(&'a self, resource: &'a str, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Value> {
        self.entries(resource, namespace).map(|(_, object)| object.as_ref())
    }

    fn entries<'a>(
        &'a self,
        resource: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let resource = events::storage(resource);
        let from = Key::new(resource, namespace.unwrap_or(""), "");
        self.objects
            .range(from..)
            .take_while(move |(key, _)| key.resource == resource && namespace.is_none_or(|ns| ns == key.namespace))
    }

    /// The resources that are served, once for each of their versions.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values().flat_map(|kind| kind.served_versions())
    }

    fn resource(&self, qualified: &str) -> Option<Arc<Resource>> {
        self.resources.get(qualified).cloned()
    }

    /// Writes an object as a controller of the control plane does: no admission, no rules, only the change. True if
    /// there was one. Generation follows the spec of pods and custom resources.
    pub fn modify(&mut self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let key = Key::new(resource, namespace, name);
        let Some(current) = self.objects.get(&key).cloned() else { return false };
        let mut next = current.as_ref().clone();
        change(&mut next);
        objects::tidy_metadata(&mut next);
        if next == *current {
            return false;
        }
        let keeps_generation = self.resources.get(resource).is_some_and(|kind| kind.generation);
        if keeps_generation && next.get("spec") != current.get("spec") {
            objects::bump_generation(&mut next);
        }
        self.commit(&key, next);
        true
    }

    fn next_uid(&mut self) -> String {
        self.uids = self.uids.saturating_add(1);
        format!("{:08x}-0000-4000-8000-{:012x}", self.uids >> 48, self.uids & 0xffff_ffff_ffff)
    }

    /// The suffix that `generateName` gets: five letters, from a counter and not from chance.
    fn next_suffix(&mut self) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        self.names = self.names.saturating_add(1);
        let mut rest = self.names.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let mut suffix = String::new();
        for _ in 0..5 {
            let at = usize::try_from(rest % 27).unwrap_or(0);
            suffix.push(char::from(LETTERS.get(at).copied().unwrap_or(b'x')));
            rest /= 27;
        }
        suffix
    }
}
