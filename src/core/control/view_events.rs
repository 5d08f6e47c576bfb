//! What a watch says, taken into the view, and whom it wakes: changes of a projection, never of bytes.

use super::kinds::{Event, Kind};
use super::queue::Priority;
use super::view::{View, is_woken};
use super::wake::{Key, Wake};
use crate::core::api::hibernation::HibernationSpec;
use crate::core::cocoonset::is_terminating;
use crate::core::cocoonset::observed::{LivePod, NamespaceSeen, NodeFacts, SetFacts};
use crate::core::contract::lifecycle::State;
use crate::core::memory::Watched;
use crate::core::meta;
use crate::core::pod::facts::PodFacts;
use crate::core::vanished::Vanished;
use serde_json::Value;
use std::collections::BTreeSet;

impl View {
    /// Takes in what a watch says, and answers which objects have to be looked at.
    pub fn apply(&mut self, kind: Kind, event: Event) -> Vec<Wake> {
        let mut woken = Vec::new();
        if let Some(mirror) = &mut self.mirror {
            mirror.apply(kind, &event);
        }
        match event {
            Event::Listed { items, version } => {
                self.list(kind, items, &mut woken);
                self.synced.insert(kind);
                self.saw(kind, &version);
            }
            Event::Applied(object) => {
                self.upsert(kind, &object, Priority::Event, &mut woken);
                self.saw(kind, &meta::text(&object, "resourceVersion"));
            }
            Event::Deleted(object) => {
                self.note_end(kind, &object);
                self.remove(kind, &Key::of(&object), &mut woken);
                self.saw(kind, &meta::text(&object, "resourceVersion"));
            }
            Event::Bookmark(version) => self.saw(kind, &version),
            Event::Refused => {
                self.synced.remove(&kind);
                self.versions.remove(&kind);
                // What nobody tells us of any more is unknown, not as it was last.
                for key in self.keys_of(kind).into_iter().filter(|_| kind.is_optional()) {
                    self.remove(kind, &key, &mut woken);
                }
            }
        }
        self.wake_writers(&mut woken);
        woken
    }

    /// The last word about a pod says whether its VM ended, also where what came before it was not shown.
    fn note_end(&mut self, kind: Kind, object: &Value) {
        let last = LivePod::of(object);
        if kind == Kind::Pods
            && let Some(pod) = self.pods.get_mut(&Key::of(object)).filter(|pod| pod.uid.as_str() == last.uid)
        {
            let mut last = PodFacts::read(object);
            last.follow(pod);
            pod.stopped = last.stopped;
        }
    }

    fn list(&mut self, kind: Kind, items: Vec<Value>, woken: &mut Vec<Wake>) {
        if kind == Kind::Pods && self.synced.contains(&kind) {
            items.iter().for_each(|pod| self.doubt_unseen(pod));
        }
        let present: BTreeSet<Key> = items.iter().map(Key::of).collect();
        for gone in self.keys_of(kind).into_iter().filter(|key| !present.contains(key)) {
            self.remove(kind, &gone, woken);
        }
        for object in &items {
            self.upsert(kind, object, Priority::Resync, woken);
        }
    }

    /// A list that comes later than the first follows a gap: what a pod that moved meanwhile was in between, nobody saw,
    /// so that its VM may have worked (decision R16).
    fn doubt_unseen(&mut self, pod: &Value) {
        let live = LivePod::of(pod);
        let known = self.pods.get(&Key::of(pod));
        if known.is_some_and(|known| {
            known.uid.as_str() == live.uid && known.resource_version == meta::text(pod, "resourceVersion")
        }) {
            return;
        }
        let owner = live.owner.as_ref().and_then(|(_, _, uid)| self.memory.get_mut(uid));
        if let Some(watched) = owner.and_then(|memory| memory.watched.get_mut(&live.uid)) {
            watched.ever_ready = true;
        }
    }

    fn keys_of(&self, kind: Kind) -> Vec<Key> {
        match kind {
            Kind::CocoonSets => self.sets.keys().cloned().collect(),
            Kind::CocoonHibernations => self.hibernations.keys().cloned().collect(),
            Kind::Pods => self.pods.keys().cloned().collect(),
            Kind::Namespaces => self.namespaces.keys().map(|name| Key::new("", name)).collect(),
            Kind::Nodes => self.nodes.keys().map(|name| Key::new("", name)).collect(),
        }
    }

