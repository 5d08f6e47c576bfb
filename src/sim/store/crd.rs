//! CustomResourceDefinitions: accepted at once, and served from then on.

use super::objects::{Key, meta, stamp};
use super::status_error::FieldError;
use super::{Store, resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// Gives a definition the status that the real server's controllers reach within a second.
pub(super) fn establish(crd: &mut Value, now: Timestamp) {
    let names = crd.pointer("/spec/names").cloned().unwrap_or_default();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let stored: Vec<Value> = versions
        .iter()
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let old = crd.pointer("/status/conditions/0/lastTransitionTime").cloned();
    let at = old.unwrap_or_else(|| stamp(now));
    let condition = |kind: &str, reason: &str, message: &str| {
        let mut condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
        condition["lastTransitionTime"] = at.clone();
        condition
    };
    crd["status"] = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

/// What is wrong with a definition, as far as serving it needs to know.
pub(super) fn errors(crd: &Value) -> Vec<FieldError> {
    let Some(kind) = resource::from_crd(crd, 0) else {
        return vec![FieldError::required("spec", "group, names and versions")];
    };
    let expected = kind.qualified();
    if meta(crd, "name") == expected {
        return Vec::new();
    }
    let detail = format!("must be spec.names.plural+\".\"+spec.group: {expected}");
    vec![FieldError::invalid("metadata.name", &Value::from(meta(crd, "name")), &detail)]
}

impl Store {
    /// Serves what the definition at this key describes.
    pub(super) fn serve_crd(&mut self, key: &Key) {
        let Some(crd) = self.objects.get(key) else { return };
        let since = self.resources.get(&key.name).map_or(self.version, |kind| kind.since);
        if let Some(kind) = resource::from_crd(crd, since) {
            self.resources.insert(kind.qualified(), Arc::new(kind));
        }
    }

    /// Takes a kind away with all its objects.
    pub(super) fn unserve_crd(&mut self, crd: &Value) {
        let Some(kind) = resource::from_crd(crd, 0) else { return };
        let qualified = kind.qualified();
        let keys: Vec<Key> = self.entries(&qualified, None).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.remove(&key);
        }
        self.resources.remove(&qualified);
    }
}
