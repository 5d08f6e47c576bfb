//! Everything that a decision about one CocoonSet may depend on, and nothing else.

pub use super::node::{NodeFacts, NodeSeen};
use crate::core::action::{Attempt, Subject};
use crate::core::api::cocoonset::SetSpec;
use crate::core::api::set_status::SetStatus;
use crate::core::contract::delete_names::{self, DeleteNames};
use crate::core::contract::keys;
use crate::core::contract::names::{VmName, accepted_vm};
use crate::core::contract::rebuilds::Histories;
use crate::core::fact::Fact;
use crate::core::memory::Memory;
use crate::core::meta;
use crate::core::oddity::Oddity;
use crate::core::outcome::Class;
use crate::core::pod::facts::PodFacts;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All that is seen of one CocoonSet and its surroundings.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Wall clock, for what is written down.
    pub now: Timestamp,
    /// Time since the process started, for what is waited for (D-48).
    pub mono: Duration,
    /// Spreads timers; drawn by the shell.
    pub seed: u64,
    /// The right to write, and for how long.
    pub lease: Lease,
    /// What each watch has seen, by kind.
    pub versions: BTreeMap<String, String>,
    /// Our own writes that the watches have not shown yet, for people.
    pub unseen: Vec<String>,
    /// The set itself.
    pub set: SetFacts,
    /// Pods under its uid, terminating ones included, by name.
    pub pods: BTreeMap<String, PodFacts>,
    /// Pods that bear its label and are not its own, or were found under a name of its formula.
    pub strangers: BTreeMap<String, LivePod>,
    /// Its namespace, as the watch shows it.
    pub namespace: NamespaceSeen,
    /// Nodes by name, as far as anything named them when the pass began; `None` where they are not watched.
    pub nodes: Option<BTreeMap<String, NodeSeen>>,
    /// Names of pods that a CocoonHibernation targets.
    pub hibernations: BTreeSet<String>,
    /// Other live sets with a claim to a VM name of this one, or a pod that bears it (D-29).
    pub rivals: BTreeMap<String, Rival>,
    /// What the registry said, by VM name and tag.
    pub snapshots: BTreeMap<(String, String), Snapshot>,
    /// What live reads of this pass said.
    pub live: LiveAnswers,
    /// What outlives the pass.
    pub memory: Memory,
    /// What this pass tried, oldest first.
    pub tried: Vec<(Attempt, Class)>,
    /// Values that did not read, each kept with what was made of it.
    pub oddities: Vec<Oddity>,
}

/// The right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Lease {
    /// No election: always.
    NotNeeded,
    /// Held for this long yet.
    Held(Duration),
    /// Not held.
    Lost,
}

/// The set as one version of it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct SetFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Version decided on.
    pub resource_version: String,
    /// Generation decided on.
    pub generation: i64,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// `None` where the list is absent.
    pub finalizers: Option<Vec<String>>,
    /// Annotations under our prefixes.
    pub annotations: BTreeMap<String, String>,
    /// How often its seats were filled again, read from the annotations.
    pub rebuilds: Histories,
    /// Names in `delete-vm-names`: those of the set's own formula, or listed by its status (D-31).
    pub recorded: DeleteNames,
    /// What the user wants, defaults applied.
    pub spec: SetSpec,
    /// What the status says, as far as it reads.
    pub status: SetStatus,
    /// The status as stored.
    pub raw_status: Value,
    /// What of it did not read.
    pub oddities: Vec<Oddity>,
}

/// A pod as a live read shows it: enough to know whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePod {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Version.
    pub resource_version: String,
    /// Kind, name and uid of its controlling owner.
    pub owner: Option<(String, String, String)>,
    /// It is being deleted.
    pub deleting: bool,
    /// It bears the label of this set.
    pub labelled: Option<String>,
    /// Node it is bound to.
    pub node: Option<String>,
    /// Its VM's name, where we manage the VM and this very pod may have the name (decision R22).
    pub vm: Option<String>,
}

/// The namespace, as the watch shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceSeen {
    /// Not watched, or not seen.
    Unknown,
    /// There, and not being deleted.
    Active {
        /// Uid.
        uid: String,
    },
    /// Being deleted.
    Terminating {
        /// Uid.
        uid: String,
    },
}

