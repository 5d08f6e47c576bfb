//! Pod and VM names, there and back (contract 4).

use crate::core::api::words::SnapshotPolicy;
use crate::core::oddity::{NAME_TOO_LONG, Oddity, excerpt};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

macro_rules! name_types {
    ($( $(#[doc = $doc:literal])+ $name:ident, )+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// As text.
            pub fn as_str(&self) -> &str { &self.0 }
            /// True for no name at all.
            pub fn is_empty(&self) -> bool { self.0.is_empty() }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self { Self(text.to_owned()) }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self { Self(text) }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str { &self.0 }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str { &self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )+ };
}

name_types! {
    /// Name of a pod within its namespace.
    PodName,
    /// Name of a VM, and of its repository: one across all namespaces (D-29).
    VmName,
    /// Name of a node.
    NodeName,
    /// Identity of one incarnation of an object.
    Uid,
}

/// What a pod is to its set (contract 1, 4.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The agent of slot 0.
    Main,
    /// An agent of slot 1 or above, a fork of the main agent.
    SubAgent(u32),
    /// A toolbox, by its name in the spec.
    Toolbox(String),
    /// Labels that say nothing we know.
    Unknown,
}

impl Role {
    /// Value of the role label; none where unknown.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::SubAgent(_) => "sub-agent",
            Self::Toolbox(_) => "toolbox",
            Self::Unknown => "",
        }
    }
    /// Value of the slot label: decimal slot, or toolbox name.
    pub fn slot_label(&self) -> String {
        match self {
            Self::Main => "0".to_owned(),
            Self::SubAgent(slot) => slot.to_string(),
            Self::Toolbox(name) => name.clone(),
            Self::Unknown => String::new(),
        }
    }
    /// Reads both labels; slots only in canonical decimal form (contract 4.2).
    pub fn of_labels(role: &str, slot: &str) -> Self {
        match (role, canonical_slot(slot)) {
            ("main", _) => Self::Main,
            ("sub-agent", Some(number)) if number > 0 => Self::SubAgent(number),
            ("toolbox", _) if !slot.is_empty() => Self::Toolbox(slot.to_owned()),
            (_, _) => Self::Unknown,
        }
    }
    /// The role without slot or name; none where unknown.
    pub fn word(&self) -> Option<RoleWord> {
        match self {
            Self::Main => Some(RoleWord::Main),
            Self::SubAgent(_) => Some(RoleWord::SubAgent),
            Self::Toolbox(_) => Some(RoleWord::Toolbox),
            Self::Unknown => None,
        }
    }
    /// Name of the pod that plays this role; none where unknown.
    pub fn pod_name(&self, set: &str) -> Option<PodName> {
        match self {
            Self::Main => Some(agent_pod(set, 0)),
            Self::SubAgent(slot) => Some(agent_pod(set, *slot)),
            Self::Toolbox(name) => Some(toolbox_pod(set, name)),
            Self::Unknown => None,
        }
    }
    /// Name of the VM that plays this role; none where unknown.
    pub fn vm_name(&self, namespace: &str, set: &str) -> Option<VmName> {
        self.pod_name(set).map(|pod| vm_of_pod(namespace, pod.as_str()))
    }
}

/// A role without slot or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleWord {
    /// Slot 0.
    Main,
    /// Slot 1 and above.
    SubAgent,
    /// No slot.
    Toolbox,
}

impl RoleWord {
    /// The role of a parsed slot (contract 4.3).
    pub const fn of_slot(slot: Option<u32>) -> Self {
        match slot {
            None => Self::Toolbox,
            Some(0) => Self::Main,
            Some(_) => Self::SubAgent,
        }
    }
    /// The role that the node agent gives a VM: by owning set and VM name alone; without an owner a toolbox.
    pub fn of_vm(namespace: &str, owner: Option<&str>, vm: &str) -> Self {
        Self::of_slot(owner.and_then(|set| slot_of_vm(namespace, set, vm)))
    }
    /// As it stands in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::SubAgent => "sub-agent",
            Self::Toolbox => "toolbox",
        }
    }
}

/// True where the node agent leaves a `latest` snapshot of this VM when its pod goes (contract 3).
pub fn leaves_latest(policy: &SnapshotPolicy, role: Option<RoleWord>) -> bool {
    match policy {
        SnapshotPolicy::Never => false,
        SnapshotPolicy::MainOnly => role == Some(RoleWord::Main),
        SnapshotPolicy::Always | SnapshotPolicy::Unknown(_) => true,
    }
}

/// `<set>-<slot>`
pub fn agent_pod(set: &str, slot: u32) -> PodName {
    PodName(format!("{set}-{slot}"))
}

/// `<set>-<toolbox>`
pub fn toolbox_pod(set: &str, toolbox: &str) -> PodName {
    PodName(format!("{set}-{toolbox}"))
}

