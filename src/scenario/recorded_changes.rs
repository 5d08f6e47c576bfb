//! What must have happened between two recorded passes, and what the calls of the later one met, as steps of a story.

use super::from_recording::Passed;
use crate::core::control::kinds::Kind;
use crate::core::control::mirror::Held;
use crate::core::meta;
use crate::core::outcome::{Class, Effect, Outcome};
use crate::core::recording::Line;
use serde_json::{Map, Value, json};

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// As the language spells it.
    pub step: Value,
    /// It deletes the set's namespace, which happens once.
    pub ends: bool,
}

fn change(step: Value) -> Change {
    Change { step, ends: false }
}

/// What happened before this pass, then what its calls met.
pub(super) fn between(before: Option<&Passed>, (line, held): &Passed) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some((earlier, seen)) = before {
        set_changed(earlier, seen, held, &mut changes);
        pods_changed(earlier, seen, held, &mut changes);
        nodes_changed(seen, held, &mut changes);
    }
    let was = before.and_then(|(_, held)| is_going(held, line));
    if was != Some(true) && is_going(held, line) == Some(true) {
        changes.push(Change { step: json!({ "delete": { "namespace": true } }), ends: true });
    }
    faults(line, &mut changes);
    changes
}

fn find<'a>(held: &'a [Held], kind: Kind, name: &str) -> Option<&'a Value> {
    held.iter().find(|(of, key, _)| *of == kind && key.name == name).map(|(_, _, object)| object.as_ref())
}

fn is_deleting(object: &Value) -> bool {
    meta::time(object, "deletionTimestamp").is_some()
}

fn is_going(held: &[Held], line: &Line) -> Option<bool> {
    find(held, Kind::Namespaces, &line.namespace).map(is_deleting)
}

fn set_changed(line: &Line, before: &[Held], now: &[Held], changes: &mut Vec<Change>) {
    let objects = find(before, Kind::CocoonSets, &line.name).zip(find(now, Kind::CocoonSets, &line.name));
    let Some((was, is)) = objects else { return };
    let null = Value::Null;
    let patch = merge_patch(was.get("spec").unwrap_or(&null), is.get("spec").unwrap_or(&null));
    if let Some(patch) = patch {
        changes.push(change(json!({ "edit": { "spec": patch } })));
    }
    let namespace_going = is_going(now, line) == Some(true);
    if is_deleting(is) && !is_deleting(was) && !namespace_going {
        changes.push(change(json!({ "delete": { "set": line.name } })));
    }
}

/// Pods that somebody else deletes, or makes.
fn pods_changed(line: &Line, before: &[Held], now: &[Held], changes: &mut Vec<Change>) {
    let sent = |action: &str, pod: &str| {
        let done = line.turns.iter().flat_map(|turn| turn.actions.iter().zip(&turn.outcomes));
        done.filter(|(sent, _)| sent.get("action") == Some(&json!(action))).any(|(sent, _)| {
            sent.get("pod") == Some(&json!(pod)) || sent.pointer("/pod/metadata/name") == Some(&json!(pod))
        })
    };
    let going = is_going(now, line) == Some(true);
    let deleted = |pod: &str| line.memory.deleted.contains_key(pod) || sent("DeletePod", pod);
    for (_, key, pod) in before.iter().filter(|(kind, ..)| *kind == Kind::Pods) {
        let gone = find(now, Kind::Pods, &key.name).is_none_or(is_deleting);
        if gone && !is_deleting(pod) && !going && !deleted(&key.name) {
            changes.push(change(json!({ "delete": { "pod": key.name } })));
        }
    }
    for (_, key, pod) in now.iter().filter(|(kind, ..)| *kind == Kind::Pods) {
        let owner = match meta::controller(pod) {
            Some(owner) if owner.uid == line.uid => continue,
            Some(owner) => format!("{}/{}", owner.kind, owner.name),
            None => "none".to_owned(),
        };
        if find(before, Kind::Pods, &key.name).is_none() {
            changes.push(change(json!({ "create-pod": { &key.name: { "owner": owner, "of": line.name } } })));
        }
    }
}

fn nodes_changed(before: &[Held], now: &[Held], changes: &mut Vec<Change>) {
    for (_, key, node) in now.iter().filter(|(kind, ..)| *kind == Kind::Nodes) {
        let Some(was) = find(before, Kind::Nodes, &key.name) else { continue };
        let word = match (is_ready(was), is_ready(node)) {
            (true, false) => "not-ready",
            (false, true) => "back",
            (true, true) | (false, false) => continue,
        };
        changes.push(change(json!({ "node": { &key.name: word } })));
    }
}

fn is_ready(node: &Value) -> bool {
    crate::core::cocoonset::observed::NodeFacts::of(node).ready
}

/// What calls met that did not simply succeed. What a cluster answers by itself, once it is as it was, is no fault.
fn faults(line: &Line, changes: &mut Vec<Change>) {
    let met = line.turns.iter().flat_map(|turn| turn.actions.iter().zip(&turn.outcomes));
    for (action, outcome) in met {
        let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default();
        let pod = action.pointer("/pod/metadata/name").and_then(Value::as_str).unwrap_or(text("pod"));
        let (verb, resource, name) = match text("action") {
            "CreatePod" => ("create", "pods", pod.to_owned()),
            "DeletePod" => ("delete", "pods", pod.to_owned()),
            "PatchPod" => ("patch", "pods", pod.to_owned()),
            "PatchStatus" => ("patch", "cocoonsets/status", line.name.clone()),
            "AddFinalizer" | "RemoveFinalizer" | "PatchObject" => ("patch", "cocoonsets", line.name.clone()),
            "ProbeSnapshot" => ("head", "snapshots", format!("{}:{}", text("vm"), text("tag"))),
            "DeleteSnapshot" => ("delete-tag", "snapshots", format!("{}:{}", text("vm"), text("tag"))),
            _ => continue,
        };
        if outcome.class == Class::NamespaceTerminating {
            let step = json!({ "overtake": { "verb": verb, "resource": resource, "name": name, "delete": { "namespace": true } } });
            changes.push(Change { step, ends: true });
        } else if let Some(answer) = answer(outcome) {
            changes.push(change(
                json!({ "fault": { "verb": verb, "resource": resource, "name": name, "answer": answer } }),
            ));
        }
    }
}

fn answer(outcome: &Outcome) -> Option<&'static str> {
    match outcome.effect() {
        Effect::Happened | Effect::Taken | Effect::Gone | Effect::NamespaceGoing | Effect::NotSent => None,
        Effect::Unsure => Some("timeout-before"),
        Effect::Moved | Effect::Refused | Effect::Later => Some(outcome.class.name()),
    }
}

/// The merge patch that makes one of the other; none where they are the same.
fn merge_patch(was: &Value, is: &Value) -> Option<Value> {
    match (was, is) {
        (was, is) if was == is => None,
        (Value::Object(was), Value::Object(is)) => {
            let mut patch = Map::new();
            for (key, value) in is {
                match was.get(key) {
                    Some(before) => patch.extend(merge_patch(before, value).map(|patch| (key.clone(), patch))),
                    None => drop(patch.insert(key.clone(), value.clone())),
                }
            }
            patch.extend(was.keys().filter(|key| !is.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
            Some(Value::Object(patch))
        }
        (_, is) => Some(is.clone()),
    }
}