/// Another live set that maps to the same VM name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rival {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// It has a pod, or saved state, under that VM name.
    pub has_it: bool,
}

/// What the registry said of one tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Is it there, and under which digest?
    pub fact: Fact<Option<Manifest>>,
    /// Whether it was asked in this pass; anything else is no ground for a delete.
    pub fresh: bool,
}

/// A manifest in the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// `Docker-Content-Digest`.
    pub digest: Option<String>,
    /// The image that the VM was booted from, where recorded.
    pub base_image: Option<String>,
}

/// What live reads of this pass said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveAnswers {
    /// The set was read live; what is in `Observed::set` is that answer, or newer.
    pub object: Fact<()>,
    /// The set is gone.
    pub object_gone: bool,
    /// Every pod of the namespace.
    pub pods: Fact<Vec<LivePod>>,
    /// Single pods.
    pub pod: BTreeMap<String, Fact<Option<LivePod>>>,
    /// Single nodes.
    pub nodes: BTreeMap<String, Fact<NodeSeen>>,
    /// Creates that were only asked about and would be admitted.
    pub admitted: BTreeSet<String>,
}

impl SetFacts {
    /// Reads one version of the set. Total: what does not read becomes an oddity.
    pub fn of(object: &Value) -> Self {
        let (spec, oddities) = SetSpec::read(object.get("spec").unwrap_or(&Value::Null));
        let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
        let annotations = meta::map(object, "annotations", keys::is_ours);
        let status = SetStatus::read(object.get("status").unwrap_or(&Value::Null));
        let known: BTreeSet<VmName> = status.vm_names().map(VmName::from).collect();
        let names = annotations.get(keys::DELETE_VM_NAMES).map(String::as_str).unwrap_or_default();
        Self {
            rebuilds: Histories::read(&annotations),
            recorded: delete_names::read(names, &namespace, &name, &known),
            uid: meta::text(object, "uid"),
            resource_version: meta::text(object, "resourceVersion"),
            generation: meta::metadata(object).get("generation").and_then(Value::as_i64).unwrap_or(0),
            created: meta::time(object, "creationTimestamp"),
            deleting: meta::time(object, "deletionTimestamp"),
            finalizers: meta::strings(object, "finalizers"),
            raw_status: object.get("status").cloned().unwrap_or(Value::Null),
            annotations,
            status,
            namespace,
            name,
            spec,
            oddities,
        }
    }
    /// How often our finalizer stands in the list.
    pub fn claims(&self) -> usize {
        let list = self.finalizers.as_deref().unwrap_or_default();
        list.iter().filter(|entry| *entry == keys::SET_FINALIZER).count()
    }
    /// Value of one of its annotations; empty reads as absent.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
    /// Nodes that a person says will not come back (decision R18).
    pub fn accepted_losses(&self) -> impl Iterator<Item = &str> {
        let listed = self.annotation(keys::ACCEPT_NODE_LOSS).unwrap_or_default();
        listed.split(',').map(str::trim).filter(|node| !node.is_empty())
    }
    /// Whether this is one of them.
    pub fn accepts_loss_of(&self, node: &str) -> bool {
        self.accepted_losses().any(|accepted| accepted == node)
    }
}

impl LivePod {
    /// Reads a pod's metadata. Total.
    pub fn of(object: &Value) -> Self {
        Self {
            name: meta::text(object, "name"),
            uid: meta::text(object, "uid"),
            resource_version: meta::text(object, "resourceVersion"),
            owner: meta::controller(object).map(|owner| (owner.kind, owner.name, owner.uid)),
            deleting: meta::metadata(object).get("deletionTimestamp").is_some_and(Value::is_string),
            labelled: meta::map(object, "labels", keys::is_ours).remove(keys::NAME),
            node: object.pointer("/spec/nodeName").and_then(Value::as_str).map(str::to_owned),
            vm: managed_vm(object),
        }
    }
    /// Whether the set with this uid controls it.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|(_, _, owner)| owner == uid)
    }
}

