//! DELETE: preconditions, grace, finalizers, propagation.

use super::objects::{
    bump_generation, child_mut, finalizers, is_deleting, meta, plus, set_finalizers, set_meta, stamp, text, time,
};
use super::path::Call;
use super::resource::Resource;
use super::selectors::Selector;
use super::status_error::{self as say, Answer, Refused};
use super::{Key, Store, StoreReply, admission};
use serde_json::{Value, json};

/// The finalizer of a foreground deletion.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an orphaning deletion.
pub(super) const ORPHAN: &str = "orphan";

/// What the caller of a DELETE asks for, from body and query.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub grace: Option<i64>,
    pub propagation: Option<String>,
    pub uid: Option<String>,
    pub version: Option<String>,
}

impl Options {
    /// The options in a body, and what the query adds.
    pub fn of(body: &Value, call: &Call<'_>) -> Self {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let in_query = call.query("gracePeriodSeconds").and_then(|value| value.parse().ok());
        Self {
            // A negative grace means the shortest one.
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64).or(in_query).map(shortest),
            propagation: text("/propagationPolicy").or_else(|| call.query("propagationPolicy").map(str::to_owned)),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
        }
    }
    /// A deletion in the background with this grace.
    pub fn with_grace(grace: i64) -> Self {
        Self { grace: Some(grace), ..Self::default() }
    }
}

/// What a deletion did to an object.
pub(super) enum Outcome {
    /// It is there, with a deletionTimestamp.
    Marked(Value),
    /// It is gone.
    Gone(Value),
}

impl Store {
    /// DELETE of one object.
    pub(super) fn delete(&mut self, call: &Call<'_>) -> Answer {
        if !call.target.subresource.is_empty() {
            return Err(say::verb_not_supported(call.resource(), "delete"));
        }
        let current = self.current(call)?;
        admission::rules::at_admission(self, call, &current)?;
        let options = Options::of(&call.request.body, call);
        let resource = call.resource();
        match self.delete_object(resource, &call.key(), &options)? {
            Outcome::Gone(object) if !resource.is_pod() => Ok(StoreReply::json(200, success(resource, &object))),
            Outcome::Gone(object) | Outcome::Marked(object) => Ok(StoreReply::json(200, object)),
        }
    }

    /// DELETE of a collection.
    pub(super) fn delete_collection(&mut self, call: &Call<'_>) -> Answer {
        let resource = call.resource();
        if resource.is_namespace() {
            return Err(say::method_not_allowed());
        }
        // The answer is the list as it was.
        let listed = self.list(call)?;
        let labels = call.query("labelSelector").unwrap_or("");
        let selector = Selector::parse(resource, labels, call.query("fieldSelector").unwrap_or(""))?;
        let options = Options::of(&call.request.body, call);
        let namespace = (!call.target.namespace.is_empty()).then_some(call.target.namespace.as_str());
        let qualified = resource.qualified();
        let chosen: Vec<Key> = self
            .entries(&qualified, namespace)
            .filter(|(_, object)| selector.matches(object))
            .map(|(key, _)| key.clone())
            .collect();
        for key in chosen {
            self.delete_object(resource, &key, &options)?;
        }
        Ok(listed)
    }

    /// Deletes one object as far as grace and finalizers let it.
    pub(super) fn delete_object(
        &mut self,
        resource: &Resource,
        key: &Key,
        options: &Options,
    ) -> Result<Outcome, Refused> {
        let Some(current) = self.objects.get(key).cloned() else { return Err(say::not_found(resource, &key.name)) };
        check_preconditions(resource, key, &current, options)?;
        if resource.is_pod() {
            return Ok(self.delete_pod(key, &current, options));
        }
        if resource.is_namespace() {
            if matches!(key.name.as_str(), "default" | "kube-system" | "kube-public") {
                return Err(say::forbidden(resource, &key.name, "this namespace may not be deleted", Vec::new()));
            }
            return Ok(self.delete_namespace(key, &current));
        }
        if resource.is_crd() && !is_deleting(&current) {
            return Ok(Outcome::Marked(self.mark_definition(key, &current)));
        }
        let held = propagated(&current, options.propagation.as_deref());
        if held.is_empty() {
            self.remove(key);
            return Ok(Outcome::Gone(current.as_ref().clone()));
        }
        let mut next = current.as_ref().clone();
        set_finalizers(&mut next, &held);
        if resource.is_crd() {
            // The first request to delete it said nothing of grace, and every later one does.
            set_meta(&mut next, "deletionGracePeriodSeconds", json!(0));
        }
        if !is_deleting(&next) {
            set_meta(&mut next, "deletionTimestamp", stamp(self.now));
            set_meta(&mut next, "deletionGracePeriodSeconds", json!(0));
            if resource.generation {
                bump_generation(&mut next);
            }
        }
        Ok(Outcome::Marked(self.commit_if_changed(key, &current, next)))
    }

