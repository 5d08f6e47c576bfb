//! What people ask of the API server in a story.

use super::setting::Cast;
use super::steps::{Annotate, Cascade, Delete, Edit, PatchStep, Resource};
use crate::core::action::MetaPatch;
use crate::core::contract::keys;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Request};
use serde_json::{Map, Value, json};

/// Where the operators of a story keep their lease.
pub const OPERATOR_NAMESPACE: &str = "cocoon-system";

fn set_path(cast: &Cast, set: Option<&str>) -> String {
    let key = cast.key(set);
    format!("/apis/{}/{}/namespaces/{}/cocoonsets/{}", keys::GROUP, keys::VERSION, key.namespace, key.name)
}

fn hibernation_path(cast: &Cast, name: &str) -> String {
    set_path(cast, Some(name)).replace("/cocoonsets/", "/cocoonhibernations/")
}

fn pod_path(cast: &Cast, pod: &str) -> String {
    let key = cast.key(Some(pod));
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name)
}

fn merge(path: String, body: Value) -> Request {
    Request::new(Method::Patch, path).with_body(MERGE_PATCH, body)
}

/// A change of a set's spec.
pub fn edit(cast: &Cast, edit: &Edit) -> Request {
    merge(set_path(cast, edit.set.as_deref()), json!({ "spec": edit.spec }))
}

/// A deletion.
pub fn delete(cast: &Cast, delete: &Delete) -> Result<Request, String> {
    let Delete { set, pod, node, hibernation, namespace, .. } = delete;
    let path = match (set, pod, node, hibernation, namespace) {
        (Some(set), None, None, None, false) => set_path(cast, Some(set)),
        (None, Some(pod), None, None, false) => pod_path(cast, pod),
        (None, None, Some(node), None, false) => format!("/api/v1/nodes/{node}"),
        (None, None, None, Some(name), false) => hibernation_path(cast, name),
        (None, None, None, None, true) => format!("/api/v1/namespaces/{}", cast.namespace),
        _ => return Err("exactly one of set, pod, node, hibernation, namespace is expected".to_owned()),
    };
    let mut options = Map::new();
    options.insert("kind".to_owned(), json!("DeleteOptions"));
    options.insert("apiVersion".to_owned(), json!("v1"));
    if let Some(cascade) = delete.cascade {
        let policy = match cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        options.insert("propagationPolicy".to_owned(), json!(policy));
    }
    if delete.force {
        options.insert("gracePeriodSeconds".to_owned(), json!(0));
    }
    Ok(Request::new(Method::Delete, path).with_body(JSON, Value::Object(options)))
}

/// A merge of annotations and labels.
pub fn annotate(cast: &Cast, annotate: &Annotate) -> Result<Request, String> {
    let path = match (&annotate.set, &annotate.pod) {
        (set, None) => set_path(cast, set.as_deref()),
        (None, Some(pod)) => pod_path(cast, pod),
        (Some(_), Some(_)) => return Err("one of set and pod is expected".to_owned()),
    };
    let patch = MetaPatch { annotations: annotate.annotations.clone(), labels: annotate.labels.clone() };
    Ok(merge(path, patch.to_json()))
}

/// A merge patch of any object.
pub fn patch(cast: &Cast, patch: &PatchStep) -> Request {
    let path = match patch.resource {
        Resource::Cocoonsets | Resource::CocoonsetsStatus => set_path(cast, Some(&patch.name)),
        Resource::Cocoonhibernations => hibernation_path(cast, &patch.name),
        Resource::Pods => pod_path(cast, &patch.name),
        Resource::Leases => {
            format!("/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/{}", patch.name)
        }
        Resource::Namespaces | Resource::Nodes => format!("/api/v1/{}/{}", patch.resource.plural(), patch.name),
    };
    let status = patch.status || patch.resource == Resource::CocoonsetsStatus;
    merge(format!("{path}{}", if status { "/status" } else { "" }), patch.patch.clone())
}
