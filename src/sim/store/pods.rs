//! What the API server knows about pods: defaults, quality of service, what may change.

use super::objects::{as_map, child_mut, text};
use super::status_error::FieldError;
use serde_json::{Map, Value, json};

const IMMUTABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
    additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
    previously negative)\n";

/// Completes a new pod as the server stores it. The projected token volume is left out: nothing here mounts it.
pub(super) fn default_new(pod: &mut Value) {
    default_spec(pod);
    default_tolerations(child_mut(pod, "spec"));
    let class = quality_of_service(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
}

/// Completes what an update leaves out or has added.
pub(super) fn default_spec(pod: &mut Value) {
    let spec = child_mut(pod, "spec");
    let mut default = |field: &str, value: Value| {
        spec.entry(field).or_insert(value);
    };
    default("restartPolicy", json!("Always"));
    default("dnsPolicy", json!("ClusterFirst"));
    default("schedulerName", json!("default-scheduler"));
    default_grace(spec);
    let mut default = |field: &str, value: Value| {
        spec.entry(field).or_insert(value);
    };
    default("enableServiceLinks", json!(true));
    default("securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(as_map(container));
        }
    }
}

/// A grace below zero is the shortest one.
fn default_grace(spec: &mut Map<String, Value>) {
    let grace = spec.entry("terminationGracePeriodSeconds").or_insert(json!(30));
    if grace.as_i64().is_some_and(|seconds| seconds < 0) {
        *grace = json!(1);
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("").to_owned();
    let tag = image.rsplit('/').next().unwrap_or("").split_once(':').map(|(_, tag)| tag);
    let floats = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    let pull = if floats { "Always" } else { "IfNotPresent" };
    container.entry("imagePullPolicy").or_insert(json!(pull));
    container.entry("terminationMessagePath").or_insert(json!("/dev/termination-log"));
    container.entry("terminationMessagePolicy").or_insert(json!("File"));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        as_map(port).entry("protocol").or_insert(json!("TCP"));
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            as_map(reference).entry("apiVersion").or_insert(json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_probe(as_map(probe));
        }
    }
    let resources = as_map(container.entry("resources").or_insert(json!({})));
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if !limits.is_empty() {
        let requests = as_map(resources.entry("requests").or_insert(json!({})));
        for (resource, limit) in limits {
            requests.entry(resource).or_insert(limit);
        }
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        probe.entry(field).or_insert(json!(value));
    }
}

fn default_tolerations(spec: &mut Map<String, Value>) {
    let list = spec.entry("tolerations").or_insert(json!([]));
    let Some(list) = list.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|entry| {
            let (own, effect) = (text(entry, "/key"), text(entry, "/effect"));
            (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn quality_of_service(pod: &Value) -> &'static str {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (mut any, mut all) = (false, !containers.is_empty());
    for container in containers {
        for resource in ["cpu", "memory"] {
            let of = |kind: &str| container.pointer(&format!("/resources/{kind}/{resource}"));
            any |= of("requests").is_some() || of("limits").is_some();
            all &= of("limits").is_some() && of("limits") == of("requests");
        }
    }
    match (any, all) {
        (_, true) => "Guaranteed",
        (true, false) => "Burstable",
        (false, false) => "BestEffort",
    }
}

/// 422 for a change of what a pod cannot change.
pub(super) fn update_errors(current: &Value, proposed: &Value) -> Vec<FieldError> {
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        let map = as_map(&mut spec);
        map.remove("activeDeadlineSeconds");
        map.remove("tolerations");
        for list in ["containers", "initContainers"] {
            for container in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                as_map(container).remove("image");
            }
        }
        spec
    };
    let tolerations =
        |pod: &Value| pod.pointer("/spec/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let new = tolerations(proposed);
    if let Some(error) = super::bounds::deadline_errors(current, proposed) {
        return vec![error];
    }
    if fixed(current) != fixed(proposed) {
        return vec![FieldError::forbidden("spec", IMMUTABLE)];
    }
    if !tolerations(current).iter().all(|old| new.contains(old)) {
        return vec![FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        )];
    }
    Vec::new()
}

/// Writes a status condition, replacing the one of its type.
pub(super) fn set_condition(pod: &mut Value, condition: Value) {
    let list = child_mut(pod, "status").entry("conditions").or_insert(json!([]));
    let Some(list) = list.as_array_mut() else { return };
    list.retain(|entry| text(entry, "/type") != text(&condition, "/type"));
    list.push(condition);
}
