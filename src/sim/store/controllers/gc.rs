//! The garbage collector: dependents whose owners are gone, and foreground and orphaning deletions.

use super::super::delete::{FOREGROUND, ORPHAN, Options};
use super::super::log::Entry;
use super::super::objects::{Key, finalizers, is_deleting, is_owned_by, meta, owners, set_finalizers, set_meta, text};
use super::super::update::is_released;
use super::{Store, Work};
use jiff::SignedDuration;
use serde_json::Value;

/// How long the collector takes to act on what it saw: about what was measured.
const DELAY: SignedDuration = SignedDuration::from_millis(15);

impl Store {
    /// What a write means for owners and dependents.
    pub(super) fn notice_ownership(&mut self, entry: &Entry) {
        match &entry.after {
            Some(after) => {
                let absent = owners(after).iter().any(|owner| self.owner_of(&entry.key, owner).is_none());
                if absent {
                    self.schedule(Work::Dependent(meta(after, "uid").to_owned()), DELAY);
                }
                let held = |object: &Value| finalizers(object).iter().any(|name| name == FOREGROUND || name == ORPHAN);
                let before = entry.before.as_ref().is_some_and(|before| is_deleting(before) && held(before));
                if is_deleting(after) && held(after) && !before {
                    if is_foreground(after) {
                        // All dependents are looked at once; later only those that block are waited for.
                        for uid in self.dependents(meta(after, "uid")) {
                            self.schedule(Work::Dependent(uid), DELAY);
                        }
                    }
                    self.schedule(Work::Owner(meta(after, "uid").to_owned()), DELAY);
                }
            }
            None => {
                let Some(before) = &entry.before else { return };
                for uid in self.dependents(meta(before, "uid")) {
                    self.schedule(Work::Dependent(uid), DELAY);
                }
                for owner in owners(before) {
                    let uid = text(owner, "/uid");
                    if self.by_uid(uid).is_some_and(is_foreground) {
                        self.schedule(Work::Owner(uid.to_owned()), DELAY);
                    }
                }
            }
        }
    }

    fn dependents(&self, owner: &str) -> Vec<String> {
        let dependents = self.objects.values().filter(|object| is_owned_by(object, owner));
        dependents.map(|object| meta(object, "uid").to_owned()).collect()
    }

    /// Deletes an object that has owners none of which stays; takes those that go off one that has another.
    pub(super) fn collect_dependent(&mut self, uid: &str) {
        let Some(key) = self.key_of(uid) else { return };
        let Some(object) = self.objects.get(&key).cloned() else { return };
        if is_deleting(&object) {
            return;
        }
        let all = owners(&object);
        let waiting = |owner: &Value| self.owner_of(&key, owner).is_some_and(is_foreground);
        let solid: Vec<Value> =
            all.iter().filter(|owner| self.owner_of(&key, owner).is_some() && !waiting(owner)).cloned().collect();
        if solid.len() == all.len() {
            return;
        }
        if !solid.is_empty() {
            self.modify(&key.resource, &key.namespace, &key.name, |object| {
                set_meta(object, "ownerReferences", Value::Array(solid));
            });
            return;
        }
        let in_foreground = all.iter().any(waiting) && !self.dependents(uid).is_empty();
        self.delete_as_collector(&key, uid, in_foreground.then(|| "Foreground".to_owned()));
    }

    /// The owner that a reference names; one in another namespace counts as absent.
    fn owner_of(&self, dependent: &Key, reference: &Value) -> Option<&Value> {
        let key = self.by_uid.get(text(reference, "/uid"))?;
        let reachable = key.namespace.is_empty() || key.namespace == dependent.namespace;
        reachable.then(|| self.objects.get(key)).flatten().map(AsRef::as_ref)
    }

    fn delete_as_collector(&mut self, key: &Key, uid: &str, propagation: Option<String>) {
        let Some(resource) = self.resource(&key.resource) else { return };
        let options = Options { propagation, uid: Some(uid.to_owned()), ..Options::default() };
        // The only refusal is a uid that has changed meanwhile, and then there is nothing to delete.
        self.delete_object(&resource, key, &options).ok();
    }

    /// Goes on with an owner whose deletion waits for its dependents.
    pub(super) fn process_owner(&mut self, uid: &str) {
        let Some(owner) = self.by_uid(uid).filter(|owner| is_deleting(owner)) else { return };
        let held = finalizers(owner);
        if held.iter().any(|name| name == ORPHAN) {
            self.orphan(uid);
        } else if held.iter().any(|name| name == FOREGROUND) {
            self.delete_in_foreground(uid);
        }
    }

    fn orphan(&mut self, uid: &str) {
        for dependent in self.dependents(uid) {
            let Some(key) = self.key_of(&dependent) else { continue };
            self.modify(&key.resource, &key.namespace, &key.name, |object| {
                let kept: Vec<Value> =
                    owners(object).iter().filter(|owner| text(owner, "/uid") != uid).cloned().collect();
                set_meta(object, "ownerReferences", Value::Array(kept));
            });
        }
        self.drop_finalizer(uid, ORPHAN);
    }

    fn delete_in_foreground(&mut self, uid: &str) {
        let blocks = |object: &Value| {
            let blocking = |owner: &&Value| owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
            owners(object).iter().filter(|owner| text(owner, "/uid") == uid).any(|owner| blocking(&owner))
        };
        let blocking: Vec<String> = self
            .objects
            .values()
            .filter(|object| blocks(object))
            .map(|object| meta(object, "uid").to_owned())
            .collect();
        if blocking.is_empty() {
            self.drop_finalizer(uid, FOREGROUND);
            return;
        }
        for dependent in blocking {
            self.collect_dependent(&dependent);
        }
    }

    fn drop_finalizer(&mut self, uid: &str, finalizer: &str) {
        let Some(key) = self.key_of(uid) else { return };
        let (Some(object), Some(resource)) = (self.objects.get(&key).cloned(), self.resource(&key.resource)) else {
            return;
        };
        let kept: Vec<String> = finalizers(&object).into_iter().filter(|name| name != finalizer).collect();
        let mut next = object.as_ref().clone();
        set_finalizers(&mut next, &kept);
        if is_released(&resource, &object, &next) {
            self.remove(&key);
        } else {
            self.modify(&key.resource, &key.namespace, &key.name, |object| set_finalizers(object, &kept));
        }
    }
}

fn is_foreground(object: &Value) -> bool {
    is_deleting(object) && finalizers(object).iter().any(|name| name == FOREGROUND)
}
