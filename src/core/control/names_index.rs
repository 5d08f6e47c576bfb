//! Which sets and pods have which VM names. The formula is not injective: across namespaces, and between a toolbox of
//! one set and an agent of another (D-28, D-29).

use super::wake::Key;
use crate::core::cocoonset::observed::{Rival, SetFacts};
use crate::core::contract::names::is_of_set;
use crate::core::pod::facts::PodFacts;
use std::collections::{BTreeMap, BTreeSet};

/// VM names to sets and pods, and back.
#[derive(Clone, Debug, Default)]
pub struct NamesIndex {
    /// By VM name, the sets that speak of it, and whether that gives them a right to it.
    sets: BTreeMap<String, BTreeMap<Key, bool>>,
    names: BTreeMap<Key, BTreeMap<String, bool>>,
    /// By VM name, the pods that bear it, terminating ones too, and the uid of the set that controls each.
    pods: BTreeMap<String, BTreeMap<Key, String>>,
    vms: BTreeMap<Key, BTreeSet<String>>,
}

impl NamesIndex {
    /// Takes in the names that this version of a set speaks of.
    pub fn insert(&mut self, key: &Key, set: &SetFacts) {
        let names = spoken_of(set);
        if self.names.get(key) == Some(&names) {
            return;
        }
        self.remove(key);
        for (name, claimed) in &names {
            self.sets.entry(name.clone()).or_default().insert(key.clone(), *claimed);
        }
        self.names.insert(key.clone(), names);
    }
    /// Forgets a set.
    pub fn remove(&mut self, key: &Key) {
        for name in self.names.remove(key).unwrap_or_default().into_keys() {
            drop_from(&mut self.sets, &name, key);
        }
    }
    /// Takes in the VM name that a pod bears, if it is one that this very pod may have (decision R22).
    pub fn insert_pod(&mut self, key: &Key, pod: &PodFacts) {
        self.remove_pod(key);
        if let Some((vm, owner)) = pod.accepted_vm_name().zip(pod.owner_uid()) {
            self.pods.entry(vm.0.clone()).or_default().insert(key.clone(), owner.to_owned());
            self.vms.entry(key.clone()).or_default().insert(vm.0);
        }
    }
    /// Forgets a pod.
    pub fn remove_pod(&mut self, key: &Key) {
        for vm in self.vms.remove(key).unwrap_or_default() {
            drop_from(&mut self.pods, &vm, key);
        }
    }
    /// Forgets a pod that is gone, and answers which sets wait for its VM name.
    pub fn release_pod(&mut self, key: &Key) -> BTreeSet<Key> {
        let vms = self.vms.get(key).cloned().unwrap_or_default();
        self.remove_pod(key);
        vms.iter().flat_map(|vm| self.speakers(vm)).cloned().collect()
    }
    /// How many names and sets it holds, and how many names and pods.
    pub fn sizes(&self) -> (usize, usize) {
        (self.sets.len() + self.names.len(), self.pods.len() + self.vms.len())
    }
    /// Other sets that speak of a name that this one speaks of.
    pub fn neighbours(&self, key: &Key) -> BTreeSet<Key> {
        let names = self.names.get(key).into_iter().flat_map(BTreeMap::keys);
        names.flat_map(|name| self.speakers(name)).filter(|other| *other != key).cloned().collect()
    }
    /// Sets that wait for this pod's VM name to be free: those that speak of it, but for the one that has the pod.
    pub fn rivals_of_pod(&self, pod: &PodFacts, owner: Option<&Key>) -> BTreeSet<Key> {
        let vm = pod.accepted_vm_name();
        let speakers = vm.iter().flat_map(|vm| self.speakers(vm.as_str()));
        speakers.filter(|key| Some(*key) != owner).cloned().collect()
    }
    /// Per VM name that this set speaks of, or one of its pods bears, the other live set that has most right to it
    /// (decision R23). Where a VM may run without its pod, nobody else may have its name (R18).
    pub fn rivals<'a>(
        &self,
        key: &Key,
        borne: impl Iterator<Item = &'a str>,
        sets: &BTreeMap<Key, SetFacts>,
        uids: &BTreeMap<String, Key>,
        may_run: &dyn Fn(&SetFacts, &str) -> bool,
    ) -> BTreeMap<String, Rival> {
        let mut names: BTreeSet<&str> = borne.collect();
        names.extend(self.names.get(key).into_iter().flat_map(BTreeMap::keys).map(String::as_str));
        let best = |name: &str| {
            let with_pod: BTreeSet<&Key> =
                self.pods.get(name).into_iter().flat_map(BTreeMap::values).filter_map(|uid| uids.get(uid)).collect();
            let claiming = self.sets.get(name).into_iter().flatten().filter(|(_, claimed)| **claimed);
            let others: BTreeSet<&Key> = claiming.map(|(other, _)| other).chain(with_pod.iter().copied()).collect();
            let found = others.into_iter().filter(|other| *other != key);
            found
                .filter_map(|other| Some((sets.get(other)?, with_pod.contains(other))))
                .map(|(set, has_pod)| rival(set, name, has_pod || may_run(set, name)))
                .max_by_key(|rival| (rival.has_it, std::cmp::Reverse((rival.created, rival.uid.clone()))))
        };
        names.into_iter().filter_map(|name| Some((name.to_owned(), best(name)?))).collect()
    }
    fn speakers(&self, name: &str) -> impl Iterator<Item = &Key> {
        self.sets.get(name).into_iter().flat_map(BTreeMap::keys)
    }
}

/// Spec, status and records give a right to a name of the set's own formula. `delete-vm-names` gives none, whoever wrote
/// it (D-31): it only says what to collect in the end.
fn spoken_of(set: &SetFacts) -> BTreeMap<String, bool> {
    let mut names: BTreeMap<String, bool> = set.recorded_names().map(|name| (name.to_owned(), false)).collect();
    names.extend(set.status.vm_names().map(|name| (name.to_owned(), is_of_set(&set.namespace, &set.name, name))));
    names.extend(set.vms_on_record().chain(set.vm_names()).map(|name| (name, true)));
    names
}

fn drop_from<V>(index: &mut BTreeMap<String, BTreeMap<Key, V>>, name: &str, key: &Key) {
    if let Some(keys) = index.get_mut(name) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(name);
        }
    }
}

fn rival(set: &SetFacts, vm: &str, has_pod: bool) -> Rival {
    Rival {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
        created: set.created,
        has_it: has_pod || set.holds(vm),
    }
}
