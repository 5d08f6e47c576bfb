//! The API server's face towards general clients such as kubectl: what is served, in which words it is described, tables
//! instead of objects, and answers to questions about the client itself. The objects are the store's.

mod discovery;
mod doubles;
mod openapi;
mod page;
pub(super) mod protobuf;
mod reviews;
mod shape;
mod table;
pub(super) mod yaml;

pub(super) use doubles::doubled;
pub(super) use openapi::builtin_schemas;
pub(super) use page::Page;
pub(super) use shape::{Shape, Shaper};

use super::store::objects::text;
use super::store::{ReplyBody, StoreReply};
use super::world::World;
use crate::core::wire::{Method, Request};
use serde_json::{Value, json};

/// The Kubernetes release whose answers these are.
const MINOR: &str = "36";
const HEALTH: [&str; 3] = ["/healthz", "/readyz", "/livez"];
/// Subresources that need a VM.
const OF_A_VM: [&str; 5] = ["log", "exec", "attach", "portforward", "proxy"];

/// The answer to what is not about stored objects; none for everything else. `accept` is the header as sent.
pub(super) fn own(world: &World, user: &str, request: &Request, accept: &str) -> Option<Page> {
    let path = request.path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let review = matches!(request.method, Method::Post).then(|| reviews::answer(world, user, &parts, &request.body));
    if let Some(reply) = review.flatten() {
        return Some(reply.into());
    }
    if let ["api", "v1", "namespaces", namespace, "pods", name, subresource] = parts.as_slice()
        && OF_A_VM.contains(subresource)
    {
        return Some(of_a_vm(world, namespace, name, subresource).into());
    }
    if !matches!(request.method, Method::Get) {
        return None;
    }
    if HEALTH.contains(&path) {
        return Some(StoreReply::text(200, "ok").into());
    }
    match parts.as_slice() {
        ["version"] => Some(StoreReply::json(200, version()).into()),
        ["openapi", rest @ ..] => openapi::page(world, rest, accept),
        ["api", "v1", "componentstatuses", rest @ ..] => components(rest, accept).map(Page::from),
        _ => discovery::page(world, &parts, accept),
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0"), "platform": "linux/amd64", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "2026-04-22T00:00:00Z", "goVersion": "", "compiler": "",
    })
}

/// What an API server says that finds no scheduler and no controller manager at their usual ports: here both are parts
/// of it. Nobody should build on this resource, but kubectl takes its short name `cs` before that of CocoonSets.
fn components(rest: &[&str], accept: &str) -> Option<StoreReply> {
    let refused = |port: u16| {
        format!("Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused")
    };
    let component = |name: &str, healthy: bool, message: String| {
        let status = if healthy { "True" } else { "False" };
        let condition = json!({"type": "Healthy", "status": status, "message": message});
        json!({
            "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition],
        })
    };
    let all = vec![
        component("scheduler", false, refused(10259)),
        component("controller-manager", false, refused(10257)),
        component("etcd-0", true, "ok".to_owned()),
    ];
    let shape = Shape::of(accept, None);
    let body = match rest {
        [] => {
            let list = json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": all});
            shape.components(list)
        }
        [name] => all.into_iter().find(|one| text(one, "/metadata/name") == *name).map(|one| shape.components(one))?,
        _ => return None,
    };
    let mut reply = StoreReply::json(200, body);
    reply.warnings.push("v1 ComponentStatus is deprecated in v1.19+".to_owned());
    Some(reply)
}

/// A pod without a node has no log yet; one that has a node has no VM behind it here.
fn of_a_vm(world: &World, namespace: &str, name: &str, subresource: &str) -> StoreReply {
    let status = |code: u16, reason: &str, message: String, details: Value| {
        StoreReply::json(
            code,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                "reason": reason, "details": details, "code": code,
            }),
        )
    };
    let Some(pod) = world.store.get("pods", namespace, name) else {
        return status(404, "NotFound", format!("pods \"{name}\" not found"), json!({"name": name, "kind": "pods"}));
    };
    if subresource == "log" && text(pod, "/spec/nodeName").is_empty() {
        return StoreReply { body: ReplyBody::Text(String::new()), ..StoreReply::text(204, "") };
    }
    let message = format!("no VM runs in the sandbox: {subresource} of pod {name} is not to be had");
    status(400, "BadRequest", message, json!({}))
}
