//! Names as a story has them, and as they are on a control plane that many stories share: each has its own namespaces,
//! nodes and node pools. What goes there gets the story's mark, what comes back loses it, and so nobody who looks through
//! the lens, the operator included, knows of the others.

use crate::core::contract::keys;
use crate::core::meta;
use crate::core::wire::{Method, Request};
use crate::scenario::given::Given;
use crate::scenario::script::Script;
use crate::scenario::steps::Step;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The label of nodes and namespaces that says whose they are.
pub const STORY: &str = "live.example.test/story";

/// One story's names.
#[derive(Clone, Debug)]
pub struct Lens {
    /// Stands before every name of the story that is seen by all, and nowhere else.
    mark: String,
    /// The story's only namespace; none where it has several.
    only: Option<String>,
}

impl Lens {
    /// For a story of this number, with this namespace alone or with several.
    pub fn new(number: usize, only: Option<&str>) -> Self {
        Self { mark: format!("zz{number:03}-"), only: only.map(str::to_owned) }
    }

    /// For somebody who is no story: everything as it is.
    pub const fn whole() -> Self {
        Self { mark: String::new(), only: None }
    }

    /// The name as it is there. The control plane's own namespaces are nobody's.
    pub fn real(&self, name: &str) -> String {
        if name.starts_with("kube-") {
            return name.to_owned();
        }
        format!("{}{name}", self.mark)
    }
    /// The value of the story's label.
    pub fn story(&self) -> &str {
        self.mark.trim_end_matches('-')
    }

