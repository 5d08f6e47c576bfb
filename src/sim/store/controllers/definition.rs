//! The end of a CustomResourceDefinition: its kind is emptied first, and finalizers of what it holds are waited for.

use super::super::crd::{CLEANUP, DEFINITIONS, terminates};
use super::super::delete::Options;
use super::super::log::Entry;
use super::super::objects::{Key, finalizers, is_deleting, set_finalizers};
use super::{Store, Work};
use jiff::SignedDuration;

/// How long the controller takes to see a deletion.
const DELAY: SignedDuration = SignedDuration::from_millis(15);
/// How often it looks whether the kind is empty.
const POLL: SignedDuration = SignedDuration::from_secs(5);

impl Store {
    /// What a write means for a definition: work where it is to go, the end of its kind where it is gone.
    pub(super) fn notice_definition(&mut self, entry: &Entry) {
        match (&entry.before, &entry.after) {
            (before, Some(after))
                if is_deleting(after) && !before.as_ref().is_some_and(|before| is_deleting(before)) =>
            {
                self.schedule(Work::Definition(entry.key.name.clone()), DELAY);
            }
            (Some(before), None) => self.unserve_crd(before),
            _ => {}
        }
    }

    /// Deletes every object of the kind, and lets the definition go once none is left.
    pub(super) fn empty_kind(&mut self, name: &str) {
        let held = |definition: &&super::super::Value| finalizers(definition).iter().any(|held| held == CLEANUP);
        let definition = self.get(DEFINITIONS, "", name).filter(|definition| is_deleting(definition));
        if definition.filter(held).is_none() {
            return;
        }
        let now = self.now;
        self.modify(DEFINITIONS, "", name, |definition| {
            terminates(definition, true, "InstanceDeletionInProgress", "CustomResource deletion is in progress", now);
        });
        if let Some(kind) = self.resource(name) {
            let keys: Vec<Key> = self.entries(name, None).map(|(key, _)| key.clone()).collect();
            for key in keys {
                // Without preconditions nothing but absence can be refused.
                self.delete_object(&kind, &key, &Options::default()).ok();
            }
        }
        if self.entries(name, None).next().is_some() {
            self.schedule(Work::Definition(name.to_owned()), POLL);
            return;
        }
        let Some(definition) = self.get(DEFINITIONS, "", name) else { return };
        let others: Vec<String> = finalizers(definition).into_iter().filter(|held| held != CLEANUP).collect();
        if others.is_empty() {
            self.remove(&Key::new(DEFINITIONS, "", name));
            return;
        }
        self.modify(DEFINITIONS, "", name, |definition| {
            terminates(definition, false, "InstanceDeletionCompleted", "removed all instances", now);
            set_finalizers(definition, &others);
        });
    }
}
