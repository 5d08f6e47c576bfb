//! Pods that exist already: the operator's own template, plus a state.

use super::given::PodGiven;
use super::realm::Realm;
use super::setting::{Cast, done};
use crate::core::cocoonset::observed::SetFacts;
use crate::core::contract::keys;
use crate::core::contract::names::{NodeName, agent_vm, canonical_slot};
use crate::core::meta;
use crate::core::pod::render::render;
use crate::core::pod::template::{Boot, Identity, PodTemplate, wanted_main, wanted_sub_agent, wanted_toolbox};
use crate::core::wire::{JSON, Method, Request};
use crate::sim::node::{Effect, Injection, Step, Timings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where pods are that a story does not place.
const NODE: &str = "node-a";

/// Main agents before what is forked from them.
pub fn in_order(pods: &BTreeMap<String, PodGiven>) -> Vec<(&str, &PodGiven)> {
    pods.iter().map(|(name, pod)| (name.as_str(), pod)).collect()
}

/// Creates one on the cluster's own machinery; where it is to be ready or failed, in no time.
pub fn create(world: &mut impl Realm, cast: &Cast, name: &str, pod: &PodGiven) -> Result<(), String> {
    let key = cast.key(pod.of.as_deref());
    let set = world.get("cocoonsets.cocoonset.cocoonstack.io", &key.namespace, &key.name);
    let set = set.map(SetFacts::of).ok_or_else(|| format!("there is no set {key}"))?;
    let id = Identity { namespace: &set.namespace, set: &set.name, uid: &set.uid, generation: set.generation };
    let node = pod.node.as_deref().unwrap_or(NODE);
    let template = template(&set, &id, name, node).ok_or_else(|| format!("set {key} wants no such pod"))?;
    let mut manifest = render(&template, &id);
    change(&mut manifest, pod, node, &sets(world, &set.namespace))?;
    let path = format!("/api/v1/namespaces/{}/pods", set.namespace);
    done(world, Request::new(Method::Post, path).with_body(JSON, manifest))?;
    if pod.ready || pod.failed.is_some() {
        bring_up(world, name, pod.failed.as_deref());
    }
    Ok(())
}

fn template(set: &SetFacts, id: &Identity<'_>, name: &str, node: &str) -> Option<PodTemplate> {
    let suffix = name.strip_prefix(&set.name)?.strip_prefix('-')?;
    let spec = &set.spec;
    if let Some(toolbox) = spec.toolboxes.iter().find(|toolbox| toolbox.name == suffix) {
        return Some(wanted_toolbox(spec, id, toolbox, Boot::Fresh));
    }
    let node = NodeName::from(node);
    match canonical_slot(suffix)? {
        0 => Some(wanted_main(spec, id, Boot::Fresh, None)),
        slot => {
            let main = agent_vm(&set.namespace, &set.name, 0);
            Some(wanted_sub_agent(spec, id, slot, &main, Some(&node).filter(|node| !node.is_empty()), Boot::Fresh))
        }
    }
}

/// Uids of the sets of the namespace, by name.
fn sets(world: &impl Realm, namespace: &str) -> BTreeMap<String, String> {
    let all = world.all("cocoonsets.cocoonset.cocoonstack.io", Some(namespace));
    all.into_iter().map(|set| (meta::text(set, "name"), meta::text(set, "uid"))).collect()
}

fn change(manifest: &mut Value, pod: &PodGiven, node: &str, others: &BTreeMap<String, String>) -> Result<(), String> {
    if !node.is_empty() {
        set(manifest, &["spec"], "nodeName", json!(node));
    }
    for (field, changes) in [("annotations", &pod.annotations), ("labels", &pod.labels)] {
        for (key, value) in changes {
            set(manifest, &["metadata", field], key, json!(value));
        }
    }
    if !pod.finalizers.is_empty() {
        set(manifest, &["metadata"], "finalizers", json!(pod.finalizers));
    }
    match pod.owner.as_deref() {
        None => {}
        Some("none") => set(manifest, &["metadata"], "ownerReferences", Value::Null),
        Some(owner) => {
            let (kind, name) = owner.split_once('/').ok_or("owner: `none` or KIND/NAME is expected")?;
            let (group, there) =
                if kind == keys::SET_KIND { (keys::API_VERSION, others.get(name)) } else { ("apps/v1", None) };
            let uid = there.cloned().unwrap_or_else(|| format!("uid-of-{name}"));
            let owner = json!([{ "apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": true }]);
            set(manifest, &["metadata"], "ownerReferences", owner);
        }
    }
    Ok(())
}

/// Sets a field; null takes it away.
fn set(object: &mut Value, path: &[&str], key: &str, value: Value) {
    let mut at = object;
    for part in path {
        let Some(map) = at.as_object_mut() else { return };
        at = map.entry(*part).or_insert_with(|| Value::Object(Map::new()));
    }
    let Some(map) = at.as_object_mut() else { return };
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

/// Lets the nodes do at once what else takes time.
fn bring_up(world: &mut impl Realm, name: &str, failed: Option<&str>) {
    let usual = std::mem::replace(&mut world.nodes().settings_mut().timings, instant());
    for step in [Step::Boot, Step::Clone].into_iter().filter(|_| failed.is_some()) {
        let effect = Effect::Fails(failed.unwrap_or_default().to_owned());
        world.nodes().inject(Injection::new(step, effect).for_pod(name).times(1));
    }
    world.at_once();
    world.nodes().settings_mut().timings = usual;
}

fn instant() -> Timings {
    let zero = Duration::ZERO;
    Timings {
        pull: zero,
        fork_source: zero,
        boot: zero,
        clone: zero,
        post_clone: zero,
        ip_wait: zero,
        restart: zero,
        save: zero,
        push: zero,
        remove: zero,
    }
}