impl LivePod {
    /// The same of a pod in the cache.
    pub fn of_facts(pod: &PodFacts) -> Self {
        Self {
            name: pod.name.to_string(),
            uid: pod.uid.to_string(),
            resource_version: pod.resource_version.clone(),
            owner: pod.owner.as_ref().map(|owner| (owner.kind.clone(), owner.name.clone(), owner.uid.to_string())),
            deleting: pod.deleting,
            labelled: pod.labels.get(keys::NAME).cloned(),
            node: pod.node.as_ref().map(ToString::to_string),
            vm: pod.accepted_vm_name().filter(|_| pod.managed).map(|name| name.0),
        }
    }
}

fn managed_vm(pod: &Value) -> Option<String> {
    let annotations = meta::map(pod, "annotations", keys::is_ours);
    let name =
        annotations.get(keys::VM_NAME).filter(|_| annotations.get(keys::MANAGED).is_some_and(|is| is == "true"))?;
    accepted_vm(&meta::text(pod, "namespace"), &meta::text(pod, "name"), name).map(|name| name.0)
}

impl Observed {
    /// Facts about this set alone, at this time, with nothing around it.
    pub fn of(set: SetFacts, now: Timestamp, mono: Duration) -> Self {
        let oddities = set.oddities.clone();
        Self {
            now,
            mono,
            seed: 0,
            lease: Lease::NotNeeded,
            versions: BTreeMap::new(),
            unseen: Vec::new(),
            set,
            pods: BTreeMap::new(),
            strangers: BTreeMap::new(),
            namespace: NamespaceSeen::Unknown,
            nodes: None,
            hibernations: BTreeSet::new(),
            rivals: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            live: LiveAnswers::default(),
            memory: Memory::default(),
            tried: Vec::new(),
            oddities,
        }
    }
    /// Who this is about.
    pub fn subject(&self) -> Subject {
        Subject {
            kind: "CocoonSet",
            namespace: self.set.namespace.clone(),
            name: self.set.name.clone(),
            uid: self.set.uid.clone(),
        }
    }
    /// What the watch shows of a node; `None` where nothing is known of it: nodes are not watched, or a later answer was
    /// the first to name it.
    pub fn node_shown(&self, node: &str) -> Option<NodeSeen> {
        self.nodes.as_ref()?.get(node).copied()
    }
    /// What the registry said of a tag.
    pub fn snapshot(&self, vm: &str, tag: &str) -> &Fact<Option<Manifest>> {
        const UNASKED: &Fact<Option<Manifest>> = &Fact::Unasked;
        self.snapshots.get(&(vm.to_owned(), tag.to_owned())).map_or(UNASKED, |snapshot| &snapshot.fact)
    }
    /// True where the namespace is known to be going: seen, or read live after a refusal.
    pub fn namespace_is_going(&self) -> bool {
        use crate::core::memory::NamespaceLive;
        let refused = self.memory.namespace.as_ref().is_some_and(|refusal| refusal.live == NamespaceLive::Terminating);
        refused
            || match self.namespace {
                NamespaceSeen::Terminating { .. } => true,
                NamespaceSeen::Unknown | NamespaceSeen::Active { .. } => false,
            }
    }
    /// When to look again for the end of this pod: one that a live read had to show may have no label of ours, and then
    /// no watch says when it is gone (D-57, D-66, R26).
    pub fn look_after(&self, pod: &str) -> Option<Duration> {
        self.live.pod.contains_key(pod).then_some(Duration::from_secs(30))
    }
    /// Whether a live answer of this pass showed the pod with this uid, whatever the watch says of it.
    pub fn found_live(&self, pod: &str, uid: &str) -> bool {
        let one = self.live.pod.get(pod).and_then(Fact::known).and_then(Option::as_ref);
        one.into_iter().chain(self.live.pods.known().into_iter().flatten()).any(|live| live.uid == uid)
    }
    /// The main agent's pod, if the name is taken by one of ours.
    pub fn main(&self) -> Option<&PodFacts> {
        self.pods.get(crate::core::contract::names::agent_pod(&self.set.name, 0).as_str())
    }
}
