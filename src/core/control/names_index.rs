//! Which sets map to which VM names. The formula is not injective: across namespaces, and between a toolbox of one set
//! and an agent of another (D-28, D-29).

use super::wake::Key;
use crate::core::cocoonset::observed::{Rival, SetFacts};
use crate::core::pod::facts::PodFacts;
use std::collections::{BTreeMap, BTreeSet};

/// VM names to sets, and back.
#[derive(Clone, Debug, Default)]
pub struct NamesIndex {
    sets: BTreeMap<String, BTreeSet<Key>>,
    names: BTreeMap<Key, BTreeSet<String>>,
}

impl NamesIndex {
    /// Takes in the names that this version of a set maps to.
    pub fn insert(&mut self, key: &Key, set: &SetFacts) {
        self.remove(key);
        let names: BTreeSet<String> = set.vm_names().into_iter().collect();
        for name in &names {
            self.sets.entry(name.clone()).or_default().insert(key.clone());
        }
        self.names.insert(key.clone(), names);
    }
    /// Forgets a set.
    pub fn remove(&mut self, key: &Key) {
        for name in self.names.remove(key).unwrap_or_default() {
            if let Some(sets) = self.sets.get_mut(&name) {
                sets.remove(key);
                if sets.is_empty() {
                    self.sets.remove(&name);
                }
            }
        }
    }
    /// How many names and sets it holds.
    pub fn len(&self) -> usize {
        self.sets.len() + self.names.len()
    }
    /// True where it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Other sets that share a name with this one.
    pub fn neighbours(&self, key: &Key) -> BTreeSet<Key> {
        self.shared(key).flat_map(|(_, sets)| sets.iter().cloned()).filter(|other| other != key).collect()
    }
    /// Per shared VM name, the other set that has most right to it.
    pub fn rivals(
        &self,
        key: &Key,
        sets: &BTreeMap<Key, SetFacts>,
        pods: &BTreeMap<Key, PodFacts>,
    ) -> BTreeMap<String, Rival> {
        let mut rivals = BTreeMap::new();
        for (name, others) in self.shared(key) {
            let found = others.iter().filter(|other| *other != key).filter_map(|other| sets.get(other));
            let best = found
                .map(|set| rival(name, set, pods))
                .max_by_key(|rival| (rival.has_it, std::cmp::Reverse((rival.created, rival.uid.clone()))));
            if let Some(best) = best {
                rivals.insert(name.clone(), best);
            }
        }
        rivals
    }
    fn shared(&self, key: &Key) -> impl Iterator<Item = (&String, &BTreeSet<Key>)> {
        let names = self.names.get(key).into_iter().flatten();
        names.filter_map(|name| self.sets.get_key_value(name)).filter(|(_, sets)| sets.len() > 1)
    }
}

fn rival(vm: &str, set: &SetFacts, pods: &BTreeMap<Key, PodFacts>) -> Rival {
    let of_namespace =
        pods.range(Key::first_of(&set.namespace)..).take_while(|(key, _)| key.namespace == set.namespace);
    let has_pod =
        of_namespace.map(|(_, pod)| pod).any(|pod| pod.is_controlled_by(&set.uid) && pod.vm_name.as_str() == vm);
    Rival {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
        created: set.created,
        has_it: has_pod || set.has_saved_state(vm),
    }
}
