//! What there is in the end, without what differs from run to run: uids, versions, times, digests.

use super::NAMESPACE;
use cocoon_operator::sim::world::World;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const KINDS: [&str; 4] =
    ["namespaces", "cocoonsets.cocoonset.cocoonstack.io", "cocoonhibernations.cocoonset.cocoonstack.io", "pods"];
/// What the cluster hands out one after another: another value for every object and every boot.
const COUNTED: [&str; 8] =
    ["uid", "resourceVersion", "vm.cocoonstack.io/id", "vm.cocoonstack.io/ip", "podIP", "podIPs", "vmID", "ip"];

/// The annotation of a writer that was faster.
pub const TOUCHED: &str = "example.test/touched";

/// The objects of the namespace field by field, the tags of the registry, and the VMs of the nodes, each in one line.
pub fn state(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in KINDS {
        for object in world.store.objects(kind, None) {
            let at = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or("");
            if at("namespace") == NAMESPACE || (kind == "namespaces" && at("name") == NAMESPACE) {
                flatten(&format!("{kind} {}", at("name")), &plain(object), &mut lines);
            }
        }
    }
    lines.extend(world.registry.tags().map(|(vm, tag, held)| format!("tag {vm}:{tag} of {:?}", held.base_image)));
    lines.extend(world.nodes.vms().map(|(node, vm, _)| format!("vm {vm} on {node}")));
    lines
}

fn flatten(place: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten(&format!("{place}/{key}"), value, lines));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| flatten(&format!("{place}/{at}"), value, lines));
        }
        leaf => lines.push(format!("{place}: {leaf}")),
    }
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.iter().filter_map(field).collect::<Map<_, _>>()),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        Value::String(text) => string(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn field((key, value): (&String, &Value)) -> Option<(String, Value)> {
    (!COUNTED.contains(&key.as_str()) && key != TOUCHED).then(|| (key.clone(), plain(value)))
}

/// Times are all the same, and what is JSON is looked into.
fn string(text: &str) -> Value {
    if text.parse::<Timestamp>().is_ok() {
        return json!("a time");
    }
    match serde_json::from_str::<Value>(text) {
        Ok(inner @ (Value::Object(_) | Value::Array(_))) => plain(&inner),
        Ok(_) | Err(_) => json!(text),
    }
}

/// What one has and the other has not.
pub fn difference(wanted: &[String], found: &[String]) -> Vec<String> {
    if wanted == found {
        return Vec::new();
    }
    let missing = wanted.iter().filter(|line| !found.contains(line)).map(|line| format!("  - {line}"));
    let new = found.iter().filter(|line| !wanted.contains(line)).map(|line| format!("  + {line}"));
    missing.chain(new).collect()
}