    fn upsert(&mut self, kind: Kind, object: &Value, priority: Priority, woken: &mut Vec<Wake>) {
        let key = Key::of(object);
        match kind {
            Kind::CocoonSets => self.upsert_set(key, SetFacts::of(object), priority, woken),
            Kind::Pods => self.upsert_pod(key, PodFacts::read(object), priority, woken),
            Kind::CocoonHibernations => {
                let pod = target_of(object);
                let before = self.hibernations.insert(key.clone(), pod.clone());
                if before.as_ref() != Some(&pod) {
                    self.wake_by_pod_name(&key.namespace, &pod, priority, woken);
                    if let Some(released) = before {
                        self.wake_by_pod_name(&key.namespace, &released, priority, woken);
                    }
                }
            }
            Kind::Namespaces => {
                let uid = meta::text(object, "uid");
                let seen = if is_terminating(object) {
                    NamespaceSeen::Terminating { uid }
                } else {
                    NamespaceSeen::Active { uid }
                };
                if self.namespaces.insert(key.name.clone(), seen.clone()).as_ref() != Some(&seen) {
                    self.wake_namespace(&key.name, priority, woken);
                }
            }
            Kind::Nodes => {
                let node = NodeFacts::of(object);
                if self.nodes.insert(key.name.clone(), node) != Some(node) {
                    self.wake_by_node(&key.name, priority, woken);
                }
            }
        }
    }

    fn upsert_set(&mut self, key: Key, set: SetFacts, priority: Priority, woken: &mut Vec<Wake>) {
        let known = self.sets.get(&key);
        let same_object = known.is_some_and(|known| known.uid == set.uid);
        let newer = |version: &String| set.resource_version.parse::<u64>().ok() > version.parse().ok();
        if self.released.get(&set.uid).is_some_and(newer) {
            self.released.remove(&set.uid);
        }
        let edited = known.is_some_and(|known| {
            known.generation != set.generation || known.deleting != set.deleting || known.annotations != set.annotations
        });
        let changed = known
            .is_none_or(|known| SetFacts { resource_version: set.resource_version.clone(), ..known.clone() } != set);
        // Whatever may give a right to a VM name, or end one.
        let renamed = edited
            || known.is_none_or(|known| {
                known.spec != set.spec
                    || known.uid != set.uid
                    || known.status.phase != set.status.phase
                    || known.status.vm_names().ne(set.status.vm_names())
            });
        if let Some(uid) = known.map(|known| known.uid.clone()).filter(|_| !same_object) {
            self.forget(&uid);
            self.uids.remove(&uid);
        }
        if renamed {
            // Those that shared a name until now as well: it may have become free.
            let neighbours = self.names.neighbours(&key);
            woken.extend(neighbours.into_iter().map(|key| Wake { key, priority: Priority::Event }));
            self.uids.insert(set.uid.clone(), key.clone());
            self.names.insert(&key, &set);
            woken.extend(self.names.neighbours(&key).into_iter().map(|key| Wake { key, priority: Priority::Event }));
        }
        if changed {
            let urgent = priority == Priority::Event && (edited || !same_object);
            woken.push(Wake { key: key.clone(), priority: if urgent { Priority::Edit } else { priority } });
        }
        self.sets.insert(key, set);
    }

