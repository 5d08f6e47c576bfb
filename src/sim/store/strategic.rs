//! Strategic merge patch: lists of the built-in kinds that merge by key instead of being replaced.

use super::objects::as_map;
use serde_json::{Map, Value};

/// How a list merges.
enum Lists {
    /// Entries are objects with this key.
    Keyed(&'static str),
    /// Entries are values, the list is a set.
    Set,
    /// The patch's list replaces the whole.
    Atomic,
}

/// How the list in this field of the built-in kinds merges. The field's name decides; only `tolerations` and the like,
/// which carry no key, are atomic.
fn lists(field: &str) -> Lists {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "secrets" => Lists::Keyed("name"),
        "ownerReferences" => Lists::Keyed("uid"),
        "conditions" | "addresses" => Lists::Keyed("type"),
        "ports" => Lists::Keyed("containerPort"),
        "volumeMounts" => Lists::Keyed("mountPath"),
        "volumeDevices" => Lists::Keyed("devicePath"),
        "topologySpreadConstraints" => Lists::Keyed("topologyKey"),
        "hostAliases" | "podIPs" | "hostIPs" => Lists::Keyed("ip"),
        "finalizers" | "podCIDRs" => Lists::Set,
        _ => Lists::Atomic,
    }
}

const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if changes.get("$patch").and_then(Value::as_str) == Some("replace") {
        *object = Value::Object(without_directives(changes));
        return;
    }
    let map = as_map(object);
    for (key, change) in changes {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            take_from_set(map, field, change);
        } else if key.starts_with('$') {
            continue;
        } else if change.is_null() || is_deletion(change) {
            map.remove(key);
        } else {
            let current = map.entry(key.clone()).or_insert(Value::Null);
            match (change, current.is_array() || current.is_null()) {
                (Value::Array(list), true) => merge_list(current, list, key),
                _ => merge(current, change),
            }
        }
    }
}

fn without_directives(changes: &Map<String, Value>) -> Map<String, Value> {
    changes.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn is_deletion(change: &Value) -> bool {
    change.get("$patch").and_then(Value::as_str) == Some("delete")
}

fn take_from_set(map: &mut Map<String, Value>, field: &str, gone: &Value) {
    let gone = gone.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(list) = map.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(|entry| !gone.contains(entry));
    }
}

fn merge_list(current: &mut Value, changes: &[Value], field: &str) {
    let mut list = current.as_array().cloned().unwrap_or_default();
    match lists(field) {
        Lists::Atomic => list = changes.to_vec(),
        Lists::Set => {
            for change in changes {
                if !list.contains(change) {
                    list.push(change.clone());
                }
            }
        }
        Lists::Keyed(key) => merge_keyed(&mut list, changes, key),
    }
    *current = Value::Array(list);
}

fn merge_keyed(list: &mut Vec<Value>, changes: &[Value], key: &str) {
    let replaces = |change: &&Value| change.get("$patch").and_then(Value::as_str) == Some("replace");
    if changes.iter().any(|change| replaces(&change)) {
        *list = changes.iter().filter(|change| change.get("$patch").is_none()).cloned().collect();
        return;
    }
    for change in changes {
        let id = change.get(key);
        let found = list.iter().position(|entry| id.is_some() && entry.get(key) == id);
        match (found, is_deletion(change)) {
            (Some(at), true) => {
                list.remove(at);
            }
            (Some(at), false) => {
                if let Some(entry) = list.get_mut(at) {
                    merge(entry, change);
                }
            }
            (None, true) => {}
            (None, false) => {
                let mut entry = Value::Null;
                merge(&mut entry, change);
                list.push(entry);
            }
        }
    }
}
