//! The watch cache as data: the newest of every object, what each watch has seen, and which of our own writes it has not.

use super::kinds::Kind;
use super::queue::Priority;
use super::wake::{Key, Wake};
use crate::core::action::{ActionKind, Attempt, Live, Subject};
use crate::core::cocoonset::budget;
use crate::core::cocoonset::concerns::teardown::names_due;
use crate::core::cocoonset::ended::is_open;
use crate::core::cocoonset::observed::{Lease, LivePod, NamespaceSeen, NodeFacts, NodeSeen, Observed, SetFacts};
use crate::core::contract::lifecycle::State;
use crate::core::memory::{Memory, Watched};
use crate::core::meta;
use crate::core::outcome::{Answer, Effect, Outcome};
use crate::core::pod::facts::PodFacts;
use crate::core::vanished::Vanished;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What the driver knows and the cache does not.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Wall clock.
    pub now: Timestamp,
    /// Since the process started.
    pub mono: Duration,
    /// Spreads timers.
    pub seed: u64,
    /// The right to write.
    pub lease: Lease,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnWrite {
    pub(super) uid: String,
    pub(super) kind: Kind,
    pub(super) version: u64,
    what: String,
}

/// The cache.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(super) sets: BTreeMap<Key, SetFacts>,
    pub(super) pods: BTreeMap<Key, PodFacts>,
    pub(super) hibernations: BTreeMap<Key, String>,
    pub(super) namespaces: BTreeMap<String, NamespaceSeen>,
    pub(super) nodes: BTreeMap<String, NodeFacts>,
    pub(super) names: super::names_index::NamesIndex,
    pub(super) synced: BTreeSet<Kind>,
    pub(super) versions: BTreeMap<Kind, String>,
    pub(super) writes: Vec<OwnWrite>,
    /// Uid of each set to its key.
    pub(super) uids: BTreeMap<String, Key>,
    pub(super) memory: BTreeMap<String, Memory>,
    pub(super) vanished: BTreeMap<String, BTreeMap<String, Vanished>>,
    /// Sets that went with the finalizer we took off: uid to the version that the answer showed.
    pub(super) released: BTreeMap<String, String>,
    pub(super) mirror: Option<super::mirror::Mirror>,
}

