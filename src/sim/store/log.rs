//! Every write in order: what watches are served from, and what older states are read back from.

use super::objects::{Key, meta, set_meta};
use super::{Store, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub version: u64,
    pub key: Key,
    /// The object before; none for a creation.
    pub before: Option<Arc<Value>>,
    /// The object after; none for a removal.
    pub after: Option<Arc<Value>>,
}

/// The writes that are still remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Arc<Entry>>,
    /// Writes up to and including this version are forgotten.
    pub floor: u64,
}

impl Log {
    /// The writes after this version, oldest first.
    pub fn after(&self, version: u64) -> impl DoubleEndedIterator<Item = &Entry> {
        let from = self.entries.partition_point(|entry| entry.version <= version);
        self.entries.range(from..).map(Arc::as_ref)
    }
}

impl Store {
    /// Forgets the writes up to and including this version, as compaction and a restart of the server do: watches and
    /// continue tokens from before are too old afterwards.
    pub fn compact(&mut self, version: u64) {
        let version = version.min(self.version);
        while self.log.entries.front().is_some_and(|entry| entry.version <= version) {
            self.log.entries.pop_front();
        }
        self.log.floor = self.log.floor.max(version);
    }

    /// Stores a new state of an object under the next version.
    pub(super) fn commit(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.version = self.version.saturating_add(1);
        set_meta(&mut object, "resourceVersion", Value::from(self.version.to_string()));
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        let uid = meta(&object, "uid");
        if !uid.is_empty() {
            self.by_uid.insert(uid.to_owned(), key.clone());
        }
        self.remember(key, before, Some(Arc::clone(&object)));
        object
    }

    /// Takes an object away.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(before) = self.objects.remove(key) else { return };
        self.version = self.version.saturating_add(1);
        self.by_uid.remove(meta(&before, "uid"));
        self.remember(key, Some(before), None);
    }

    fn remember(&mut self, key: &Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        let entry = Arc::new(Entry { version: self.version, key: key.clone(), before, after });
        self.log.entries.push_back(Arc::clone(&entry));
        let surplus = self.log.entries.len().saturating_sub(self.settings.log_capacity.max(1));
        if let Some(oldest) = self.log.entries.get(surplus.wrapping_sub(1)).map(|entry| entry.version) {
            self.compact(oldest);
        }
        self.notice(&entry);
    }
}
