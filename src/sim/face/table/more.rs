//! The rows of the built-in kinds but pods.

use super::{age, list, name, or, plain, since};
use crate::sim::store::objects::{meta, text};
use jiff::Timestamp;
use serde_json::{Value, json};

fn entries(object: &Value, field: &str) -> usize {
    object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(super) fn aged(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

pub(super) fn dated(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(meta(object, "creationTimestamp"))]
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/status/phase")), age(object, now)]
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let data = entries(object, "data") + entries(object, "binaryData");
    vec![name(object), json!(data), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(or(text(object, "/type"), "Opaque")), json!(entries(object, "data")), age(object, now)]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/spec/holderIdentity")), age(object, now)]
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let port = |port: &Value| {
        let number = port.get("port").map(plain).unwrap_or_default();
        format!("{number}/{}", or(text(port, "/protocol"), "TCP"))
    };
    let ports: Vec<String> = list(object, "/spec/ports").iter().map(port).collect();
    let selector = object.pointer("/spec/selector").and_then(Value::as_object);
    let selector: Vec<String> =
        selector.into_iter().flatten().map(|(key, value)| format!("{key}={}", plain(value))).collect();
    vec![
        name(object),
        json!(or(text(object, "/spec/type"), "ClusterIP")),
        json!(or(text(object, "/spec/clusterIP"), "<none>")),
        json!("<none>"),
        json!(or(&ports.join(","), "<none>")),
        age(object, now),
        json!(or(&selector.join(","), "<none>")),
    ]
}

pub(super) fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    for (resource, hard) in hard.into_iter().flatten() {
        let used = object.pointer("/status/used").and_then(|used| used.get(resource)).map(plain);
        let shown = format!("{resource}: {}/{}", used.unwrap_or_else(|| "0".to_owned()), plain(hard));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(shown);
    }
    vec![name(object), json!(requests.join(", ")), json!(limits.join(", ")), age(object, now)]
}

pub(super) fn budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let of = |field: &str| object.pointer(&format!("/spec/{field}")).map_or_else(|| "N/A".to_owned(), plain);
    let allowed = object.pointer("/status/disruptionsAllowed").cloned().unwrap_or_else(|| json!(0));
    vec![name(object), json!(of("minAvailable")), json!(of("maxUnavailable")), allowed, age(object, now)]
}

pub(super) fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let of = |field: &str, otherwise: Value| object.get(field).cloned().unwrap_or(otherwise);
    let preemption = of("preemptionPolicy", json!("PreemptLowerPriority"));
    vec![name(object), of("value", json!(0)), of("globalDefault", json!(false)), age(object, now), preemption]
}

pub(super) fn policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = match text(object, "/spec/paramKind/kind") {
        "" => "<unset>".to_owned(),
        kind => format!("{}/{kind}", text(object, "/spec/paramKind/apiVersion")),
    };
    vec![name(object), json!(list(object, "/spec/validations").len()), json!(kind), age(object, now)]
}

pub(super) fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameter = match (text(object, "/spec/paramRef/name"), text(object, "/spec/paramRef/namespace")) {
        ("", _) => "<unset>".to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    vec![name(object), json!(text(object, "/spec/policyName")), json!(parameter), age(object, now)]
}

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
    let mut status = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role).filter(|role| !role.is_empty()),
            None if key == "kubernetes.io/role" => value.as_str().filter(|role| !role.is_empty()),
            None => None,
        })
        .collect();
    roles.sort_unstable();
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|one| text(one, "/type") == kind);
        json!(found.map_or("<none>", |one| text(one, "/address")))
    };
    let info = |field: &str| text(object, &format!("/status/nodeInfo/{field}"));
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        name(object),
        json!(status),
        json!(or(&roles.join(","), "<none>")),
        age(object, now),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(or(info("osImage"), "<unknown>")),
        json!(kernel),
        json!(or(info("containerRuntimeVersion"), "<unknown>")),
    ]
}

/// Both faces of an event are printed alike.
pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |old: &'static str, new: &'static str| or(text(object, old), text(object, new));
    let of = |at: &str| since(at, now);
    let first = or(either("/firstTimestamp", "/deprecatedFirstTimestamp"), text(object, "/eventTime"));
    let last = or(either("/lastTimestamp", "/deprecatedLastTimestamp"), first);
    let last = or(text(object, "/series/lastObservedTime"), last);
    let count = ["/series/count", "/count", "/deprecatedCount"];
    let count = count.iter().find_map(|at| object.pointer(at).and_then(Value::as_i64)).filter(|count| *count > 0);
    let about = |field: &str| {
        let pointer = |of: &str| format!("/{of}/{field}");
        or(text(object, &pointer("involvedObject")), text(object, &pointer("regarding"))).to_owned()
    };
    let mut target = about("kind").to_lowercase();
    if !about("name").is_empty() {
        target = format!("{target}/{}", about("name"));
    }
    let component = or(
        either("/source/component", "/deprecatedSource/component"),
        either("/reportingComponent", "/reportingController"),
    );
    let host = or(either("/source/host", "/deprecatedSource/host"), text(object, "/reportingInstance"));
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        json!(of(last)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(target),
        json!(about("fieldPath")),
        json!(source),
        json!(either("/message", "/note").trim()),
        json!(of(first)),
        json!(count.unwrap_or(1)),
        name(object),
    ]
}