    fn upsert_pod(&mut self, key: Key, mut pod: PodFacts, priority: Priority, woken: &mut Vec<Wake>) {
        let known = self.pods.get(&key);
        if let Some(known) = known {
            pod.follow(known);
        }
        let changed = known
            .is_none_or(|known| PodFacts { resource_version: pod.resource_version.clone(), ..known.clone() } != pod);
        let owner = pod.owner_uid().map(str::to_owned);
        if known.is_some_and(|known| known.uid != pod.uid) {
            self.remove(Kind::Pods, &key, woken);
        }
        if let Some(uid) = &owner {
            if let Some(watched) = self.memory.get_mut(uid).and_then(|memory| memory.watched.get_mut(pod.uid.as_str()))
            {
                watch(watched, &pod);
            }
            if is_woken(&pod)
                && let Some(memory) = self.memory.get_mut(uid)
            {
                memory.woken.insert(pod.uid.to_string());
            }
            // A late word about an incarnation that a live answer called gone brings it back as little.
            let gone = self.vanished.get_mut(uid);
            if let Some(vanished) = gone
                && vanished.get(pod.name.as_str()).is_some_and(|gone| !gone.confirmed || gone.uid != pod.uid.as_str())
            {
                vanished.remove(pod.name.as_str());
            }
        }
        if changed {
            self.wake_owner(&key.namespace, &pod, priority, woken);
        }
        let reborn = self
            .pods
            .get(&key)
            .is_none_or(|known| (&known.vm_name, known.owner_uid()) != (&pod.vm_name, pod.owner_uid()));
        if reborn {
            if let Some(known) = self.pods.get(&key) {
                self.wake_rivals(known, woken);
            }
            self.names.insert_pod(&key, &pod);
            self.wake_rivals(&pod, woken);
        }
        self.pods.insert(key, pod);
    }

    fn remove(&mut self, kind: Kind, key: &Key, woken: &mut Vec<Wake>) {
        match kind {
            Kind::CocoonSets => {
                if let Some(set) = self.sets.remove(key) {
                    woken.extend(
                        self.names.neighbours(key).into_iter().map(|key| Wake { key, priority: Priority::Event }),
                    );
                    self.names.remove(key);
                    self.forget(&set.uid);
                    self.uids.remove(&set.uid);
                    woken.push(Wake { key: key.clone(), priority: Priority::Event });
                }
            }
            Kind::Pods => {
                if let Some(pod) = self.pods.remove(key) {
                    // A name whose pod only left the watch is not free (decision R26).
                    if !self.note_vanished(&pod) {
                        self.names.remove_pod(key);
                        self.wake_rivals(&pod, woken);
                    }
                    self.wake_owner(&key.namespace, &pod, Priority::Event, woken);
                }
            }
            Kind::CocoonHibernations => {
                if let Some(pod) = self.hibernations.remove(key) {
                    self.wake_by_pod_name(&key.namespace, &pod, Priority::Event, woken);
                }
            }
            Kind::Namespaces => {
                if self.namespaces.remove(&key.name).is_some() {
                    self.wake_namespace(&key.name, Priority::Event, woken);
                }
            }
            Kind::Nodes => {
                if self.nodes.remove(&key.name).is_some() {
                    self.wake_by_node(&key.name, Priority::Event, woken);
                }
            }
        }
    }

    /// A pod that went without our delete is unknown until a live read (decision R26). True where it is. Whoever deleted
    /// it, its VM may live on where nobody saw it end (R18).
    fn note_vanished(&mut self, pod: &PodFacts) -> bool {
        let Some(uid) = pod.owner_uid().filter(|uid| self.uids.contains_key(*uid)) else { return false };
        let deleted = self.memory.get(uid).and_then(|memory| memory.deleted.get(pod.name.as_str()));
        let by_us = deleted.is_some_and(|deleted| deleted == pod.uid.as_str());
        let gone = Vanished { by_us, confirmed: by_us || pod.deleting, ..Vanished::of(pod) };
        if by_us && !gone.may_run() {
            return false;
        }
        let vanished = self.vanished.entry(uid.to_owned()).or_default();
        let name = pod.name.to_string();
        match vanished.get_mut(&name).filter(|gone| gone.confirmed && gone.uid == pod.uid.as_str()) {
            Some(known) => known.succeeded |= pod.stopped,
            None => drop(vanished.insert(name, gone)),
        }
        vanished.get(pod.name.as_str()).is_some_and(|gone| !gone.confirmed)
    }

    fn wake(&self, keys: impl IntoIterator<Item = Key>, priority: Priority, woken: &mut Vec<Wake>) {
        woken.extend(keys.into_iter().map(|key| Wake { key, priority }));
    }

