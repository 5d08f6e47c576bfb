//! The rights that an operator has in its own namespace. A story that elects has such a namespace to itself, where they
//! have to be given first.

use super::lens::Lens;
use crate::core::control::lease;
use crate::core::meta;
use crate::core::wire::{JSON, Method, Reply, Request};
use crate::scenario::realm::Realm;
use crate::scenario::requests::OPERATOR_NAMESPACE;
use crate::sim::world::OPERATOR;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An authorizer has heard of a new binding within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Creates these roles and bindings in the story's operator namespace, and waits until they count.
pub fn give(cluster: &mut impl Realm, lens: &Lens, rights: &[Value]) -> Result<(), String> {
    for object in rights {
        let plural = match object.get("kind").and_then(Value::as_str) {
            Some("RoleBinding") => "rolebindings",
            Some(_) | None => "roles",
        };
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/{plural}");
        let mut object = object.clone();
        object["metadata"] = json!({"name": meta::text(&object, "name"), "namespace": OPERATOR_NAMESPACE});
        let reply = cluster.ask(&Request::new(Method::Post, path).with_body(JSON, object));
        if !matches!(reply, Reply::Http { status: 201, .. }) {
            return Err(format!("the operator's rights in {OPERATOR_NAMESPACE}: {reply:?}"));
        }
    }
    let until = Instant::now() + PATIENCE;
    while !count(cluster, lens) {
        if Instant::now() > until {
            return Err(format!("the operator's rights in {OPERATOR_NAMESPACE} do not count after {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Whether the operator may renew its lease. Asked of the authorizer, since a renewal that is refused is a refusal.
fn count(cluster: &mut impl Realm, lens: &Lens) -> bool {
    let about = json!({
        "namespace": lens.real(OPERATOR_NAMESPACE), "group": "coordination.k8s.io", "resource": "leases",
        "name": lease::NAME, "verb": "update",
    });
    let groups = ["system:serviceaccounts", "system:authenticated"];
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": OPERATOR, "groups": groups, "resourceAttributes": about},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    match cluster.ask(&Request::new(Method::Post, path).with_body(JSON, review)) {
        Reply::Http { body, .. } => {
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            answer.pointer("/status/allowed") == Some(&json!(true))
        }
        Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => false,
    }
}
