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

/// Merges a patch into an object; fails in the server's words.
pub(super) fn merge(object: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    if changes.get("$patch").and_then(Value::as_str) == Some("replace") {
        *object = Value::Object(without_directives(changes));
        return Ok(());
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
                (Value::Array(list), true) => merge_list(current, list, key)?,
                _ => merge(current, change)?,
            }
        }
    }
    Ok(())
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

fn merge_list(current: &mut Value, changes: &[Value], field: &str) -> Result<(), String> {
    let list = current.as_array().cloned().unwrap_or_default();
    let merged = match lists(field) {
        Lists::Atomic => changes.to_vec(),
        Lists::Set => in_order(&list, changes.to_vec(), &|entry| Some(entry)),
        Lists::Keyed(key) => merge_keyed(list, changes, key)?,
    };
    *current = Value::Array(merged);
    Ok(())
}

/// The entries that a patch names, and the others, in the server's order: what is new comes before what follows.
fn in_order(old: &[Value], named: Vec<Value>, id: &dyn Fn(&Value) -> Option<&Value>) -> Vec<Value> {
    let place = |entry: &Value| old.iter().position(|other| id(other) == id(entry));
    let is_named = |entry: &&Value| named.iter().any(|other| id(other) == id(entry));
    let mut others: Vec<Value> = old.iter().filter(|entry| !is_named(entry)).cloned().collect();
    others.reverse();
    let mut merged = Vec::new();
    for entry in named {
        if let Some(at) = place(&entry) {
            while let Some(other) = others.pop_if(|other| place(other).is_some_and(|before| before < at)) {
                merged.push(other);
            }
        }
        merged.push(entry);
    }
    merged.extend(others.into_iter().rev());
    merged
}

fn merge_keyed(list: Vec<Value>, changes: &[Value], key: &str) -> Result<Vec<Value>, String> {
    let replaces = |change: &&Value| change.get("$patch").and_then(Value::as_str) == Some("replace");
    if changes.iter().any(|change| replaces(&change)) {
        return Ok(changes.iter().filter(|change| change.get("$patch").is_none()).cloned().collect());
    }
    let mut kept = list.clone();
    let mut named = Vec::new();
    for change in changes {
        let Some(id) = change.get(key) else {
            return Err(format!("map: {} does not contain declared merge key: {key}", in_go(change)));
        };
        if is_deletion(change) {
            kept.retain(|entry| entry.get(key) != Some(id));
            continue;
        }
        let mut entry = list.iter().find(|entry| entry.get(key) == Some(id)).cloned().unwrap_or(Value::Null);
        merge(&mut entry, change)?;
        named.push(entry);
    }
    Ok(in_order(&kept, named, &|entry| entry.get(key)))
}

/// A value as Go prints it.
pub(super) fn in_go(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", in_go(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(in_go).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
