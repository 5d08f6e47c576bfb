//! Who am I, and what may I do: the reviews that `kubectl auth` posts.

use crate::sim::store::objects::text;
use crate::sim::store::{Attributes, StoreReply};
use crate::sim::world::World;
use serde_json::{Value, json};

/// The answer to a review; none where the path is not one of a review.
pub(super) fn answer(world: &World, user: &str, parts: &[&str], body: &Value) -> Option<StoreReply> {
    let (kind, group) = match parts {
        ["apis", group @ "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] => {
            ("SelfSubjectAccessReview", *group)
        }
        ["apis", group @ "authorization.k8s.io", "v1", "selfsubjectrulesreviews"] => ("SelfSubjectRulesReview", *group),
        ["apis", group @ "authentication.k8s.io", "v1", "selfsubjectreviews"] => ("SelfSubjectReview", *group),
        _ => return None,
    };
    let status = match kind {
        "SelfSubjectAccessReview" => access(world, user, body),
        "SelfSubjectRulesReview" => rules(),
        _ => json!({"userInfo": {"username": user, "groups": ["system:masters", "system:authenticated"]}}),
    };
    let mut reply = json!({
        "kind": kind, "apiVersion": format!("{group}/v1"), "metadata": {"creationTimestamp": null}, "status": status,
    });
    if let Some(spec) = body.get("spec") {
        reply["spec"] = spec.clone();
    }
    Some(StoreReply::json(201, reply))
}

fn access(world: &World, user: &str, body: &Value) -> Value {
    let of = |field: &str| text(body, &format!("/spec/resourceAttributes/{field}")).to_owned();
    let asked = Attributes {
        verb: of("verb"),
        group: of("group"),
        resource: of("resource"),
        subresource: of("subresource"),
        namespace: of("namespace"),
        name: of("name"),
    };
    match world.store.refuses(user, &asked) {
        None => json!({"allowed": true}),
        Some(why) => json!({"allowed": false, "reason": why}),
    }
}

/// Nobody is held back but by the refusals that a story or a test sets, and those are not listed.
fn rules() -> Value {
    let all = ["*"];
    json!({
        "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all}],
        "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
        "incomplete": false,
    })
}
