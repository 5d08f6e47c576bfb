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

/// Fills in the names that follow from others, and that nothing is converted but the version.
fn complete(crd: &mut Value) {
    let kind = text(crd, "/spec/names/kind").to_owned();
    let spec = child_mut(crd, "spec");
    spec.entry("conversion").or_insert(json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut).filter(|_| !kind.is_empty()) else { return };
    names.entry("singular").or_insert(Value::from(kind.to_lowercase()));
    names.entry("listKind").or_insert(Value::from(format!("{kind}List")));
}

/// Whether a condition of a definition is true.
fn holds(crd: &Value, kind: &str) -> bool {
    let all = crd.pointer("/status/conditions").and_then(Value::as_array);
    let is = |condition: &Value| text(condition, "/type") == kind && text(condition, "/status") == "True";
    all.is_some_and(|all| all.iter().any(is))
}

/// Whether a definition's kind is served.
fn is_established(crd: &Value) -> bool {
    holds(crd, "Established")
}

/// Every version in which objects may be stored: the present one after those before.
fn stored_versions(crd: &Value) -> Vec<Value> {
    let mut stored = crd.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let present = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    for name in versions.into_iter().flatten().filter(present).filter_map(|version| version.get("name")) {
        if !stored.contains(name) {
            stored.push(name.clone());
        }
    }
    stored
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

/// The names of a definition by which its kind is found, and the reason for which each may be refused.
const NAMES: [(&str, &str); 5] = [
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
];

/// Names of kinds are apart from names of resources.
fn is_of_kind(field: &str) -> bool {
    matches!(field, "kind" | "listKind")
}

/// One name, or each of several.
fn all_of<'a>(names: &'a Value, field: &str) -> Vec<&'a str> {
    match names.get(field) {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

impl Store {
    /// Gives a definition the status that the real server's controllers reach within a second.
    pub(super) fn establish(&self, crd: &mut Value) {
        complete(crd);
        let (accepted, refused) = self.names_of(crd);
        let old = crd.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let known = |kind: &str| old.iter().find(|condition| text(condition, "/type") == kind);
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            let same = known(kind).filter(|condition| text(condition, "/status") == status);
            let at = same.and_then(|condition| condition.get("lastTransitionTime")).cloned();
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": at.unwrap_or_else(|| stamp(self.now)),
            })
        };
        let was = known("Established").is_some_and(|condition| text(condition, "/status") == "True");
        let mut conditions = vec![match &refused {
            None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            Some((reason, message)) => condition("NamesAccepted", "False", reason, message),
        }];
        conditions.push(if was || refused.is_none() {
            condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        } else {
            condition("Established", "False", "NotAccepted", "not all names are accepted")
        });
        conditions.extend(old.iter().filter(|condition| text(condition, "/type") == "Terminating").cloned());
        let stored = stored_versions(crd);
        crd["status"] = json!({"acceptedNames": accepted, "storedVersions": stored, "conditions": conditions});
    }

    /// The names that a definition has, and why it has not all that it wants.
    fn names_of(&self, crd: &Value) -> (Value, Option<(&'static str, String)>) {
        let wanted = crd.pointer("/spec/names").cloned().unwrap_or_default();
        let mut accepted = crd.pointer("/status/acceptedNames").cloned().unwrap_or_else(|| json!({}));
        let of_group = |other: &&Value| {
            meta(other, "name") != meta(crd, "name") && text(other, "/spec/group") == text(crd, "/spec/group")
        };
        let taken: Vec<&Value> = self.objects(DEFINITIONS, None).filter(of_group).collect();
        let taken: Vec<&Value> = taken.iter().filter_map(|other| other.pointer("/status/acceptedNames")).collect();
        let mut refused = None;
        for (field, reason) in NAMES {
            let fields = NAMES.iter().map(|(other, _)| *other).filter(|other| is_of_kind(other) == is_of_kind(field));
            let used: Vec<&str> =
                fields.flat_map(|other| taken.iter().flat_map(move |names| all_of(names, other))).collect();
            let old: Vec<String> = all_of(&accepted, field).into_iter().map(str::to_owned).collect();
            let new = all_of(&wanted, field).into_iter().filter(|name| !old.iter().any(|old| old == name));
            let told: Vec<String> = new
                .filter(|name| used.contains(name))
                .map(|name| format!("{} is already in use", super::reply::quoted(name)))
                .collect();
            match (told.as_slice(), wanted.get(field)) {
                ([], Some(names)) => accepted[field] = names.clone(),
                ([], None) => drop(super::objects::as_map(&mut accepted).remove(field)),
                ([one], _) => refused = Some((reason, one.clone())),
                (several, _) => refused = Some((reason, format!("[{}]", several.join(", ")))),
            }
        }
        match wanted.get("categories") {
            Some(categories) => accepted["categories"] = categories.clone(),
            None => drop(super::objects::as_map(&mut accepted).remove("categories")),
        }
        (if refused.is_none() { wanted } else { accepted }, refused)
    }

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
        if !is_established(crd) {
            return;
        }
        let mut crd = crd.as_ref().clone();
        if let Some(names) = crd.pointer("/status/acceptedNames").cloned() {
            child_mut(&mut crd, "spec").insert("names".to_owned(), names);
        }
        let since = self.resources.get(&key.name).map_or(self.version, |kind| kind.since);
        if let Some(kind) = resource::from_crd(&crd, since) {
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
        self.accept_those_refused(text(crd, "/spec/group"));
    }

    /// Names have become free in a group: who waited for them has them now.
    fn accept_those_refused(&mut self, group: &str) {
        let accepted = |crd: &Value| holds(crd, "NamesAccepted");
        let waiting: Vec<Key> = self
            .entries(DEFINITIONS, None)
            .filter(|(_, crd)| text(crd, "/spec/group") == group && !accepted(crd))
            .map(|(key, _)| key.clone())
            .collect();
        for key in waiting {
            let Some(mut crd) = self.objects.get(&key).map(|crd| crd.as_ref().clone()) else { continue };
            self.establish(&mut crd);
            if accepted(&crd) {
                self.commit(&key, crd);
                self.serve_crd(&key);
            }
        }
    }
}
