//! Sets the cluster up as a story finds it.

use super::given::{Given, NodeGiven, PodGiven, SetGiven};
use super::pods_given;
use super::realm::Realm;
use super::requests::OPERATOR_NAMESPACE;
use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::core::control::wake::Key;
use crate::core::meta;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
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

/// The text of a story that begins at another time: what it says of times moves with it.
pub fn at(text: &str, start: Timestamp) -> Result<String, String> {
    let began: Timestamp = START.parse().map_err(|error| format!("the start: {error}"))?;
    let later = start.duration_since(began);
    let pattern = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").map_err(|error| error.to_string())?;
    let moved = |found: &regex::Captures<'_>| {
        let time = found[0].parse::<Timestamp>().ok().and_then(|time| time.checked_add(later).ok());
        time.map_or_else(|| found[0].to_owned(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    Ok(pattern.replace_all(text, moved).into_owned())
}

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
    pub fn meet(&mut self, world: &impl Realm) {
        for pod in world.all("pods", None) {
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
    set_up(&mut world, given)?;
    Ok(world)
}

/// Brings a fresh cluster to where a story finds it.
pub fn set_up(world: &mut impl Realm, given: &Given) -> Result<(), String> {
    world.set_up(&given.settings)?;
    world.add_namespace(&given.namespace);
    if given.settings.leader_election && given.settings.operator_namespace {
        world.add_namespace(OPERATOR_NAMESPACE);
    }
    match &given.nodes {
        None => NODES.iter().for_each(|name| add_node(world, name, &NodeGiven::default())),
        Some(nodes) => nodes.iter().for_each(|(name, node)| add_node(world, name, node)),
    }
    world.at_once();
    if !given.quota.is_empty() {
        set_quota(world, &given.namespace, &given.quota)?;
    }
    for tag in &given.tags {
        put_tag(world, tag)?;
    }
    for object in &given.objects {
        create(world, &given.namespace, object)?;
    }
    for set in given.set.iter().chain(&given.sets) {
        create_set(world, &given.namespace, set)?;
    }
    let cast = Cast::of(given);
    for (name, pod) in pods_given::in_order(&given.pods) {
        create_pod(world, &cast, name, pod)?;
    }
    Ok(())
}

/// Creates a pod as given, on the cluster's own machinery but in no time.
pub fn create_pod(world: &mut impl Realm, cast: &Cast, name: &str, pod: &PodGiven) -> Result<(), String> {
    pods_given::create(world, cast, name, pod).map_err(|error| format!("pod {name}: {error}"))
}

/// Creates a set, or replaces the spec of the one that is there.
pub fn create_set(world: &mut impl Realm, namespace: &str, set: &SetGiven) -> Result<(), String> {
    let namespace = namespace_of(&set.object, namespace);
    let name = meta::text(&set.object, "name");
    if world.get("namespaces", "", &namespace).is_none() {
        world.add_namespace(&namespace);
    }
    let path = format!("/apis/{}/{}/namespaces/{namespace}/cocoonsets", keys::GROUP, keys::VERSION);
    if world.get("cocoonsets.cocoonset.cocoonstack.io", &namespace, &name).is_some() {
        // Whatever has been written to it meanwhile: only the spec is the user's.
        let spec = set.object.get("spec").cloned().unwrap_or_default();
        let patch = json!([{ "op": "add", "path": "/spec", "value": spec }]);
        let request = Request::new(Method::Patch, format!("{path}/{name}"));
        return done(world, request.with_body(crate::core::wire::JSON_PATCH, patch));
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
pub fn create(world: &mut impl Realm, namespace: &str, object: &Value) -> Result<(), String> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let Some(resource) = world.served(version, kind) else {
        return Err(format!("the cluster serves no {version} {kind}"));
    };
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let place =
        if resource.namespaced { format!("/namespaces/{}", namespace_of(object, namespace)) } else { String::new() };
    let path = format!("{root}/{}{place}/{}", resource.version, resource.plural);
    done(world, Request::new(Method::Post, path).with_body(JSON, object.clone()))
}

/// Sends a request as a person; it has to succeed.
pub fn done(world: &mut impl Realm, request: Request) -> Result<(), String> {
    let what = format!("{} {}", request.method.as_str(), request.path);
    match world.ask(&request) {
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
pub fn set_quota(world: &mut impl Realm, namespace: &str, hard: &BTreeMap<String, String>) -> Result<(), String> {
    let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let one = format!("{path}/limits");
    let present = world.get("resourcequotas", namespace, "limits").is_some();
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
    world.at_once();
    Ok(())
}

/// A tag appears in the registry.
pub fn put_tag(world: &mut impl Realm, tag: &str) -> Result<(), String> {
    let (vm, tag) = tag.rsplit_once(':').ok_or_else(|| format!("\"{tag}\" is no tag; vm:tag is expected"))?;
    world.registry(|registry| registry.push(vm, tag, Some(super::given::IMAGE)));
    Ok(())
}

fn add_node(world: &mut impl Realm, name: &str, node: &NodeGiven) {
    use crate::sim::node::{Effect, Injection, NodeSpec, Step};
    let mut spec = NodeSpec::named(name);
    if let Some(pool) = &node.pool {
        spec.pool = pool.clone();
    }
    spec.capacity_pods = node.pods.unwrap_or(FITS);
    world.add_node(spec);
    let mut takes = |step: Step, duration: Option<Duration>| {
        if let Some(duration) = duration {
            world.nodes().inject(Injection::new(step, Effect::Takes(duration)).on_node(name));
        }
    };
    let boot = node.boot.map(|span| span.duration());
    takes(Step::Boot, boot);
    takes(Step::Clone, boot);
    takes(Step::Remove, node.terminate.map(|span| span.duration()));
    takes(Step::Push, node.push.map(|span| span.duration()));
}
