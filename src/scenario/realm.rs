//! The cluster as stories meet it: what they look at, and whom they let do something. The simulated cluster is one; the
//! live stage makes a real one look the same.

use super::given::SettingsGiven;
use crate::core::api::crd::crds;
use crate::core::wire::{Reply, Request};
use crate::sim::faults::Faults;
use crate::sim::node::{NodeSpec, Nodes, Site};
use crate::sim::registry::Registry;
use crate::sim::store::{ADMIN, Resource, Rule};
use crate::sim::world::World;
use serde_json::{Value, json};

/// A cluster that stories are played on.
pub trait Realm {
    /// One object: `get("pods", "ns", "demo-0")`, `get("nodes", "", "node-a")`.
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value>;
    /// All objects of a resource, or those of one namespace, by namespace and name.
    fn all<'a>(&'a self, resource: &'a str, namespace: Option<&'a str>) -> Vec<&'a Value>;
    /// What is served under this version and kind.
    fn served(&self, api_version: &str, kind: &str) -> Option<Resource>;
    /// Answers one request as the cluster's administrator.
    fn ask(&mut self, request: &Request) -> Reply;
    /// Creates a namespace. An existing one stays as it is.
    fn add_namespace(&mut self, name: &str);
    /// Sets the control plane up as a story wants it; an `Err` where it cannot be so.
    fn set_up(&mut self, settings: &SettingsGiven) -> Result<(), String>;
    /// Lets happen what takes no time.
    fn at_once(&mut self);
    /// The nodes.
    fn nodes(&mut self) -> &mut Nodes;
    /// Lets nodes act.
    fn with_nodes<T>(&mut self, act: impl FnOnce(&mut Nodes, &mut Site<'_>) -> T) -> T;
    /// The registry.
    fn registry<T>(&mut self, act: impl FnOnce(&mut Registry) -> T) -> T;
    /// What the operator's requests meet.
    fn faults<T>(&mut self, act: impl FnOnce(&mut Faults) -> T) -> T;
    /// Requests are refused so from now on.
    fn refuse(&mut self, rule: Rule);
    /// Nothing is refused any more.
    fn allow(&mut self);

    /// Adds a node and starts its agent.
    fn add_node(&mut self, spec: NodeSpec) {
        self.with_nodes(|nodes, site| nodes.add(site, spec));
    }
    /// The tags in the registry, as vm:tag.
    fn tags(&mut self) -> Vec<String> {
        self.registry(|registry| registry.tags().map(|(vm, tag, _)| format!("{vm}:{tag}")).collect())
    }
}

impl Realm for World {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.store.get(resource, namespace, name)
    }
    fn all<'a>(&'a self, resource: &'a str, namespace: Option<&'a str>) -> Vec<&'a Value> {
        self.store.objects(resource, namespace).collect()
    }
    fn served(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let found = self.store.resources().find(|one| one.kind == kind && one.api_version() == api_version);
        found.cloned()
    }
    fn ask(&mut self, request: &Request) -> Reply {
        self.api(ADMIN, request)
    }
    fn add_namespace(&mut self, name: &str) {
        self.store.add_namespace(name);
    }

    fn set_up(&mut self, given: &SettingsGiven) -> Result<(), String> {
        let settings = self.store.settings_mut();
        settings.ordered_namespace_deletion = given.ordered_namespace_deletion;
        settings.admission_adds = given.admission_adds.clone();
        settings.admission_strips = given.admission_strips.clone();
        if given.loose_crd {
            loose_crds().iter().for_each(|crd| drop(self.store.install_crd(crd)));
        }
        if given.older_crd {
            older_crds().iter().for_each(|crd| drop(self.store.install_crd(crd)));
        }
        Ok(())
    }

    fn at_once(&mut self) {
        let now = self.now();
        self.run_until(now);
    }
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }
    fn with_nodes<T>(&mut self, act: impl FnOnce(&mut Nodes, &mut Site<'_>) -> T) -> T {
        Self::with_nodes(self, act)
    }
    fn registry<T>(&mut self, act: impl FnOnce(&mut Registry) -> T) -> T {
        act(&mut self.registry)
    }
    fn faults<T>(&mut self, act: impl FnOnce(&mut Faults) -> T) -> T {
        act(&mut self.faults)
    }
    fn refuse(&mut self, rule: Rule) {
        self.store.add_rule(rule);
    }
    fn allow(&mut self) {
        self.store.clear_rules();
    }
}

/// The CRD of the operator before this one knows no `nodeName` in the entries of the status, and no scale subresource
/// with its two fields.
fn older_crds() -> Vec<Value> {
    let mut all: Vec<Value> = crds().into_iter().collect();
    for crd in &mut all {
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        for list in ["agents", "toolboxes"] {
            let entry = crd.pointer_mut(&format!("{status}/{list}/items/properties")).and_then(Value::as_object_mut);
            if let Some(fields) = entry {
                fields.remove("nodeName");
            }
        }
        if let Some(fields) = crd.pointer_mut(status).and_then(Value::as_object_mut) {
            fields.remove("subAgents");
            fields.remove("selector");
        }
        if let Some(subresources) = crd.pointer_mut("/spec/versions/0/subresources").and_then(Value::as_object_mut) {
            subresources.remove("scale");
        }
    }
    all
}

/// Specs are not validated, nor are they between two versions of an object.
fn loose_crds() -> Vec<Value> {
    let mut all: Vec<Value> = crds().into_iter().collect();
    for crd in &mut all {
        if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
            schema["properties"]["spec"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            schema.as_object_mut().into_iter().for_each(|map| drop(map.remove("x-kubernetes-validations")));
        }
    }
    all
}
