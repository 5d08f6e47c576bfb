//! ResourceQuota: what a create asks for, whether it fits, and what is used.

use super::super::objects::{meta, text, time};
use super::super::path::Call;
use super::super::quantity::{parse, show};
use super::super::status_error::{self as say, Refused};
use super::super::{Store, objects};
use super::rules::shown_name;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Amounts by resource name, in thousandths.
type Amounts = BTreeMap<String, i128>;

/// What to add to the quotas of a namespace once the object is stored: by quota name.
pub(in super::super) type Charges = Vec<(String, Amounts)>;

/// Resources that every container has to name under a quota on them.
const PER_CONTAINER: [&str; 8] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "ephemeral-storage",
    "requests.ephemeral-storage",
];

fn hard(quota: &Value) -> Option<&Map<String, Value>> {
    quota.pointer("/status/hard").and_then(Value::as_object)
}

/// `kind` and resource of a container that a quota's resource name counts.
fn counted(name: &str) -> (&'static str, &str) {
    match name.split_once('.') {
        Some(("requests", resource)) => ("requests", resource),
        Some(("limits", resource)) => ("limits", resource),
        _ => ("requests", name),
    }
}

/// How much of a quota's resource one object takes; none if it takes nothing of it.
fn usage(resource: &str, object: &Value, name: &str) -> Option<i128> {
    let of_this_kind = name == resource || name.strip_prefix("count/") == Some(resource);
    if of_this_kind {
        return Some(1000);
    }
    if resource != "pods" || !is_compute(name) {
        return None;
    }
    let (kind, counted) = counted(name);
    let containers = object.pointer("/spec/containers").and_then(Value::as_array)?;
    let amount = |container: &Value| container.pointer(&format!("/resources/{kind}/{counted}")).and_then(parse);
    Some(total(containers.iter().filter_map(amount)))
}

/// A sum that stays within its type whatever people write.
fn total(amounts: impl Iterator<Item = i128>) -> i128 {
    amounts.fold(0, i128::saturating_add)
}

fn is_compute(name: &str) -> bool {
    matches!(counted(name).1, "cpu" | "memory" | "ephemeral-storage")
}

/// Whether an object still counts: finished pods do not, and terminating ones not beyond their grace (R31). `count/pods`
/// alone counts every pod that is stored, whatever its state.
fn counts(name: &str, resource: &str, object: &Value, now: Timestamp) -> bool {
    if resource != "pods" || name.starts_with("count/") {
        return true;
    }
    if matches!(text(object, "/status/phase"), "Failed" | "Succeeded") {
        return false;
    }
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    time(meta(object, "deletionTimestamp")).is_none_or(|at| now <= objects::plus(at, grace))
}

/// Refuses what does not fit into the namespace's quotas. A quota whose status is not computed yet does not bind.
pub(in super::super) fn admit(store: &Store, call: &Call<'_>, object: &Value) -> Result<Charges, Refused> {
    let namespace = call.target.namespace.as_str();
    let resource = call.resource().qualified();
    let mut charges = Charges::new();
    if namespace.is_empty() || resource == "resourcequotas" {
        return Ok(charges);
    }
    let refuse = |why: String| Err(say::forbidden(call.resource(), shown_name(call, object), &why, Vec::new()));
    for quota in store.objects("resourcequotas", Some(namespace)) {
        let Some(hard) = hard(quota) else { continue };
        let name = meta(quota, "name");
        if let Some(missing) = unspecified(&resource, object, hard) {
            return refuse(format!("failed quota: {name}: must specify {missing}"));
        }
        let asked: Amounts = hard
            .keys()
            .filter_map(|key| Some((key.clone(), usage(&resource, object, key)?)))
            .filter(|(_, n)| *n != 0)
            .collect();
        let used = |key: &str| quota.pointer("/status/used").and_then(|used| used.get(key)).and_then(parse);
        let unknown: Vec<&str> = asked.keys().map(String::as_str).filter(|key| used(key).is_none()).collect();
        if !unknown.is_empty() {
            return refuse(format!("status unknown for quota: {name}, resources: {}", unknown.join(",")));
        }
        let exceeded: Vec<&str> = asked
            .iter()
            .filter(|(key, more)| {
                used(key).unwrap_or(0).saturating_add(**more) > hard.get(key.as_str()).and_then(parse).unwrap_or(0)
            })
            .map(|(key, _)| key.as_str())
            .collect();
        if !exceeded.is_empty() {
            let list = |amount: &dyn Fn(&str) -> i128| {
                let shown = |key: &&str| format!("{key}={}", show(amount(key), is_binary(key)));
                exceeded.iter().map(shown).collect::<Vec<_>>().join(",")
            };
            let requested = list(&|key| asked.get(key).copied().unwrap_or(0));
            let in_use = list(&|key| used(key).unwrap_or(0));
            let limited = list(&|key| hard.get(key).and_then(parse).unwrap_or(0));
            return refuse(format!(
                "exceeded quota: {name}, requested: {requested}, used: {in_use}, limited: {limited}"
            ));
        }
        if !asked.is_empty() {
            charges.push((name.to_owned(), asked));
        }
    }
    Ok(charges)
}

fn is_binary(name: &str) -> bool {
    matches!(counted(name).1, "memory" | "ephemeral-storage")
}

/// Which resources of the quota which containers leave open.
fn unspecified(resource: &str, object: &Value, hard: &Map<String, Value>) -> Option<String> {
    if resource != "pods" {
        return None;
    }
    let containers = object.pointer("/spec/containers").and_then(Value::as_array)?;
    let mut missing = Vec::new();
    for name in hard.keys().filter(|name| PER_CONTAINER.contains(&name.as_str())) {
        let (kind, counted) = counted(name);
        let without: Vec<&str> = containers
            .iter()
            .filter(|container| container.pointer(&format!("/resources/{kind}/{counted}")).is_none())
            .map(|container| text(container, "/name"))
            .collect();
        if !without.is_empty() {
            missing.push(format!("{name} for: {}", without.join(",")));
        }
    }
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// Adds to the quotas what was just stored.
pub(in super::super) fn charge(store: &mut Store, namespace: &str, charges: Charges) {
    for (name, amounts) in charges {
        store.modify("resourcequotas", namespace, &name, |quota| {
            for (key, more) in &amounts {
                let used = objects::as_map(objects::child_mut(quota, "status").entry("used").or_insert(Value::Null));
                let now = used.get(key).and_then(parse).unwrap_or(0);
                used.insert(key.clone(), Value::from(show(now.saturating_add(*more), is_binary(key))));
            }
        });
    }
}

/// Computes a quota's status anew.
pub(in super::super) fn recount(store: &mut Store, namespace: &str, name: &str) {
    let Some(quota) = store.get("resourcequotas", namespace, name) else { return };
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut used = Map::new();
    for key in hard.keys() {
        let uses = store
            .objects
            .iter()
            .filter(|(place, object)| place.namespace == namespace && counts(key, &place.resource, object, store.now))
            .filter_map(|(place, object)| usage(&place.resource, object, key));
        used.insert(key.clone(), Value::from(show(total(uses), is_binary(key))));
    }
    store.modify("resourcequotas", namespace, name, |quota| {
        quota["status"] = serde_json::json!({"hard": hard, "used": used});
    });
}