    fn commit_if_changed(&mut self, key: &Key, current: &Value, next: Value) -> Value {
        if next == *current { next } else { self.commit(key, next).as_ref().clone() }
    }

    fn delete_namespace(&mut self, key: &Key, current: &Value) -> Outcome {
        let mut next = current.clone();
        if !is_deleting(&next) {
            set_meta(&mut next, "deletionTimestamp", stamp(self.now));
            child_mut(&mut next, "status").insert("phase".to_owned(), Value::from("Terminating"));
        }
        Outcome::Marked(self.commit_if_changed(key, current, next))
    }

    /// A bound pod waits for its node; a pod without a node, a finished one and one deleted with grace 0 go at once,
    /// unless a finalizer holds them.
    fn delete_pod(&mut self, key: &Key, current: &Value, options: &Options) -> Outcome {
        let held = propagated(current, options.propagation.as_deref());
        let mut next = current.clone();
        set_finalizers(&mut next, &held);
        let known = next.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        if is_deleting(&next) {
            let shorter = options.grace.filter(|grace| known.is_none_or(|known| *grace < known));
            if let Some(grace) = shorter {
                let until = plus(self.now, grace);
                let earlier = time(meta(&next, "deletionTimestamp")).is_none_or(|old| until < old);
                if earlier {
                    set_meta(&mut next, "deletionTimestamp", stamp(until));
                }
                set_meta(&mut next, "deletionGracePeriodSeconds", json!(grace));
            }
        } else {
            let grace = grace_of(current, options.grace);
            set_meta(&mut next, "deletionTimestamp", stamp(plus(self.now, grace)));
            set_meta(&mut next, "deletionGracePeriodSeconds", json!(grace));
            bump_generation(&mut next);
        }
        let next = self.commit_if_changed(key, current, next);
        let left = next.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        if left == 0 && finalizers(&next).is_empty() {
            self.remove(key);
            return Outcome::Gone(next);
        }
        Outcome::Marked(next)
    }
}

fn grace_of(pod: &Value, asked: Option<i64>) -> i64 {
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    let grace = asked.unwrap_or(own);
    let finished = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
    if finished || text(pod, "/spec/nodeName").is_empty() { 0 } else { shortest(grace) }
}

const fn shortest(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

/// The finalizers after the propagation policy has its say.
fn propagated(object: &Value, policy: Option<&str>) -> Vec<String> {
    let mut list = finalizers(object);
    let wanted = match policy {
        None => return list,
        Some("Foreground") => Some(FOREGROUND),
        Some("Orphan") => Some(ORPHAN),
        Some(_) => None,
    };
    list.retain(|name| (name != FOREGROUND && name != ORPHAN) || wanted == Some(name.as_str()));
    if let Some(wanted) = wanted
        && !list.iter().any(|name| name == wanted)
    {
        list.push(wanted.to_owned());
    }
    list
}

fn check_preconditions(resource: &Resource, key: &Key, current: &Value, options: &Options) -> Result<(), Refused> {
    let (uid, version) = (meta(current, "uid"), meta(current, "resourceVersion"));
    if resource.is_namespace() || (resource.is_crd() && !is_deleting(current)) {
        for (what, want, have) in
            [("UID", options.uid.as_deref(), uid), ("ResourceVersion", options.version.as_deref(), version)]
        {
            if let Some(want) = want.filter(|want| *want != have) {
                let why = format!("Precondition failed: {what} in precondition: {want}, {what} in object meta: {have}");
                return Err(say::conflict(resource, &key.name, &why));
            }
        }
        return Ok(());
    }
    if let Some(want) = options.uid.as_deref().filter(|want| *want != uid) {
        let why = format!(
            "the UID in the precondition ({want}) does not match the UID in record ({uid}). The object might have been \
             deleted and then recreated"
        );
        return Err(say::precondition(resource, &key.name, &why));
    }
    if let Some(want) = options.version.as_deref().filter(|want| *want != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({want}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        );
        return Err(say::precondition(resource, &key.name, &why));
    }
    Ok(())
}

fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({"name": meta(object, "name"), "kind": resource.plural, "uid": meta(object, "uid")});
    if !resource.group.is_empty() {
        details["group"] = Value::from(resource.group.clone());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
