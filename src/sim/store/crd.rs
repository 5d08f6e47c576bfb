//! CustomResourceDefinitions: accepted at once, served from then on, and kept until their kind is empty.

use super::objects::{Key, child_mut, finalizers, is_deleting, meta, set_finalizers, set_meta, stamp, text};
use super::resource::Resource;
use super::status_error::{Refused, unauthorized_action};
use super::{Store, resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where they are stored.
pub(super) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// What holds a definition until nothing of its kind is left.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Gives a definition the status that the real server's controllers reach within a second.
pub(super) fn establish(crd: &mut Value, now: Timestamp) {
    let names = crd.pointer("/spec/names").cloned().unwrap_or_default();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let stored: Vec<Value> = versions
        .iter()
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let old = crd.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let at = old.first().and_then(|first| first.get("lastTransitionTime")).cloned();
    let at = at.unwrap_or_else(|| stamp(now));
    let condition = |kind: &str, reason: &str, message: &str| {
        let mut condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
        condition["lastTransitionTime"] = at.clone();
        condition
    };
    let mut conditions = vec![
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ];
    conditions.extend(old.into_iter().filter(|condition| text(condition, "/type") == "Terminating"));
    crd["status"] = json!({"acceptedNames": names, "storedVersions": stored, "conditions": conditions});
}

/// Says how far the end of a definition is.
pub(super) fn terminates(crd: &mut Value, goes_on: bool, reason: &str, message: &str, now: Timestamp) {
    let list = child_mut(crd, "status").entry("conditions").or_insert(json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let status = if goes_on { "True" } else { "False" };
    let old = list.iter().find(|condition| text(condition, "/type") == "Terminating");
    let since = old.filter(|old| text(old, "/status") == status).and_then(|old| old.get("lastTransitionTime")).cloned();
    let condition = json!({
        "type": "Terminating", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| stamp(now)),
    });
    list.retain(|condition| text(condition, "/type") != "Terminating");
    list.push(condition);
}

impl Store {
    /// The first request to delete a definition: it is marked and held; the rest is done by a controller.
    pub(super) fn mark_definition(&mut self, key: &Key, current: &Value) -> Value {
        let mut next = current.clone();
        set_meta(&mut next, "deletionTimestamp", stamp(self.now));
        let mut held = finalizers(&next);
        if !held.iter().any(|name| name == CLEANUP) {
            held.push(CLEANUP.to_owned());
        }
        set_finalizers(&mut next, &held);
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        terminates(&mut next, true, "InstanceDeletionPending", message, self.now);
        self.commit(key, next).as_ref().clone()
    }

    /// 403 for a new object of a kind that is being emptied.
    pub(super) fn check_definition_stays(&self, resource: &Resource, name: &str) -> Result<(), Refused> {
        let definition = resource.is_custom().then(|| self.get(DEFINITIONS, "", &resource.qualified())).flatten();
        let conditions = definition.filter(|definition| is_deleting(definition));
        let conditions = conditions.and_then(|definition| definition.pointer("/status/conditions")?.as_array());
        let ends =
            |condition: &Value| text(condition, "/type") == "Terminating" && text(condition, "/status") == "True";
        if conditions.is_some_and(|all| all.iter().any(ends)) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(unauthorized_action(resource, name, why));
        }
        Ok(())
    }

    /// Serves what the definition at this key describes.
    pub(super) fn serve_crd(&mut self, key: &Key) {
        let Some(crd) = self.objects.get(key) else { return };
        let since = self.resources.get(&key.name).map_or(self.version, |kind| kind.since);
        if let Some(kind) = resource::from_crd(crd, since) {
            self.resources.insert(kind.qualified(), Arc::new(kind));
        }
    }

    /// Takes a kind away, with all objects that are left of it.
    pub(super) fn unserve_crd(&mut self, crd: &Value) {
        let qualified = meta(crd, "name").to_owned();
        let keys: Vec<Key> = self.entries(&qualified, None).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.remove(&key);
        }
        if self.resources.get(&qualified).is_some_and(|kind| kind.is_custom()) {
            self.resources.remove(&qualified);
        }
    }
}