    fn wake_owner(&self, namespace: &str, pod: &PodFacts, priority: Priority, woken: &mut Vec<Wake>) {
        let owner = pod.owner_uid().and_then(|uid| self.uids.get(uid)).cloned();
        let labelled = pod.labels.get(crate::core::contract::keys::NAME).map(|set| Key::new(namespace, set));
        let key = owner.or_else(|| labelled.filter(|key| self.sets.contains_key(key)));
        self.wake(key, priority, woken);
    }

    /// A pod that comes or goes under a shared VM name decides whose the name is (decision R23).
    fn wake_rivals(&self, pod: &PodFacts, woken: &mut Vec<Wake>) {
        let owner = pod.owner_uid().and_then(|uid| self.uids.get(uid));
        self.wake(self.names.rivals_of_pod(pod, owner), Priority::Event, woken);
    }

    fn wake_namespace(&self, namespace: &str, priority: Priority, woken: &mut Vec<Wake>) {
        let sets = self.sets.range(Key::first_of(namespace)..).map(|(key, _)| key);
        let keys: Vec<Key> = sets.take_while(|key| key.namespace == namespace).cloned().collect();
        self.wake(keys, priority, woken);
    }

    fn wake_by_pod_name(&self, namespace: &str, pod: &str, priority: Priority, woken: &mut Vec<Wake>) {
        let sets = self.sets.range(Key::first_of(namespace)..).map(|(key, _)| key);
        let of_namespace = sets.take_while(|key| key.namespace == namespace);
        let keys: Vec<Key> = of_namespace
            .filter(|key| pod.strip_prefix(&key.name).is_some_and(|rest| rest.starts_with('-')))
            .cloned()
            .collect();
        self.wake(keys, priority, woken);
    }

    fn wake_by_node(&self, node: &str, priority: Priority, woken: &mut Vec<Wake>) {
        let of_pods = self.pods.values().filter(|pod| pod.node.as_ref().is_some_and(|at| at.as_str() == node));
        let mut keys: BTreeSet<Key> =
            of_pods.filter_map(|pod| pod.owner_uid()).filter_map(|uid| self.uids.get(uid)).cloned().collect();
        let names = |set: &SetFacts| set.status.node_names().any(|at| at == node) || set.accepts_loss_of(node);
        let listed = self.sets.iter().filter(|(_, set)| names(set));
        keys.extend(listed.map(|(key, _)| key.clone()));
        // An older CRD's status names no node: then only memory knows where a pod that is gone was (R18, R25).
        let lost = |gone: &Vanished| gone.node.as_deref() == Some(node);
        let vanished = self.vanished.iter().filter(|(_, pods)| pods.values().any(lost));
        keys.extend(vanished.filter_map(|(uid, _)| self.uids.get(uid)).cloned());
        self.wake(keys, priority, woken);
    }

    fn saw(&mut self, kind: Kind, version: &str) {
        let newer = match (version.parse::<u64>(), self.versions.get(&kind).map(|known| known.parse::<u64>())) {
            (Ok(version), Some(Ok(known))) => version > known,
            _ => !version.is_empty(),
        };
        if newer {
            self.versions.insert(kind, version.to_owned());
        }
    }

    /// Whoever waited for its own writes to show is looked at once they do.
    fn wake_writers(&mut self, woken: &mut Vec<Wake>) {
        let (shown, unseen): (Vec<_>, Vec<_>) = std::mem::take(&mut self.writes)
            .into_iter()
            .partition(|write| write.version <= self.seen_version(write.kind));
        self.writes = unseen;
        for key in shown.iter().filter_map(|write| self.uids.get(&write.uid)) {
            if !woken.iter().any(|wake| &wake.key == key) {
                woken.push(Wake { key: key.clone(), priority: Priority::Event });
            }
        }
    }
}

/// What was seen of a VM since its pod was created.
fn watch(watched: &mut Watched, pod: &PodFacts) {
    watched.ever_ready |= pod.lifecycle.state == State::Ready || pod.ready;
    watched.ever_marked |= pod.hibernate;
    watched.failing = (watched.failing || pod.lifecycle.state == State::Failed) && !pod.ready;
}

/// The pod that a CocoonHibernation targets.
fn target_of(object: &Value) -> String {
    HibernationSpec::read(object.get("spec").unwrap_or(&Value::Null)).0.pod
}
