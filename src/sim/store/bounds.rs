//! Numbers of built-in kinds that are of the right type and make no sense: bounds as the server checks them, in its words.

use super::objects::{meta, text};
use super::resource::Resource;
use super::status_error::FieldError;
use serde_json::Value;

/// What a number has to be.
#[derive(Clone, Copy)]
enum Bound {
    /// At least this.
    Least(i64),
    /// More than nothing, in the words of most kinds.
    Positive,
    /// The same, in the words of topology spreading.
    PositiveWord,
    /// From one to the other.
    Within(i64, i64),
    /// The same, in the words of weights.
    Weight,
    /// A port that has to be given.
    Port,
    /// A port, or 0 for none.
    PortOrNone,
    /// This and nothing else.
    Only(i64),
}

/// Where a number stands, with `*` for every entry of a list, and what it has to be.
type Row = (&'static str, Bound);

const MOST: i64 = 2_147_483_647;
const USER: Bound = Bound::Within(0, MOST);

const OF_A_POD: &[Row] = &[
    ("spec.activeDeadlineSeconds", Bound::Within(1, MOST)),
    ("spec.securityContext.runAsUser", USER),
    ("spec.securityContext.runAsGroup", USER),
    ("spec.securityContext.fsGroup", USER),
    ("spec.topologySpreadConstraints.*.maxSkew", Bound::PositiveWord),
    ("spec.topologySpreadConstraints.*.minDomains", Bound::PositiveWord),
    ("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.weight", Bound::Weight),
    ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.weight", Bound::Weight),
    ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.weight", Bound::Weight),
];

const OF_A_CONTAINER: &[Row] = &[
    ("ports.*.containerPort", Bound::Port),
    ("ports.*.hostPort", Bound::PortOrNone),
    ("securityContext.runAsUser", USER),
    ("securityContext.runAsGroup", USER),
];

const OF_A_PROBE: &[Row] = &[
    ("initialDelaySeconds", Bound::Least(0)),
    ("timeoutSeconds", Bound::Least(0)),
    ("periodSeconds", Bound::Least(0)),
    ("successThreshold", Bound::Least(0)),
    ("failureThreshold", Bound::Least(0)),
    ("terminationGracePeriodSeconds", Bound::Positive),
];

const OF_A_LEASE: &[Row] =
    &[("spec.leaseDurationSeconds", Bound::Positive), ("spec.leaseTransitions", Bound::Least(0))];

const OF_A_SERVICE: &[Row] = &[("spec.ports.*.port", Bound::Within(1, 65_535))];

/// What cannot be had in parts.
const WHOLE: [&str; 9] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// The numbers of an object that are out of their bounds.
pub(super) fn errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    if resource.is_custom() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let spec = |field: &str| object.get("spec").and_then(|spec| spec.get(field));
    match resource.plural.as_str() {
        "pods" => of_a_pod(object, &mut found),
        "leases" => rows(object, "", OF_A_LEASE, &mut found),
        "services" => rows(object, "", OF_A_SERVICE, &mut found),
        "resourcequotas" => amounts(spec("hard"), |name| format!("spec.hard[{name}]"), &mut found),
        "nodes" => {
            for list in ["capacity", "allocatable"] {
                let held = object.get("status").and_then(|status| status.get(list));
                amounts(held, |name| format!("status.{list}.{name}"), &mut found);
            }
        }
        "poddisruptionbudgets" => {
            if spec("minAvailable").is_some() && spec("maxUnavailable").is_some() {
                let shown = object.get("spec").cloned().unwrap_or_default();
                let why = "minAvailable and maxUnavailable cannot be both set";
                found.push(FieldError::invalid("spec", &shown, why));
            }
            for field in ["minAvailable", "maxUnavailable"] {
                spec(field).into_iter().for_each(|value| share(value, &format!("spec.{field}"), &mut found));
            }
        }
        "priorityclasses" => {
            let value = object.get("value").and_then(Value::as_i64).unwrap_or(0);
            if value > 1_000_000_000 && !meta(object, "name").starts_with("system-") {
                let why = "maximum allowed value of a user defined priority is 1000000000";
                found.push(FieldError::forbidden("value", why));
            }
        }
        _ => {}
    }
    found
}

fn of_a_pod(pod: &Value, found: &mut Vec<FieldError>) {
    for list in ["initContainers", "containers"] {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let place = format!("spec.{list}[{at}].");
            rows(container, &place, OF_A_CONTAINER, found);
            for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
                let Some(probe) = container.get(name) else { continue };
                let place = format!("{place}{name}.");
                rows(probe, &place, OF_A_PROBE, found);
                // Only readiness comes and goes.
                if name != "readinessProbe" {
                    rows(probe, &place, &[("successThreshold", Bound::Only(1))], found);
                }
            }
        }
    }
    rows(pod, "", OF_A_POD, found);
}