/// `vk-<namespace>-<pod>`
pub fn vm_of_pod(namespace: &str, pod: &str) -> VmName {
    VmName(format!("vk-{namespace}-{pod}"))
}

/// `vk-<namespace>-<set>-<slot>`
pub fn agent_vm(namespace: &str, set: &str, slot: u32) -> VmName {
    vm_of_pod(namespace, agent_pod(set, slot).as_str())
}

/// `vk-<namespace>-<set>-`, under which all VMs of a set stand.
pub fn vm_prefix(namespace: &str, set: &str) -> String {
    format!("vk-{namespace}-{set}-")
}

/// The slot in a VM name of this set; `None` for a toolbox or somebody else's (contract 4.2). Only the canonical
/// decimal form counts: `01` and `+1` are no slots.
pub fn slot_of_vm(namespace: &str, set: &str, vm: &str) -> Option<u32> {
    canonical_slot(vm.strip_prefix(&vm_prefix(namespace, set))?)
}

/// A slot as we write it: no sign, no leading zero, within int32.
pub fn canonical_slot(text: &str) -> Option<u32> {
    let slot: u32 = text.parse().ok()?;
    (slot <= i32::MAX.unsigned_abs() && slot.to_string() == text).then_some(slot)
}

/// Whether a node can have this name: a DNS subdomain.
pub fn is_node_name(name: &str) -> bool {
    let is_end = |end: Option<u8>| end.is_some_and(|end| end.is_ascii_lowercase() || end.is_ascii_digit());
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    name.len() <= 253 && name.bytes().all(fits) && is_end(name.bytes().next()) && is_end(name.bytes().last())
}

/// The VM name of newer releases: `vk-<ns>-<pod, dots as dashes>-<6 hex of sha256("<ns>/<pod>")>` (contract 4.4).
pub fn successor_vm(namespace: &str, pod: &str) -> VmName {
    let digest = Sha256::digest(format!("{namespace}/{pod}").as_bytes());
    let hash: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    VmName(format!("vk-{namespace}-{}-{hash}", pod.replace('.', "-")))
}

/// The name that an existing pod's annotation gives its VM, if it is one of the two that this very pod may have (R22).
pub fn accepted_vm(namespace: &str, pod: &str, annotated: &str) -> Option<VmName> {
    let fits = annotated == vm_of_pod(namespace, pod).as_str() || annotated == successor_vm(namespace, pod).as_str();
    fits.then(|| VmName(annotated.to_owned()))
}

/// True where a VM name is one that this set's own formula can give, today's or the successors' (D-31). A name that
/// ends in what could be a successor's hash is accepted under today's formula anyway: it is a possible toolbox.
pub fn is_of_set(namespace: &str, set: &str, vm: &str) -> bool {
    let dashed = vm_prefix(namespace, &set.replace('.', "-"));
    let suffix = vm.strip_prefix(&vm_prefix(namespace, set)).or_else(|| {
        let rest = vm.strip_prefix(&dashed)?;
        let (pod, hash) = rest.rsplit_once('-')?;
        let expected = successor_vm(namespace, &format!("{set}-{pod}"));
        (hash.len() == 6 && expected.as_str() == vm).then_some(rest)
    });
    suffix.is_some_and(is_name_suffix)
}

/// `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, as toolbox names and slots have it.
fn is_name_suffix(suffix: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = suffix.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// The most a label value holds: the set's name stands in one.
pub const LABEL_LIMIT: usize = 63;
/// The most a host name holds: beyond it hypervisor and guest cut the VM's name, each in its own way.
pub const VM_NAME_LIMIT: usize = 63;

/// How well the names of one pod fit (D-33).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameFit {
    /// All within their limits.
    Fits,
    /// The pod can be created, but the VM's name is longer than hosts bear.
    Long(Oddity),
    /// The API server would refuse the pod: it must not be tried.
    Impossible(Oddity),
}

/// Checks labels and VM name of one pod before anybody tries to create it. A pod name made of two label values is
/// always within its own limit of 253.
pub fn check_names(namespace: &str, set: &str, role: &Role) -> NameFit {
    let too_long = |what: &str, name: &str, limit: usize| {
        let said = format!("{what} \"{}\" has {} characters, {limit} is the most", excerpt(name, 80), name.len());
        Oddity::new(NAME_TOO_LONG, "metadata.name", said)
    };
    if set.len() > LABEL_LIMIT {
        return NameFit::Impossible(too_long("set name", set, LABEL_LIMIT));
    }
    let slot = role.slot_label();
    if slot.len() > LABEL_LIMIT {
        return NameFit::Impossible(too_long("toolbox name", &slot, LABEL_LIMIT));
    }
    let Some(pod) = role.pod_name(set) else { return NameFit::Fits };
    let vm = vm_of_pod(namespace, pod.as_str());
    if vm.as_str().len() > VM_NAME_LIMIT {
        return NameFit::Long(too_long("VM name", vm.as_str(), VM_NAME_LIMIT));
    }
    NameFit::Fits
}
