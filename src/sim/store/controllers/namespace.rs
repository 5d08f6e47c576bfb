//! Deletion of namespaces: in order since Kubernetes 1.33 (pods first, everything else when they are gone), all at
//! once before. The delays are those of the real controller, as recorded.

use super::super::delete::Options;
use super::super::events;
use super::super::log::Entry;
use super::super::objects::{Key, finalizers, is_deleting, stamp, text};
use super::{Store, Work};
use crate::core::meta;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The controller waits this long after each change of a terminating namespace.
const SETTLE: i64 = 5;
/// How long it expects finalizers to take.
const FINALIZERS: i64 = 15;
/// Where something is left that should be gone, the controller looks again after this long, then after twice as long …
const UNEXPECTED: SignedDuration = SignedDuration::from_millis(5);
/// … up to this.
const UNEXPECTED_MOST: SignedDuration = SignedDuration::from_secs(60);

/// What a look at a namespace has found still there.
#[derive(Default)]
struct Remains {
    /// Objects by resource.
    objects: BTreeMap<String, usize>,
    /// Objects by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// Seconds that the rest is expected to take.
    estimate: i64,
    /// What should be gone by now and is not.
    unexpected: Vec<String>,
}

impl Store {
    /// A namespace that has begun to terminate, or changed while it does, is looked at after a while.
    pub(super) fn notice_namespace(&mut self, entry: &Entry) {
        if entry.after.as_ref().is_some_and(|namespace| is_deleting(namespace)) {
            self.schedule(Work::Namespace(entry.key.name.clone()), SignedDuration::from_secs(SETTLE));
        }
    }

