//! A template as the pod that we create (contract 6).

use super::intent;
use super::template::{Boot, EPHEMERAL, Identity, Placement, PodTemplate, has_storage};
use crate::core::api::quantity::Quantity;
use crate::core::contract::names::NodeName;
use crate::core::contract::{Annotations, keys};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The container's name.
pub const CONTAINER: &str = "agent";
/// The container's image: never pulled, the node agent boots a VM instead.
pub const PLACEHOLDER: &str = "ghcr.io/cocoonstack/placeholder:latest";

/// The full manifest. A template of unknown role has no name, and no API server takes it.
pub fn render(template: &PodTemplate, id: &Identity<'_>) -> Value {
    let name = template.role.pod_name(id.set).unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": id.namespace,
            "labels": {
                keys::NAME: id.set,
                keys::ROLE: template.role.label(),
                keys::SLOT: template.role.slot_label(),
                keys::APP_NAME: id.set,
            },
            "annotations": annotations(template, id.generation),
            "ownerReferences": [{
                "apiVersion": keys::API_VERSION,
                "kind": keys::SET_KIND,
                "name": id.set,
                "uid": id.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec(template),
    })
}

fn annotations(template: &PodTemplate, generation: i64) -> Annotations {
    let mut annotations = Annotations::new();
    template.vm.write(&mut annotations);
    if let Some(fixed) = &template.fixed {
        fixed.write(&mut annotations);
    }
    match template.boot {
        Boot::Restore => drop(annotations.insert(keys::RESTORE.to_owned(), "true".to_owned())),
        Boot::Fresh => {}
    }
    annotations.insert(keys::GENERATION.to_owned(), generation.to_string());
    annotations.insert(keys::TEMPLATE.to_owned(), intent::write(template, &template.stated));
    annotations
}

fn spec(template: &PodTemplate) -> Value {
    let mut selector = BTreeMap::from([(keys::POOL, template.pool.as_str())]);
    if let Some(class) = &template.compat_class {
        selector.insert(keys::CPU_CLASS, class);
    }
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": selector,
        "tolerations": [
            { "key": keys::PROVIDER_TAINT, "operator": "Exists" },
            // Without seconds: a VM on a lost node is not evicted, it may well run (D-45, D-78).
            { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute" },
            { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute" },
        ],
        "containers": [container(template)],
    });
    let optional = [
        ("serviceAccountName", template.service_account.clone().map(Value::from)),
        ("affinity", affinity(&template.placement)),
    ];
    if let Value::Object(fields) = &mut spec {
        fields.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    spec
}

fn container(template: &PodTemplate) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), CONTAINER.into());
    fields.insert("image".to_owned(), PLACEHOLDER.into());
    let resources = resources(template);
    if !resources.is_empty() {
        fields.insert("resources".to_owned(), resources.into());
    }
    if !template.env_from.is_empty() {
        fields.insert("envFrom".to_owned(), template.env_from.clone().into());
    }
    Value::Object(fields)
}

fn resources(template: &PodTemplate) -> Map<String, Value> {
    let mut fields = Map::new();
    for (key, amounts) in [("limits", &template.resources.limits), ("requests", &template.resources.requests)] {
        let mut texts: Map<_, _> =
            amounts.iter().map(|(name, amount)| (name.clone(), amount.as_str().into())).collect();
        if let Some(storage) = template.vm.storage.as_ref().filter(|_| has_storage(&template.vm)) {
            texts.insert(EPHEMERAL.to_owned(), Quantity::as_str(storage).into());
        }
        if !texts.is_empty() {
            fields.insert(key.to_owned(), texts.into());
        }
    }
    if !template.resources.claims.is_empty() {
        fields.insert("claims".to_owned(), template.resources.claims.clone().into());
    }
    fields
}

fn affinity(placement: &Placement) -> Option<Value> {
    let term = |node: &NodeName| {
        json!({ "matchExpressions": [
        { "key": keys::HOSTNAME, "operator": "In", "values": [node] },
    ] })
    };
    match placement {
        Placement::Anywhere => None,
        Placement::Required(node) => Some(json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term(node)] },
        } })),
        Placement::Preferred(node) => Some(json!({ "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "preference": term(node) }],
        } })),
    }
}
