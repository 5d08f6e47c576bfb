//! Clusters, pods and readings that the tests share.

use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::world::{Told, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// When every test begins.
pub fn start() -> Timestamp {
    "2026-08-03T10:00:00Z".parse().expect("a time")
}

/// A cluster with namespace `ns` and these nodes.
pub fn world(nodes: &[&str]) -> World {
    let mut world = World::new(start());
    world.store.add_namespace("ns");
    for node in nodes {
        world.add_node(NodeSpec::named(node));
    }
    pass(&mut world, 0);
    world
}

/// Lets seconds pass.
pub fn pass(world: &mut World, seconds: i64) -> Vec<Told> {
    let until = world.now() + SignedDuration::from_secs(seconds);
    world.run_until(until)
}

/// What happened, as `+seconds actor: text`.
pub fn lines(told: &[Told]) -> Vec<String> {
    let since = |at: Timestamp| at.duration_since(start()).as_secs_f64();
    told.iter().map(|told| format!("+{} {}: {}", since(told.at), told.actor, told.text)).collect()
}

/// A pod as the operator makes them.
pub fn pod(name: &str, more: &[(&str, &str)]) -> Value {
    let mut annotations = json!({
        "vm.cocoonstack.io/name": format!("vk-ns-{name}"), "cocoonset.cocoonstack.io/managed": "true",
        "cocoonset.cocoonstack.io/image": "ghcr.io/x/y:1", "cocoonset.cocoonstack.io/mode": "clone",
        "cocoonset.cocoonstack.io/snapshot-policy": "never", "cocoonset.cocoonstack.io/generation": "1",
    });
    for (key, value) in more {
        annotations[*key] = json!(value);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": 1, "nodeSelector": {"cocoonstack.io/pool": "default"},
            "containers": [{"name": "agent", "image": "ghcr.io/cocoonstack/placeholder:latest"}],
            "tolerations": [
                {"key": "virtual-kubelet.io/provider", "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
        },
    })
}

pub fn status_of(reply: &Reply) -> u16 {
    match reply {
        Reply::Http { status, .. } => *status,
        other => panic!("no HTTP answer: {other:?}"),
    }
}

pub fn create(world: &mut World, pod: Value) {
    let request = Request::new(Method::Post, "/api/v1/namespaces/ns/pods").with_body(JSON, pod);
    let reply = world.api("admin", &request);
    assert_eq!(status_of(&reply), 201, "{reply:?}");
}

pub fn delete(world: &mut World, name: &str) {
    let reply = world.api("admin", &Request::new(Method::Delete, format!("/api/v1/namespaces/ns/pods/{name}")));
    assert_eq!(status_of(&reply), 200, "{reply:?}");
}

pub fn annotate(world: &mut World, name: &str, key: &str, value: Value) {
    let body = json!({"metadata": {"annotations": {key: value}}});
    let request =
        Request::new(Method::Patch, format!("/api/v1/namespaces/ns/pods/{name}")).with_body(MERGE_PATCH, body);
    assert_eq!(status_of(&world.api("admin", &request)), 200);
}

pub fn get<'a>(world: &'a World, name: &str) -> Option<&'a Value> {
    world.store.get("pods", "ns", name)
}

pub fn annotation<'a>(world: &'a World, name: &str, key: &str) -> &'a str {
    let all = get(world, name).and_then(|pod| pod.pointer("/metadata/annotations"));
    all.and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or("")
}

pub fn state<'a>(world: &'a World, name: &str) -> &'a str {
    annotation(world, name, "vm.cocoonstack.io/lifecycle-state")
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object.pointer("/status/conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

pub fn is_ready(world: &World, name: &str) -> bool {
    get(world, name).is_some_and(|pod| condition(pod, "Ready")["status"] == "True")
}