    /// What comes back, as the story has it.
    pub fn back(&self, bytes: &[u8]) -> Vec<u8> {
        let mark = self.mark.as_bytes();
        if mark.is_empty() {
            return bytes.to_vec();
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
            out.extend_from_slice(rest.get(..at).unwrap_or_default());
            rest = rest.get(at.saturating_add(mark.len())..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
        out
    }

    /// True where an answer holds objects of other stories too: those have no mark.
    pub fn mixes(&self, request: &Request) -> bool {
        self.only.is_none() && !self.mark.is_empty() && is_over_all(&request.path)
    }
    /// Whether this object, as it is there, is of this story.
    pub fn is_ours(&self, object: &Value) -> bool {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        namespace.is_none_or(|namespace| namespace.starts_with(&self.mark))
    }

    /// The request as it goes there.
    pub fn there(&self, request: &Request) -> Request {
        let mut real = request.clone();
        if self.mark.is_empty() {
            return real;
        }
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let whole = matches!(request.method, Method::Get);
        real.path = match parts.as_slice() {
            ["api", "v1", "namespaces" | "nodes"] if whole => {
                self.select(&mut real);
                request.path.clone()
            }
            ["api", "v1", plural @ ("namespaces" | "nodes"), name, rest @ ..] => {
                path(&["api", "v1", plural, &self.real(name)], rest)
            }
            ["apis", group, version, "namespaces", name, rest @ ..] => {
                path(&["apis", group, version, "namespaces", &self.real(name)], rest)
            }
            [root @ .., plural] if whole && is_over_all(&request.path) => match &self.only {
                Some(only) => path(root, &["namespaces", &self.real(only), plural]),
                None => request.path.clone(),
            },
            _ => request.path.clone(),
        };
        let resource = parts.iter().rev().find(|part| matches!(**part, "pods" | "nodes" | "namespaces" | "events"));
        self.object(&mut real.body, resource.copied().unwrap_or_default());
        real
    }

    fn select(&self, request: &mut Request) {
        let ours = format!("{STORY}={}", self.story());
        match request.query.iter_mut().find(|(key, _)| key == "labelSelector") {
            Some((_, selector)) => *selector = format!("{selector},{ours}"),
            None => request.query.push(("labelSelector".to_owned(), ours)),
        }
    }

    fn object(&self, object: &mut Value, resource: &str) {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.mark_at(object, "/metadata/namespace");
        match (resource, kind.as_str()) {
            (_, "Namespace" | "Node") => {
                self.mark_at(object, "/metadata/name");
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
                    if let Some(labels) = labels.as_object_mut() {
                        labels.insert(STORY.to_owned(), json!(self.story()));
                        self.places(labels);
                    }
                }
            }
            (_, "Event") => {
                for about in ["involvedObject", "regarding", "related"] {
                    self.mark_at(object, &format!("/{about}/namespace"));
                }
            }
            ("pods", _) => self.pod(object),
            _ => {}
        }
    }

    fn pod(&self, pod: &mut Value) {
        self.mark_at(pod, "/spec/nodeName");
        if let Some(selector) = pod.pointer_mut("/spec/nodeSelector").and_then(Value::as_object_mut) {
            self.places(selector);
        }
        let affinity = pod.pointer_mut("/spec/affinity/nodeAffinity");
        affinity.into_iter().for_each(|affinity| self.expressions(affinity));
    }

    /// Hostnames and pools that an affinity names, however deep.
    fn expressions(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.expressions(item)),
            Value::Object(fields) => {
                let key = fields.get("key").and_then(Value::as_str).unwrap_or_default();
                if matches!(key, keys::HOSTNAME | keys::POOL)
                    && let Some(values) = fields.get_mut("values").and_then(Value::as_array_mut)
                {
                    values.iter_mut().for_each(|value| self.mark_text(value));
                }
                fields.values_mut().for_each(|value| self.expressions(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn places(&self, labels: &mut Map<String, Value>) {
        for key in [keys::HOSTNAME, keys::POOL] {
            labels.get_mut(key).into_iter().for_each(|value| self.mark_text(value));
        }
    }

    fn mark_at(&self, object: &mut Value, pointer: &str) {
        object.pointer_mut(pointer).into_iter().for_each(|value| self.mark_text(value));
    }

    fn mark_text(&self, value: &mut Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            *value = json!(self.real(text));
        }
    }
}

/// A collection of namespaced objects over all namespaces.
fn is_over_all(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["api", _, plural] => !matches!(*plural, "namespaces" | "nodes"),
        ["apis", group, _, _] => *group == keys::GROUP,
        _ => false,
    }
}

fn path(root: &[&str], rest: &[&str]) -> String {
    format!("/{}", [root, rest].concat().join("/"))
}

/// Every namespace that a story speaks of.
pub fn namespaces(script: &Script) -> BTreeSet<String> {
    let Given { namespace, set, sets, objects, .. } = &script.given;
    let applied = script.when.iter().filter_map(|step| match step {
        Step::Apply(set) => Some(&set.object),
        _ => None,
    });
    let named = set.iter().chain(sets).map(|set| &set.object).chain(objects).chain(applied);
    let named = named.map(|object| meta::text(object, "namespace")).filter(|name| !name.is_empty());
    named.chain([namespace.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_goes_there_and_comes_back() {
        let lens = Lens::new(7, Some("default"));
        let pod = json!({"kind": "Pod", "metadata": {"name": "demo-0", "namespace": "default"}, "spec": {
            "nodeName": "node-a", "nodeSelector": {keys::POOL: "default"},
            "affinity": {"nodeAffinity": {"x": [{"matchExpressions": [{"key": keys::HOSTNAME, "values": ["node-a"]}]}]}},
        }});
        let request = Request::new(Method::Post, "/api/v1/namespaces/default/pods");
        let request = Request { body: pod.clone(), ..request };
        let there = lens.there(&request);
        assert_eq!(there.path, "/api/v1/namespaces/zz007-default/pods");
        assert_eq!(there.body["spec"]["nodeName"], "zz007-node-a");
        assert_eq!(there.body["metadata"]["name"], "demo-0");
        let back: Value = serde_json::from_slice(&lens.back(there.body.to_string().as_bytes())).expect("JSON");
        assert_eq!(back, pod);
    }

    #[test]
    fn an_event_is_about_an_object_of_its_namespace() {
        let lens = Lens::new(7, Some("default"));
        let about = json!({"kind": "CocoonSet", "namespace": "default", "name": "demo"});
        let event =
            json!({"kind": "Event", "metadata": {"namespace": "default"}, "regarding": about, "related": about});
        let request = Request::new(Method::Post, "/apis/events.k8s.io/v1/namespaces/default/events");
        let there = lens.there(&Request { body: event, ..request });
        assert_eq!(there.path, "/apis/events.k8s.io/v1/namespaces/zz007-default/events");
        for place in ["/metadata/namespace", "/regarding/namespace", "/related/namespace"] {
            assert_eq!(there.body.pointer(place), Some(&json!("zz007-default")), "{place}");
        }
    }

    #[test]
    fn who_is_no_story_sees_everything_as_it_is() {
        let lens = Lens::whole();
        let request = Request::new(Method::Get, "/api/v1/nodes").with_body("", json!({"kind": "Node", "metadata": {}}));
        assert_eq!(lens.there(&request), request);
        assert_eq!(lens.back(b"zz007-default"), b"zz007-default");
        assert!(!lens.mixes(&Request::new(Method::Get, "/api/v1/pods")));
    }

    #[test]
    fn what_is_over_all_is_of_the_story_alone() {
        let lens = Lens::new(7, Some("default"));
        let there = |path: &str| lens.there(&Request::new(Method::Get, path));
        assert_eq!(there("/api/v1/pods").path, "/api/v1/namespaces/zz007-default/pods");
        let sets = there("/apis/cocoonset.cocoonstack.io/v1/cocoonsets").path;
        assert_eq!(sets, "/apis/cocoonset.cocoonstack.io/v1/namespaces/zz007-default/cocoonsets");
        assert_eq!(there("/api/v1/nodes").query, [("labelSelector".to_owned(), format!("{STORY}=zz007"))]);
    }
}