fn rows(object: &Value, place: &str, rows: &[Row], found: &mut Vec<FieldError>) {
    for (path, bound) in rows {
        let parts: Vec<&str> = path.split('.').collect();
        walk(object, place.trim_end_matches('.').to_owned(), &parts, *bound, found);
    }
}

/// Goes down a path, into every entry of a list.
fn walk(value: &Value, place: String, path: &[&str], bound: Bound, found: &mut Vec<FieldError>) {
    match path {
        [] => found.extend(bound.error(&place, value)),
        ["*", rest @ ..] => {
            for (at, entry) in value.as_array().into_iter().flatten().enumerate() {
                walk(entry, format!("{place}[{at}]"), rest, bound, found);
            }
        }
        [name, rest @ ..] => {
            let place = if place.is_empty() { (*name).to_owned() } else { format!("{place}.{name}") };
            match value.get(name) {
                Some(value) => walk(value, place, rest, bound, found),
                None if rest.is_empty() && matches!(bound, Bound::Port) => found.push(FieldError::required(place, "")),
                None => {}
            }
        }
    }
}

impl Bound {
    fn error(self, place: &str, value: &Value) -> Option<FieldError> {
        let number = value.as_i64()?;
        let within = |least: i64, most: i64| {
            (!(least..=most).contains(&number)).then(|| format!("must be between {least} and {most}, inclusive"))
        };
        let why = match self {
            Self::Least(least) => (number < least).then(|| format!("must be greater than or equal to {least}")),
            Self::Positive => (number <= 0).then(|| "must be greater than 0".to_owned()),
            Self::PositiveWord => (number <= 0).then(|| "must be greater than zero".to_owned()),
            Self::Within(least, most) => within(least, most),
            Self::Weight => (!(1..=100).contains(&number)).then(|| "must be in the range 1-100".to_owned()),
            Self::Port if number == 0 => return Some(FieldError::required(place, "")),
            Self::PortOrNone if number == 0 => None,
            Self::Port | Self::PortOrNone => within(1, 65_535),
            Self::Only(only) => (number != only).then(|| format!("must be {only}")),
        };
        why.map(|why| FieldError::invalid(place, value, &why))
    }
}

/// Amounts of resources: none is negative, and some cannot be had in parts.
fn amounts(map: Option<&Value>, place: impl Fn(&str) -> String, found: &mut Vec<FieldError>) {
    for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
        let Some(amount) = super::quantity::parse(value) else { continue };
        let shown = Value::from(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        if amount < 0 {
            found.push(FieldError::invalid(place(name), &shown, "must be greater than or equal to 0"));
        }
        let extended = name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.");
        if amount % 1000 != 0 && (extended || WHOLE.contains(&name.as_str())) {
            let shown = Value::from(super::quantity::show(amount, false));
            found.push(FieldError::invalid(place(name), &shown, "must be an integer"));
        }
    }
}

/// A number of pods, or a share of them.
fn share(value: &Value, place: &str, found: &mut Vec<FieldError>) {
    if let Some(share) = value.as_str() {
        let digits = share.strip_suffix('%').filter(|digits| !digits.is_empty());
        let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match number.map(|digits| digits.parse::<i64>().unwrap_or(i64::MAX)) {
            None => {
                let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                           '93%', regex used for validation is '[0-9]+%')";
                found.push(FieldError::invalid(place, value, why));
            }
            Some(101..) => found.push(FieldError::invalid(place, value, "must not be greater than 100%")),
            Some(_) => {}
        }
        return;
    }
    found.extend(Bound::Least(0).error(place, value));
}

/// What a pod's deadline may become: given once it only gets shorter.
pub(super) fn deadline_errors(current: &Value, proposed: &Value) -> Option<FieldError> {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let of = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (of(current), of(proposed)) {
        (_, Some(new)) if !(0..=MOST).contains(&new) => {
            let why = format!("must be between 0 and {MOST}, inclusive");
            Some(FieldError::invalid(FIELD, &Value::from(new), &why))
        }
        (Some(old), Some(new)) if old < new => {
            Some(FieldError::invalid(FIELD, &Value::from(new), "must be less than or equal to previous value"))
        }
        (Some(_), None) => {
            Some(FieldError::invalid(FIELD, &Value::Null, "must not update from a positive integer to nil value"))
        }
        _ => None,
    }
}

/// A toleration that ends is one of an effect that evicts.
pub(super) fn toleration_error(toleration: &Value, place: &str) -> Option<FieldError> {
    let effect = text(toleration, "/effect");
    let ends = toleration.get("tolerationSeconds").is_some_and(|seconds| !seconds.is_null());
    (ends && effect != "NoExecute").then(|| {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        FieldError::invalid(format!("{place}.effect"), &Value::from(effect), why)
    })
}