impl View {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// True once this kind has been listed.
    pub fn is_synced(&self, kind: Kind) -> bool {
        self.synced.contains(&kind)
    }
    /// Every set in the cache.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.sets.keys()
    }
    /// One set in the cache.
    pub fn set(&self, key: &Key) -> Option<&SetFacts> {
        self.sets.get(key)
    }

    /// All that a decision about this set may depend on; `None` where there is no such set, or only the watch has not
    /// shown yet that it went with our finalizer.
    pub fn observe(&self, key: &Key, clocks: Clocks) -> Option<Observed> {
        let set = self.sets.get(key).filter(|set| !self.released.contains_key(&set.uid))?;
        let mut seen = Observed::of(set.clone(), clocks.now, clocks.mono);
        seen.seed = clocks.seed;
        seen.lease = clocks.lease;
        seen.memory = self.memory.get(&set.uid).cloned().unwrap_or_default();
        seen.versions =
            self.versions.iter().map(|(kind, version)| (kind.resource().to_owned(), version.clone())).collect();
        seen.unseen = self.writes.iter().filter(|write| write.uid == set.uid).map(|write| write.what.clone()).collect();
        seen.namespace = self.namespaces.get(&key.namespace).cloned().unwrap_or(NamespaceSeen::Unknown);
        self.add_pods(key, &mut seen);
        self.add_surroundings(key, &mut seen);
        budget::meet(&mut seen);
        Some(seen)
    }

    /// Takes in the answer to one action, at once: what the watch still has to show, and whose delete it was.
    pub fn answered(&mut self, subject: &Subject, attempt: &Attempt, outcome: &Outcome) {
        if attempt.dry_run || outcome.effect() != Effect::Happened {
            return;
        }
        if attempt.action == ActionKind::DeletePod
            && let Some(pod) = self.pods.get(&Key::new(&subject.namespace, &attempt.target))
        {
            let uid = pod.uid.to_string();
            let memory = self.memory.entry(subject.uid.clone()).or_default();
            memory.deleted.insert(attempt.target.clone(), uid);
        }
        let Answer::Object(object) = &outcome.answer else { return };
        if attempt.action == ActionKind::CreatePod {
            let memory = self.memory.entry(subject.uid.clone()).or_default();
            memory.watched.insert(meta::text(object, "uid"), Watched::default());
        }
        if attempt.action == ActionKind::RemoveFinalizer && is_released(object) {
            // The answer bears the version of before: no watch is waited for.
            self.released.insert(subject.uid.clone(), meta::text(object, "resourceVersion"));
        }
        let Some(kind) = shown_by(attempt, object) else { return };
        let Ok(version) = meta::text(object, "resourceVersion").parse::<u64>() else { return };
        if version > self.seen_version(kind) {
            let what = attempt.to_string();
            self.writes.push(OwnWrite { uid: subject.uid.clone(), kind, version, what });
        }
    }

    /// Keeps what outlives a pass, and answers who has to look at what it found out.
    pub fn rest(&mut self, seen: Observed) -> Vec<Wake> {
        let uid = seen.set.uid.clone();
        if !self.uids.contains_key(&uid) {
            self.forget(&uid);
            return Vec::new();
        }
        let doubtful = self.doubtful(&uid);
        if let Some(vanished) = self.vanished.get_mut(&uid) {
            for (name, kept) in &seen.memory.vanished {
                vanished.insert(name.clone(), kept.clone());
            }
            vanished.retain(|name, gone| {
                // Found under its uid without our owner reference, it is a stranger's, and looked at as such.
                let disowned = seen.strangers.get(name).is_some_and(|stranger| stranger.uid == gone.uid);
                !disowned && seen.pods.get(name).is_none_or(|pod| pod.uid.as_str() == gone.uid)
            });
        } else if !seen.memory.vanished.is_empty() {
            self.vanished.insert(uid.clone(), seen.memory.vanished.clone());
        }
        let mut memory = seen.memory.clone();
        let noted = self.memory.remove(&uid).unwrap_or_default();
        for (pod, watched) in noted.watched {
            let known = memory.watched.entry(pod).or_default();
            known.ever_ready |= watched.ever_ready;
            known.ever_marked |= watched.ever_marked;
            known.failing = watched.failing;
        }
        memory.woken.extend(noted.woken);
        memory.woken.extend(seen.pods.values().filter(|pod| is_woken(pod)).map(|pod| pod.uid.to_string()));
        self.prune(&seen, &mut memory);
        if let Some(vanished) = self.vanished.get_mut(&uid) {
            let kept = &memory.vanished;
            vanished.retain(|name, gone| {
                // What nobody has looked for yet may run, whoever speaks of it (decision R26).
                let stands = !gone.confirmed || kept.contains_key(name) || !seen.memory.vanished.contains_key(name);
                // One that no watch shows is looked for until it is gone, our delete or not.
                let hidden = |pod: &PodFacts| pod.uid.as_str() == gone.uid && pod.is_hidden();
                let hidden = seen.pods.get(name).is_some_and(hidden);
                let ours = memory.deleted.get(name) == Some(&gone.uid) && !hidden;
                // Its end was seen before the answer to our delete; or it left the watch before, and a live answer showed it.
                gone.by_us |= ours;
                gone.confirmed |= ours && !seen.found_live(name, &gone.uid);
                // Whose delete it was says as little of its VM (R18).
                stands && (!ours || gone.may_run())
            });
        }
        self.memory.insert(uid.clone(), memory);
        let doubted = self.doubtful(&uid);
        self.settle_names(doubtful.difference(&doubted))
    }

    /// Pods of this set that left the watch, and that nobody has looked for yet.
    fn doubtful(&self, uid: &str) -> BTreeSet<Key> {
        let Some(set) = self.uids.get(uid) else { return BTreeSet::new() };
        let vanished = self.vanished.get(uid).into_iter().flatten().filter(|(_, gone)| !gone.confirmed);
        vanished.map(|(name, _)| Key::new(&set.namespace, name)).collect()
    }

    /// Whoever waits for the VM names of these pods may have them: they are gone, as a live read says.
    fn settle_names<'a>(&mut self, gone: impl Iterator<Item = &'a Key>) -> Vec<Wake> {
        let mut woken = Vec::new();
        for key in gone.filter(|key| !self.pods.contains_key(*key)).collect::<Vec<_>>() {
            let waiting = self.names.release_pod(key);
            woken.extend(waiting.into_iter().map(|key| Wake { key, priority: Priority::Event }));
        }
        woken
    }

    /// Memory is bounded by what is there, wanted, or listed by the status.
    fn prune(&self, seen: &Observed, memory: &mut Memory) {
        let (set, pods) = (&seen.set, &seen.pods);
        let known = |name: &str| self.pods.get(&Key::new(&set.namespace, name));
        memory.deleted.retain(|name, uid| known(name).is_none_or(|pod| pod.uid.as_str() == uid));
        memory.absent.retain(|name| known(name).is_none());
        let namespace = self.pods.range(Key::first_of(&set.namespace)..);
        let mut uids: BTreeSet<&str> = namespace
            .take_while(|(key, _)| key.namespace == set.namespace)
            .filter(|(_, pod)| pod.is_controlled_by(&set.uid))
            .map(|(_, pod)| pod.uid.as_str())
            .collect();
        uids.extend(pods.values().map(|pod| pod.uid.as_str()));
        let settled = memory.found.is_empty() && memory.kept.is_empty() && memory.collected.is_empty();
        let due = if settled && memory.attempts.is_empty() { BTreeSet::new() } else { names_due(seen) };
        let vms = |vm: &str| due.contains(vm);
        // Where a VM may run is known to nobody else once the status was wiped, wanted or not (R18).
        let pods = |name: &str| known(name).is_some() || set.speaks_of(name) || is_open(seen, name);
        memory.retain(&pods, &|uid| uids.contains(uid), &vms);
        memory.retain_nodes(&|node| set.status.node_names().any(|listed| listed == node) || set.accepts_loss_of(node));
    }

    /// What is kept about an object, for a dump.
    pub fn memory(&self, uid: &str) -> Option<&Memory> {
        self.memory.get(uid)
    }
    /// Sets what is kept about an object, from a dump.
    pub fn remember(&mut self, uid: &str, memory: Memory) {
        self.vanished.insert(uid.to_owned(), memory.vanished.clone());
        self.memory.insert(uid.to_owned(), memory);
    }

    /// How many entries each map holds, for metrics and for the proof that nothing is left behind.
    pub fn sizes(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("sets", self.sets.len()),
            ("pods", self.pods.len()),
            ("hibernations", self.hibernations.len()),
            ("namespaces", self.namespaces.len()),
            ("nodes", self.nodes.len()),
            ("names", self.names.sizes().0),
            ("pod_names", self.names.sizes().1),
            ("writes", self.writes.len()),
            ("uids", self.uids.len()),
            ("memory", self.memory.len()),
            ("vanished", self.vanished.len()),
            ("released", self.released.len()),
        ])
    }

    fn add_pods(&self, key: &Key, seen: &mut Observed) {
        let uid = seen.set.uid.clone();
        for (pod_key, pod) in self.pods.range(Key::first_of(&key.namespace)..) {
            if pod_key.namespace != key.namespace {
                break;
            }
            let gone = self.vanished.get(&uid).and_then(|vanished| vanished.get(pod.name.as_str()));
            if gone.is_some_and(|gone| gone.confirmed && gone.uid == pod.uid.as_str()) {
                // A live answer knows better than the watch: this incarnation is gone, and none comes back.
                continue;
            }
            if pod.is_controlled_by(&uid) {
                let mut pod = pod.clone();
                pod.deleting |=
                    seen.memory.deleted.get(pod.name.as_str()).map(String::as_str) == Some(pod.uid.as_str());
                seen.pods.insert(pod.name.to_string(), pod);
            } else if pod.labels.get(crate::core::contract::keys::NAME) == Some(&key.name) {
                seen.strangers.insert(pod.name.to_string(), LivePod::of_facts(pod));
            }
        }
        seen.memory.vanished = self.vanished.get(&uid).cloned().unwrap_or_default();
        let pods = &seen.pods;
        seen.memory.vanished.retain(|name, gone| pods.get(name).is_none_or(|pod| pod.uid.as_str() == gone.uid));
    }

    fn add_surroundings(&self, key: &Key, seen: &mut Observed) {
        let targeted = self.hibernations.iter().filter(|(at, _)| at.namespace == key.namespace);
        // By name alone: `demo-x-0` is not a pod of the set `demo` only because it begins like one.
        let is_ours = |pod: &String| seen.pods.contains_key(pod) || seen.set.speaks_of(pod);
        seen.hibernations = targeted.filter(|(_, pod)| is_ours(pod)).map(|(_, pod)| pod.clone()).collect();
        if self.synced.contains(&Kind::Nodes) {
            let mut wanted: BTreeSet<&str> =
                seen.pods.values().filter_map(|pod| pod.node.as_ref().map(|node| node.as_str())).collect();
            wanted.extend(seen.memory.vanished.values().filter_map(|gone| gone.node.as_deref()));
            wanted.extend(seen.set.status.node_names());
            wanted.extend(seen.set.accepted_losses());
            let shown = |name: &str| self.nodes.get(name).map_or(NodeSeen::Gone, |node| NodeSeen::There(*node));
            seen.nodes = Some(wanted.into_iter().map(|name| (name.to_owned(), shown(name))).collect());
        }
        let borne: Vec<String> = seen.pods.values().filter_map(|pod| seen.vm_of(pod)).collect();
        let may_run = |set: &SetFacts, vm: &str| self.may_run_without_pod(set, vm);
        seen.rivals = self.names.rivals(key, borne.iter().map(String::as_str), &self.sets, &self.uids, &may_run);
    }

    /// A VM of this set that nobody saw end, on a lost node (R18).
    fn may_run_without_pod(&self, set: &SetFacts, vm: &str) -> bool {
        let went = |pod: &str| self.vanished.get(&set.uid).and_then(|vanished| vanished.get(pod));
        let node = |pod: &str| match went(pod) {
            Some(gone) => gone.node.clone().filter(|_| gone.may_run()),
            None => set.status.last_node_of(pod).map(str::to_owned),
        };
        let gone = |pod: &&str| !self.pods.contains_key(&Key::new(&set.namespace, pod));
        let lost = |node: String| {
            let is_up = self.nodes.get(&node).is_some_and(NodeFacts::may_be_up);
            self.synced.contains(&Kind::Nodes) && !is_up && !set.accepts_loss_of(&node)
        };
        set.status.pods_of_vm(vm).filter(gone).filter_map(node).any(lost)
    }

    pub(super) fn forget(&mut self, uid: &str) {
        let doubtful = self.doubtful(uid);
        for key in doubtful.iter().filter(|key| !self.pods.contains_key(*key)) {
            self.names.remove_pod(key);
        }
        self.released.remove(uid);
        self.memory.remove(uid);
        self.vanished.remove(uid);
        self.writes.retain(|write| write.uid != uid);
    }

    pub(super) fn seen_version(&self, kind: Kind) -> u64 {
        self.versions.get(&kind).and_then(|version| version.parse().ok()).unwrap_or(0)
    }
}

