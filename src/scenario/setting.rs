//! Sets the cluster up as a story finds it.

use super::given::{Given, NodeGiven, PodGiven, SetGiven};
use super::pods_given;
use super::requests::OPERATOR_NAMESPACE;
use crate::core::api::crd::crds;
use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::core::control::wake::Key;
use crate::core::meta;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use crate::sim::store::ADMIN;
use crate::sim::world::World;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// When every story begins.
const START: &str = "2026-08-03T12:00:00Z";
/// The nodes of a story that names none.
const NODES: [&str; 2] = ["node-a", "node-b"];
/// How many pods fit on a node where a story does not say.
const FITS: u32 = 256;

/// Who a story is about.
#[derive(Clone, Debug)]
pub struct Cast {
    /// Namespace of everything that names none.
    pub namespace: String,
    /// The first set.
    pub set: String,
    /// The first uid seen under each pod's name.
    pods: BTreeMap<Key, String>,
}

impl Cast {
    /// The cast of a story.
    pub fn of(given: &Given) -> Self {
        let first = given.set.iter().chain(&given.sets).map(|set| meta::text(&set.object, "name")).next();
        Self {
            namespace: given.namespace.clone(),
            set: first.unwrap_or_else(|| "demo".to_owned()),
            pods: BTreeMap::new(),
        }
    }
    /// A set by its name, or NAMESPACE/NAME, or the first one.
    pub fn key(&self, name: Option<&str>) -> Key {
        let name = name.unwrap_or(&self.set);
        match name.split_once('/') {
            Some((namespace, name)) => Key::new(namespace, name),
            None => Key::new(&self.namespace, name),
        }
    }
    /// Takes note of the pods that are there.
    pub fn meet(&mut self, world: &World) {
        for pod in world.store.objects("pods", None) {
            self.pods.entry(Key::of(pod)).or_insert_with(|| meta::text(pod, "uid"));
        }
    }
    /// Whether this pod is not the first of its name.
    pub fn is_another(&self, namespace: &str, name: &str, pod: &Value) -> bool {
        self.pods.get(&Key::new(namespace, name)).is_some_and(|uid| *uid != meta::text(pod, "uid"))
    }
}

/// The kinds that the operator of this story may not watch.
pub fn refused_kinds(given: &Given) -> Vec<Kind> {
    let settings = &given.settings;
    let kinds = [(settings.watch_namespaces, Kind::Namespaces), (settings.watch_nodes, Kind::Nodes)];
    kinds.into_iter().filter(|(may, _)| !may).map(|(_, kind)| kind).collect()
}

/// The cluster as given.
pub fn world(given: &Given) -> Result<World, String> {
    let start: Timestamp = START.parse().map_err(|error| format!("the start: {error}"))?;
    let mut world = World::new(start);
    let settings = world.store.settings_mut();
    settings.ordered_namespace_deletion = given.settings.ordered_namespace_deletion;
    settings.admission_adds = given.settings.admission_adds.clone();
    settings.admission_strips = given.settings.admission_strips.clone();
    if given.settings.older_crd {
        install_older_crd(&mut world);
    }
    if given.settings.loose_crd {
        install_loose_crd(&mut world);
    }
    world.store.add_namespace(&given.namespace);
    if given.settings.leader_election && given.settings.operator_namespace {
        world.store.add_namespace(OPERATOR_NAMESPACE);
    }
    match &given.nodes {
        None => NODES.iter().for_each(|name| add_node(&mut world, name, &NodeGiven::default())),
        Some(nodes) => nodes.iter().for_each(|(name, node)| add_node(&mut world, name, node)),
    }
    settle_nodes(&mut world);
    if !given.quota.is_empty() {
        set_quota(&mut world, &given.namespace, &given.quota)?;
    }
    for tag in &given.tags {
        put_tag(&mut world, tag)?;
    }
    for object in &given.objects {
        create(&mut world, &given.namespace, object)?;
    }
    for set in given.set.iter().chain(&given.sets) {
        create_set(&mut world, &given.namespace, set)?;
    }
    let cast = Cast::of(given);
    for (name, pod) in pods_given::in_order(&given.pods) {
        create_pod(&mut world, &cast, name, pod)?;
    }
    Ok(world)
}

/// The CRD of the operator before this one knows no `nodeName` in the entries of the status, and no scale subresource
/// with its two fields.
fn install_older_crd(world: &mut World) {
    for mut crd in crds() {
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
        world.store.install_crd(&crd);
    }
}

/// Specs are not validated, nor are they between two versions of an object.
fn install_loose_crd(world: &mut World) {
    for mut crd in crds() {
        if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
            schema["properties"]["spec"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            schema.as_object_mut().into_iter().for_each(|map| drop(map.remove("x-kubernetes-validations")));
        }
        // Whoever lets any spec through has no scale either: that subresource insists on a number.
        if let Some(subresources) = crd.pointer_mut("/spec/versions/0/subresources").and_then(Value::as_object_mut) {
            subresources.remove("scale");
        }
        world.store.install_crd(&crd);
    }
}

fn settle_nodes(world: &mut World) {
    let now = world.now();
    world.run_until(now);
}

