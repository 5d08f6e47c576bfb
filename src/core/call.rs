//! An action as the one request that carries it out, with its precondition. Everything that acts, in a cluster or in
//! memory, sends exactly this.

use super::action::{Action, Change, Live, Question, Subject, Want};
use super::contract::keys;
use super::wire::{JSON, JSON_PATCH, MERGE_PATCH, Method, Request, Verb};
use serde_json::{Map, Value, json};

/// The field manager that our writes are recorded under.
pub const FIELD_MANAGER: &str = "cocoon-operator";

/// Where an action goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// To the API server.
    Api {
        /// What it wants of it.
        verb: Verb,
        /// Resource, for metrics: `pods`, `cocoonsets`, …
        resource: &'static str,
        /// The request.
        request: Request,
    },
    /// To the snapshot registry.
    Registry {
        /// What it wants of it.
        verb: Verb,
        /// Repository.
        vm: String,
        /// Tag.
        tag: String,
        /// For a delete: only if a HEAD shows this digest.
        digest: Option<String>,
    },
}

impl Call {
    /// What it wants of the other side.
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Api { verb, .. } | Self::Registry { verb, .. } => *verb,
        }
    }
    /// Resource, for metrics and transcripts.
    pub const fn resource(&self) -> &'static str {
        match self {
            Self::Api { resource, .. } => resource,
            Self::Registry { .. } => "snapshots",
        }
    }
}

/// The call that carries this action out; `None` for what only waits or announces.
pub fn call(subject: &Subject, action: &Action) -> Option<Call> {
    match &action.want {
        Want::Ask(question) => Some(ask(subject, question)),
        Want::Change(change) => Some(write(subject, change)),
        Want::Announce(_) | Want::Wait(_) => None,
    }
}

/// Path of the custom resource.
pub fn object_path(subject: &Subject) -> String {
    format!("/apis/{}/v1/namespaces/{}/{}/{}", keys::GROUP, subject.namespace, plural(subject), subject.name)
}

fn plural(subject: &Subject) -> &'static str {
    if subject.kind == "CocoonHibernation" { "cocoonhibernations" } else { "cocoonsets" }
}

fn pods_path(subject: &Subject) -> String {
    format!("/api/v1/namespaces/{}/pods", subject.namespace)
}

fn api(verb: Verb, resource: &'static str, request: Request) -> Call {
    Call::Api { verb, resource, request }
}

fn ask(subject: &Subject, question: &Question) -> Call {
    match question {
        Question::ProbeSnapshot { vm, tag } => {
            Call::Registry { verb: Verb::RegistryHead, vm: vm.clone(), tag: tag.clone(), digest: None }
        }
        Question::ReadLive(Live::Object) => {
            api(Verb::Get, plural(subject), Request::new(Method::Get, object_path(subject)))
        }
        Question::ReadLive(Live::Pod(pod)) => {
            api(Verb::Get, "pods", Request::new(Method::Get, format!("{}/{pod}", pods_path(subject))))
        }
        Question::ReadLive(Live::Pods) => api(Verb::List, "pods", Request::new(Method::Get, pods_path(subject))),
        Question::ReadLive(Live::Namespace) => {
            let path = format!("/api/v1/namespaces/{}", subject.namespace);
            api(Verb::Get, "namespaces", Request::new(Method::Get, path))
        }
        Question::ReadLive(Live::Node(node)) => {
            api(Verb::Get, "nodes", Request::new(Method::Get, format!("/api/v1/nodes/{node}")))
        }
    }
}

fn write(subject: &Subject, change: &Change) -> Call {
    match change {
        Change::AddFinalizer { tested, finalizers } | Change::RemoveFinalizer { tested, finalizers } => {
            let body = finalizer_patch(subject, tested.as_deref(), finalizers);
            patch(plural(subject), object_path(subject), JSON_PATCH, body)
        }
        Change::PatchObject { annotations, resource_version } => {
            let body = json!({ "metadata": { "resourceVersion": resource_version, "annotations": annotations } });
            patch(plural(subject), object_path(subject), MERGE_PATCH, body)
        }
        Change::PatchStatus { status, dropped, resource_version } => {
            let body = status_patch(status, dropped, resource_version);
            patch(plural(subject), format!("{}/status", object_path(subject)), MERGE_PATCH, body)
        }
        Change::CreatePod { manifest, dry_run, .. } => {
            let mut request = Request::new(Method::Post, pods_path(subject))
                .with_body(JSON, manifest.clone())
                .with_query("fieldManager", FIELD_MANAGER);
            if *dry_run {
                request = request.with_query("dryRun", "All");
            }
            api(Verb::Create, "pods", request)
        }
        Change::DeletePod { pod, uid, resource_version } => {
            let body = delete_options(uid, resource_version.as_deref());
            let request = Request::new(Method::Delete, format!("{}/{pod}", pods_path(subject))).with_body(JSON, body);
            api(Verb::Delete, "pods", request)
        }
        Change::PatchPod { pod, uid, patch: meta } => {
            let mut body = meta.to_json();
            if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("uid".to_owned(), json!(uid));
            }
            patch("pods", format!("{}/{pod}", pods_path(subject)), MERGE_PATCH, body)
        }
        Change::DeleteSnapshot { vm, tag, digest } => {
            Call::Registry { verb: Verb::RegistryDelete, vm: vm.clone(), tag: tag.clone(), digest: digest.clone() }
        }
    }
}

fn patch(resource: &'static str, path: String, content_type: &str, body: Value) -> Call {
    let request =
        Request::new(Method::Patch, path).with_body(content_type, body).with_query("fieldManager", FIELD_MANAGER);
    api(Verb::Patch, resource, request)
}

/// Decision R9: the uid and the list as seen are tested, so that an unrelated write is no conflict. The list is
/// replaced whole: all copies of ours go, or one comes.
fn finalizer_patch(subject: &Subject, tested: Option<&[String]>, finalizers: &[String]) -> Value {
    let operation = if tested.is_some() { "replace" } else { "add" };
    json!([
        { "op": "test", "path": "/metadata/uid", "value": subject.uid },
        { "op": "test", "path": "/metadata/finalizers", "value": tested },
        { "op": operation, "path": "/metadata/finalizers", "value": finalizers },
    ])
}

/// Decision R10: the whole status on the version decided on; what it lacks goes.
fn status_patch(status: &Value, dropped: &[String], resource_version: &str) -> Value {
    let mut whole: Map<String, Value> = status.as_object().cloned().unwrap_or_default();
    for key in dropped {
        whole.insert(key.clone(), Value::Null);
    }
    json!({ "metadata": { "resourceVersion": resource_version }, "status": whole })
}

fn delete_options(uid: &str, resource_version: Option<&str>) -> Value {
    let mut preconditions = Map::new();
    preconditions.insert("uid".to_owned(), json!(uid));
    if let Some(version) = resource_version {
        preconditions.insert("resourceVersion".to_owned(), json!(version));
    }
    json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions })
}
