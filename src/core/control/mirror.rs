//! The objects behind the view, as the API server returned them: kept only where passes are recorded, since decisions
//! need no more than the view reads out of them.

use super::kinds::{Event, Kind};
use super::view::View;
use super::wake::Key;
use crate::core::api::hibernation::HibernationSpec;
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::meta;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An object, and what it is found by.
pub type Held = (Kind, Key, Arc<Value>);

/// Where kubectl keeps what was applied: a copy of what stands in the object, and perhaps of what once stood there.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The newest of every object.
#[derive(Clone, Debug, Default)]
pub struct Mirror(BTreeMap<Kind, BTreeMap<Key, Arc<Value>>>);

impl Mirror {
    /// Takes in what a watch says, as the view does.
    pub fn apply(&mut self, kind: Kind, event: &Event) {
        let objects = self.0.entry(kind).or_default();
        match event {
            Event::Listed { items, .. } => {
                *objects = items.iter().map(|item| (Key::of(item), Arc::new(clean(kind, item)))).collect();
            }
            Event::Applied(object) => {
                objects.insert(Key::of(object), Arc::new(clean(kind, object)));
            }
            Event::Deleted(object) => {
                objects.remove(&Key::of(object));
            }
            Event::Bookmark(_) => {}
            Event::Refused if kind.is_optional() => objects.clear(),
            Event::Refused => {}
        }
    }

    /// Everything that was read into this observation, but for other sets: of these it holds all that counts itself.
    fn behind(&self, seen: &Observed) -> Vec<Held> {
        let namespace = &seen.set.namespace;
        let mut wanted: BTreeSet<(Kind, Key)> = BTreeSet::new();
        wanted.insert((Kind::CocoonSets, Key::new(namespace, &seen.set.name)));
        wanted.insert((Kind::Namespaces, Key::new("", namespace)));
        let pods = seen.pods.keys().chain(seen.strangers.keys());
        wanted.extend(pods.map(|pod| (Kind::Pods, Key::new(namespace, pod))));
        let nodes = seen.nodes.iter().flat_map(BTreeMap::keys);
        wanted.extend(nodes.map(|node| (Kind::Nodes, Key::new("", node))));
        let requests = self.of_namespace(Kind::CocoonHibernations, namespace);
        let targets = |request: &Value| {
            let (spec, _) = HibernationSpec::read(request.get("spec").unwrap_or(&Value::Null));
            seen.hibernations.contains(&spec.pod)
        };
        let requests = requests.filter(|(_, request)| targets(request));
        wanted.extend(requests.map(|(key, _)| (Kind::CocoonHibernations, key.clone())));
        let held = |(kind, key): (Kind, Key)| {
            let object = Arc::clone(self.0.get(&kind)?.get(&key)?);
            Some((kind, key, object))
        };
        wanted.into_iter().filter_map(held).collect()
    }

    fn of_namespace(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let objects = self.0.get(&kind).into_iter();
        let objects = objects.flat_map(move |objects| objects.range(Key::first_of(namespace)..));
        objects.take_while(move |(key, _)| key.namespace == namespace)
    }
}

impl View {
    /// From now on the objects themselves are kept too.
    pub fn keep_objects(&mut self) {
        self.mirror.get_or_insert_default();
    }

    /// Whether they are.
    pub fn keeps_objects(&self) -> bool {
        self.mirror.is_some()
    }

    /// One object, where objects are kept.
    pub fn held(&self, kind: Kind, key: &Key) -> Option<Held> {
        let object = self.mirror.as_ref()?.0.get(&kind)?.get(key)?;
        Some((kind, key.clone(), Arc::clone(object)))
    }

    /// Other sets with a claim to a VM name of this one, and their pods that bear it.
    pub fn behind_rivals(&self, seen: &Observed) -> Vec<Held> {
        let Some(mirror) = &self.mirror else { return Vec::new() };
        let mut held = Vec::new();
        for (vm, rival) in &seen.rivals {
            held.extend(self.held(Kind::CocoonSets, &Key::new(&rival.namespace, &rival.name)));
            let bears = |pod: &Value| {
                meta::controller(pod).is_some_and(|owner| owner.uid == rival.uid)
                    && meta::map(pod, "annotations", |key| key == keys::VM_NAME).values().any(|name| name == vm)
            };
            let pods = mirror.of_namespace(Kind::Pods, &rival.namespace).filter(|(_, pod)| bears(pod));
            held.extend(pods.map(|(key, pod)| (Kind::Pods, key.clone(), Arc::clone(pod))));
        }
        held
    }

    /// The objects that were read into this observation, where they are kept.
    pub fn behind(&self, seen: &Observed) -> Vec<Held> {
        self.mirror.as_ref().map(|mirror| mirror.behind(seen)).unwrap_or_default()
    }
}

/// The object without what no decision reads and nobody should find in a file: who wrote which field, what was applied,
/// values of environment variables, and of a node all but its taints and conditions.
pub fn clean(kind: Kind, object: &Value) -> Value {
    let mut clean = without_secrets(object);
    let Some(fields) = clean.as_object_mut() else { return clean };
    let (api, name) = kind.type_meta();
    // Items of a list may not say what they are.
    fields.insert("apiVersion".to_owned(), json!(api));
    fields.insert("kind".to_owned(), json!(name));
    if kind == Kind::Nodes {
        keep_only(fields.get_mut("spec"), &["taints", "unschedulable"]);
        keep_only(fields.get_mut("status"), &["conditions"]);
    }
    clean
}

/// The same of an object of any kind.
pub fn without_secrets(object: &Value) -> Value {
    let mut clean = object.clone();
    if let Some(Value::Object(metadata)) = clean.get_mut("metadata") {
        metadata.remove("managedFields");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
    }
    let Some(Value::Object(spec)) = clean.get_mut("spec") else { return clean };
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let variables = containers.filter_map(|container| container.get_mut("env")?.as_array_mut()).flatten();
        for variable in variables.filter_map(Value::as_object_mut) {
            variable.remove("value");
        }
    }
    clean
}

fn keep_only(part: Option<&mut Value>, wanted: &[&str]) {
    if let Some(Value::Object(fields)) = part {
        let kept = std::mem::take(fields);
        *fields = kept.into_iter().filter(|(key, _)| wanted.contains(&key.as_str())).collect::<Map<_, _>>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_not_be_found_in_a_file_is_not_kept() {
        let pod = json!({
            "metadata": {"name": "p", "managedFields": [{"manager": "m"}], "annotations": {LAST_APPLIED: "{}", "a": "b"}},
            "spec": {"containers": [{"name": "c", "env": [{"name": "TOKEN", "value": "hunter2"}],
                "envFrom": [{"secretRef": {"name": "s"}}]}], "initContainers": [{"env": [{"name": "A", "value": "hunter3"}]}]},
        });
        let kept = clean(Kind::Pods, &pod);
        assert!(!kept.to_string().contains("hunter"), "{kept}");
        assert_eq!(kept["spec"]["containers"][0]["env"], json!([{"name": "TOKEN"}]));
        assert_eq!(kept["spec"]["containers"][0]["envFrom"], json!([{"secretRef": {"name": "s"}}]));
        assert_eq!(kept["metadata"], json!({"name": "p", "annotations": {"a": "b"}}));
        assert_eq!((kept["kind"].as_str(), kept["apiVersion"].as_str()), (Some("Pod"), Some("v1")));
        let node =
            json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "x", "taints": []}, "status": {"images": [1]}});
        let kept = clean(Kind::Nodes, &node);
        assert_eq!((&kept["spec"], &kept["status"]), (&json!({"taints": []}), &json!({})));
    }
}