/// Creates a pod as given, on the cluster's own machinery but in no time.
pub fn create_pod(world: &mut World, cast: &Cast, name: &str, pod: &PodGiven) -> Result<(), String> {
    pods_given::create(world, cast, name, pod).map_err(|error| format!("pod {name}: {error}"))
}

/// Creates a set, or replaces the spec of the one that is there.
pub fn create_set(world: &mut World, namespace: &str, set: &SetGiven) -> Result<(), String> {
    let namespace = namespace_of(&set.object, namespace);
    let name = meta::text(&set.object, "name");
    if world.store.get("namespaces", "", &namespace).is_none() {
        world.store.add_namespace(&namespace);
    }
    let path = format!("/apis/{}/{}/namespaces/{namespace}/cocoonsets", keys::GROUP, keys::VERSION);
    if let Some(present) = world.store.get("cocoonsets.cocoonset.cocoonstack.io", &namespace, &name) {
        let mut next = present.clone();
        for key in ["spec"] {
            if let Some(fields) = next.as_object_mut() {
                fields.insert(key.to_owned(), set.object.get(key).cloned().unwrap_or_default());
            }
        }
        return done(world, Request::new(Method::Put, format!("{path}/{name}")).with_body(JSON, next));
    }
    create(world, &namespace, &set.object)?;
    if let Some(status) = &set.status {
        let patch = json!({ "status": status });
        let request = Request::new(Method::Patch, format!("{path}/{name}/status")).with_body(MERGE_PATCH, patch);
        done(world, request)?;
    }
    Ok(())
}

fn namespace_of(object: &Value, default: &str) -> String {
    let own = meta::text(object, "namespace");
    if own.is_empty() { default.to_owned() } else { own }
}

/// Creates any object, as `kubectl create` does.
pub fn create(world: &mut World, namespace: &str, object: &Value) -> Result<(), String> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let served = world.store.resources().find(|resource| resource.kind == kind && resource.api_version() == version);
    let Some(resource) = served.cloned() else { return Err(format!("the cluster serves no {version} {kind}")) };
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let place =
        if resource.namespaced { format!("/namespaces/{}", namespace_of(object, namespace)) } else { String::new() };
    let path = format!("{root}/{}{place}/{}", resource.version, resource.plural);
    done(world, Request::new(Method::Post, path).with_body(JSON, object.clone()))
}

/// Sends a request as a person; it has to succeed.
pub fn done(world: &mut World, request: Request) -> Result<(), String> {
    let what = format!("{} {}", request.method.as_str(), request.path);
    match world.api(ADMIN, &request) {
        Reply::Http { status, .. } if (200..300).contains(&status) => Ok(()),
        Reply::Http { status, body, .. } => Err(format!("{what}: {status} {}", message(&body))),
        Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => Err(format!("{what}: no answer")),
    }
}

fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    parsed.and_then(|status| status.get("message").and_then(Value::as_str).map(str::to_owned)).unwrap_or(text)
}

/// Sets the quota of a namespace, or takes it away.
pub fn set_quota(world: &mut World, namespace: &str, hard: &BTreeMap<String, String>) -> Result<(), String> {
    let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let one = format!("{path}/limits");
    let present = world.store.get("resourcequotas", namespace, "limits").is_some();
    let object = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "limits", "namespace": namespace },
        "spec": { "hard": hard },
    });
    match (present, hard.is_empty()) {
        (true, true) => done(world, Request::new(Method::Delete, one)),
        (true, false) => {
            let patch = json!([{ "op": "replace", "path": "/spec/hard", "value": hard }]);
            done(world, Request::new(Method::Patch, one).with_body(crate::core::wire::JSON_PATCH, patch))
        }
        (false, true) => Ok(()),
        (false, false) => done(world, Request::new(Method::Post, path).with_body(JSON, object)),
    }?;
    // The quota controller counts before anybody else acts.
    let now = world.now();
    world.run_until(now);
    Ok(())
}

/// A tag appears in the registry.
pub fn put_tag(world: &mut World, tag: &str) -> Result<(), String> {
    let (vm, tag) = tag.rsplit_once(':').ok_or_else(|| format!("\"{tag}\" is no tag; vm:tag is expected"))?;
    world.registry.push(vm, tag, Some(super::given::IMAGE));
    Ok(())
}

fn add_node(world: &mut World, name: &str, node: &NodeGiven) {
    use crate::sim::node::{Effect, Injection, NodeSpec, Step};
    let mut spec = NodeSpec::named(name);
    if let Some(pool) = &node.pool {
        spec.pool = pool.clone();
    }
    spec.capacity_pods = node.pods.unwrap_or(FITS);
    world.add_node(spec);
    let mut takes = |step: Step, duration: Option<Duration>| {
        if let Some(duration) = duration {
            world.nodes.inject(Injection::new(step, Effect::Takes(duration)).on_node(name));
        }
    };
    let boot = node.boot.map(|span| span.duration());
    takes(Step::Boot, boot);
    takes(Step::Clone, boot);
    takes(Step::Remove, node.terminate.map(|span| span.duration()));
    takes(Step::Push, node.push.map(|span| span.duration()));
}
