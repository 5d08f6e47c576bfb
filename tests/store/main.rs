//! What the store does beyond the recorded answers: the platform's own kinds, patches, collections, controllers.

mod admission;
mod bounds;
mod collections;
mod controllers;
mod definitions;
mod events;
mod kinds;
mod laws;
mod patches;
mod scale;
mod versions;

use cocoon_operator::core::wire::{JSON, JSON_PATCH, MERGE_PATCH, Method, Request, STRATEGIC_MERGE_PATCH};
use cocoon_operator::sim::store::{Store, StoreReply};
use jiff::SignedDuration;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn cluster() -> Store {
    let mut store = Store::new("2026-01-01T00:00:00Z".parse().expect("a time"));
    for file in [
        include_str!("../../crds/cocoonset.cocoonstack.io_cocoonsets.yaml"),
        include_str!("../../crds/cocoonset.cocoonstack.io_cocoonhibernations.yaml"),
    ] {
        store.load(file).expect("the definitions are accepted");
    }
    store
}

fn get(store: &mut Store, path: &str) -> StoreReply {
    store.handle(&Request::new(Method::Get, path))
}
fn post(store: &mut Store, path: &str, object: Value) -> StoreReply {
    store.handle(&Request::new(Method::Post, path).with_body(JSON, object))
}
fn put(store: &mut Store, path: &str, object: Value) -> StoreReply {
    store.handle(&Request::new(Method::Put, path).with_body(JSON, object))
}
fn delete(store: &mut Store, path: &str, options: Value) -> StoreReply {
    store.handle(&Request::new(Method::Delete, path).with_body(JSON, options))
}
fn merge(store: &mut Store, path: &str, patch: Value) -> StoreReply {
    store.handle(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, patch))
}
fn strategic(store: &mut Store, path: &str, patch: Value) -> StoreReply {
    store.handle(&Request::new(Method::Patch, path).with_body(STRATEGIC_MERGE_PATCH, patch))
}
fn operations(store: &mut Store, path: &str, patch: Value) -> StoreReply {
    store.handle(&Request::new(Method::Patch, path).with_body(JSON_PATCH, patch))
}
/// The reply's body, which must be a success.
fn sure(reply: &StoreReply) -> Value {
    assert!(reply.is_success(), "{} {}", reply.status, reply.value());
    reply.value().clone()
}
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "img:1"}]},
    })
}
fn bound(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = json!(node);
    pod
}
fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": {"cpu": "8"}}})
}
fn pass(store: &mut Store, seconds: i64) {
    store.advance_to(store.now() + SignedDuration::from_secs(seconds));
}
/// Reason and message of a refusal.
fn refusal(reply: &StoreReply) -> (u16, &str, &str) {
    let text = |field: &str| reply.value().get(field).and_then(Value::as_str).unwrap_or("");
    (reply.status, text("reason"), text("message"))
}
/// The names in a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}