    /// One look at a terminating namespace.
    pub(super) fn sync_namespace(&mut self, name: &str) {
        let Some(namespace) = self.get("namespaces", "", name).filter(|namespace| is_deleting(namespace)) else {
            return;
        };
        if namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return self.finalize_namespace(name);
        }
        let ordered = self.settings.ordered_namespace_deletion;
        let mut remains = Remains::default();
        let mut pods_left = false;
        if ordered {
            let mut pods = Remains::default();
            self.empty(name, "pods", &mut pods);
            pods_left = !pods.objects.is_empty();
            remains.estimate = pods.estimate;
            remains.unexpected = pods.unexpected;
        }
        if !pods_left {
            for resource in self.deletion_order(ordered) {
                self.empty(name, &resource, &mut remains);
            }
        }
        let done = !pods_left && remains.objects.is_empty();
        let again = self.looks_again(name, &remains);
        // A look that ends at the pods reports nothing as remaining.
        let shown = if pods_left { Remains { unexpected: remains.unexpected, ..Remains::default() } } else { remains };
        self.report(name, &shown);
        if done {
            self.unexpected.remove(name);
            self.finalize_namespace(name);
        } else {
            self.schedule(Work::Namespace(name.to_owned()), again);
        }
    }

    /// After how long it looks again.
    fn looks_again(&mut self, name: &str, remains: &Remains) -> SignedDuration {
        if remains.unexpected.is_empty() {
            return SignedDuration::from_secs(remains.estimate / 2 + 1);
        }
        let times = self.unexpected.entry(name.to_owned()).or_insert(0);
        let pause = UNEXPECTED.saturating_mul(1_i32.checked_shl(*times).filter(|_| *times < 20).unwrap_or(1 << 20));
        *times = times.saturating_add(1);
        pause.min(UNEXPECTED_MOST)
    }

    /// The namespaced resources in the order in which they are emptied. The real order is random where it is not
    /// pods first; this one is what was recorded.
    fn deletion_order(&self, ordered: bool) -> Vec<String> {
        let rank = |name: &str, custom: bool| match (name, custom) {
            ("serviceaccounts", _) => 0,
            (_, true) if !ordered => 1,
            ("pods", _) => 2,
            (_, false) => 3,
            (_, true) => 4,
        };
        let mut all: Vec<(i32, String)> = self
            .resources
            .values()
            .filter(|resource| resource.namespaced && !events::is_new_face(&resource.qualified()))
            .map(|resource| (rank(&resource.qualified(), resource.is_custom()), resource.qualified()))
            .collect();
        all.sort();
        all.into_iter().map(|(_, name)| name).collect()
    }

    /// Deletes what a namespace holds of one resource, and notes what stays.
    fn empty(&mut self, namespace: &str, resource: &str, remains: &mut Remains) {
        let Some(kind) = self.resource(resource) else { return };
        let keys: Vec<Key> = self.entries(resource, Some(namespace)).map(|(key, _)| key.clone()).collect();
        let mut estimate = 0;
        for key in &keys {
            let Some(object) = self.objects.get(key) else { continue };
            let finished = matches!(text(object, "/status/phase"), "Failed" | "Succeeded");
            if kind.is_pod() && !finished {
                let grace = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
                estimate = estimate.max(grace);
            }
            let options = Options { propagation: Some("Background".to_owned()), ..Options::default() };
            // Without preconditions nothing but absence can be refused.
            self.delete_object(&kind, key, &options).ok();
        }
        let left: Vec<&Value> = self.objects(resource, Some(namespace)).collect();
        if left.is_empty() {
            return;
        }
        let mut held = BTreeMap::new();
        for finalizer in left.iter().flat_map(|object| finalizers(object)) {
            *held.entry(finalizer).or_insert(0) += 1;
        }
        // What a namespace holds has the time that it asks for, counted from the namespace's deletion.
        let deleted = self.get("namespaces", "", namespace).and_then(|object| meta::time(object, "deletionTimestamp"));
        if deleted.is_some_and(|at| self.now.duration_since(at).as_secs() >= estimate) {
            estimate = 0;
        }
        if estimate == 0 && !held.is_empty() {
            estimate = FINALIZERS;
        }
        if estimate == 0 {
            let what = format!("{}/{}, Resource={}", kind.group, kind.version, kind.plural);
            remains.unexpected.push(format!("unexpected items still remain in namespace: {namespace} for gvr: {what}"));
        }
        remains.estimate = remains.estimate.max(estimate);
        let shown = if kind.group.is_empty() { format!("{}.", kind.plural) } else { kind.qualified() };
        remains.objects.insert(shown, left.len());
        for (finalizer, count) in held {
            *remains.finalizers.entry(finalizer).or_insert(0) += count;
        }
    }

    /// Writes the conditions.
    fn report(&mut self, name: &str, remains: &Remains) {
        let now = stamp(self.now);
        let list = |all: &BTreeMap<String, usize>, word: &str| {
            all.iter()
                .map(|(what, count)| format!("{what} {word} {count} resource instances"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let content = if remains.objects.is_empty() {
            ("False", "ContentRemoved", "All content successfully removed".to_owned())
        } else {
            let what = format!("Some resources are remaining: {}", list(&remains.objects, "has"));
            ("True", "SomeResourcesRemain", what)
        };
        let held = if remains.finalizers.is_empty() {
            ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
        } else {
            let what = list(&remains.finalizers, "in");
            ("True", "SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {what}"))
        };
        let fine = |reason: &'static str, message: &str| ("False", reason, message.to_owned());
        let failure = if remains.unexpected.is_empty() {
            fine("ContentDeleted", "All content successfully deleted, may be waiting on finalization")
        } else {
            let (count, what) = (remains.unexpected.len(), remains.unexpected.join(", "));
            ("True", "ContentDeletionFailed", format!("Failed to delete all resource types, {count} remaining: {what}"))
        };
        let wanted = [
            ("NamespaceDeletionDiscoveryFailure", fine("ResourcesDiscovered", "All resources successfully discovered")),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                fine("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ),
            ("NamespaceDeletionContentFailure", failure),
            ("NamespaceContentRemaining", content),
            ("NamespaceFinalizersRemaining", held),
        ];
        self.modify("namespaces", "", name, |namespace| {
            for (kind, (status, reason, message)) in wanted {
                put_condition(
                    namespace,
                    kind,
                    json!({
                        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
                    }),
                );
            }
        });
    }

    /// Takes the last hold off a namespace. The deletion event carries its last stored state.
    fn finalize_namespace(&mut self, name: &str) {
        let key = Key::new("namespaces", "", name);
        let held = self.objects.get(&key).is_some_and(|namespace| !finalizers(namespace).is_empty());
        if !held {
            self.remove(&key);
        } else {
            self.modify("namespaces", "", name, |namespace| namespace["spec"] = json!({}));
        }
    }
}

/// Replaces a condition in place if it says something else.
fn put_condition(namespace: &mut Value, kind: &str, condition: Value) {
    let status = super::super::objects::child_mut(namespace, "status");
    let list = status.entry("conditions").or_insert(json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let same = |old: &Value| ["status", "reason", "message"].iter().all(|field| old.get(field) == condition.get(field));
    match list.iter_mut().find(|old| text(old, "/type") == kind) {
        Some(old) if same(old) => {}
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}