/// An object whose deletion nothing holds up any more.
fn is_released(object: &serde_json::Value) -> bool {
    let held = meta::strings(object, "finalizers").is_some_and(|list| !list.is_empty());
    meta::metadata(object).get("deletionTimestamp").is_some() && !held
}

/// A pod made to restore a VM, which is up.
pub(super) fn is_woken(pod: &PodFacts) -> bool {
    pod.restore && (pod.ready || pod.lifecycle.state == State::Ready)
}

/// The kind whose watch will show this object as it was answered: what we wrote, and what a live read showed before the
/// watch did. Deciding once more on the older one would send the same write again (D-11).
fn shown_by(attempt: &Attempt, object: &serde_json::Value) -> Option<Kind> {
    match attempt.action {
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus => {
            Some(Kind::CocoonSets)
        }
        ActionKind::CreatePod | ActionKind::DeletePod | ActionKind::PatchPod => labelled(object),
        ActionKind::ReadLive if attempt.target == Live::Object.short() => Some(Kind::CocoonSets),
        ActionKind::ReadLive if attempt.target.starts_with("pod/") => labelled(object),
        ActionKind::ReadLive
        | ActionKind::ProbeSnapshot
        | ActionKind::DeleteSnapshot
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => None,
    }
}

/// A pod without our label is in no watch of ours: whoever waited for it to show would wait for ever.
fn labelled(pod: &serde_json::Value) -> Option<Kind> {
    let labels = meta::map(pod, "labels", |key| key == crate::core::contract::keys::NAME);
    (!labels.is_empty()).then_some(Kind::Pods)
}
