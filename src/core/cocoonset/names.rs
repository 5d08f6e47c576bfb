//! Which VM names a set answers for, and where each is written down.

use super::observed::{LivePod, Observed, SetFacts};
use super::standing::is_kept;
use crate::core::api::set_status::SetStatus;
use crate::core::contract::keys;
use crate::core::contract::names::{
    Role, VmName, agent_vm, canonical_slot, is_of_set, slot_of_vm, successor_vm, vm_of_pod, vm_prefix,
};
use crate::core::contract::records::Records;
use crate::core::pod::facts::PodFacts;
use std::collections::{BTreeMap, BTreeSet};

impl SetFacts {
    /// The VM names that this spec maps to.
    pub fn vm_names(&self) -> BTreeSet<String> {
        let agents = (0..=self.spec.agent.replicas_clamped).map(|slot| agent_vm(&self.namespace, &self.name, slot));
        let toolboxes = self.spec.creatable_toolboxes();
        let toolboxes =
            toolboxes.filter_map(|toolbox| Role::Toolbox(toolbox.name.clone()).vm_name(&self.namespace, &self.name));
        agents.chain(toolboxes).map(|name| name.0).collect()
    }
    /// Whether this spec maps to the VM name.
    pub fn maps_to(&self, vm: &str) -> bool {
        let slot = slot_of_vm(&self.namespace, &self.name, vm);
        slot.is_some_and(|slot| slot <= self.spec.agent.replicas_clamped)
            || self.spec.creatable_toolboxes().filter(|toolbox| toolbox.is_managed()).any(|toolbox| {
                let name = Role::Toolbox(toolbox.name.clone()).vm_name(&self.namespace, &self.name);
                name.is_some_and(|name| name.as_str() == vm)
            })
    }
    /// The durable record of where the state of each VM lives (decision R13).
    pub fn records(&self) -> Records {
        Records::read(self.annotations.get(keys::VM_RECORDS).map(String::as_str), &self.uid).0
    }
    /// Names of the VMs that the record speaks of.
    pub fn vms_on_record(&self) -> impl Iterator<Item = String> {
        let names: Vec<String> =
            self.records().iter().map(|(key, _)| vm_prefix(&self.namespace, &self.name) + key).collect();
        names.into_iter()
    }
    /// The annotation that says that VMs of the set are, or were about to be, without a pod.
    pub fn hint(&self) -> Option<&'static str> {
        let hints = [keys::HIBERNATED_ON_NODE, keys::SUSPENDED_ON_NODE, keys::SUSPENDING_SINCE];
        hints.into_iter().find(|key| self.annotation(key).is_some())
    }
    /// Whether the set has state under this VM name that needs no pod (decision R23): by its record; by its status, where
    /// the set is in a phase without pods or bears a hint of one; or while it is being deleted and had that VM.
    pub fn holds(&self, vm: &str) -> bool {
        self.vms_on_record().any(|name| name == vm)
            || (self.status.vm_names().any(|name| name == vm) && self.may_have_no_pods())
            || (self.deleting.is_some() && self.claims() > 0 && self.status.had_vm(vm))
    }
    fn may_have_no_pods(&self) -> bool {
        let phase = self.status.phase.as_ref().is_some_and(is_kept);
        phase || self.hint().is_some() || self.records().is_unreadable()
    }
    /// Whether the spec wants a pod of this name.
    pub fn wants_pod(&self, pod: &str) -> bool {
        let suffix = pod.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        suffix.is_some_and(|suffix| {
            self.spec.lists_toolbox(suffix)
                || canonical_slot(suffix).is_some_and(|slot| slot <= self.spec.agent.replicas_clamped)
        })
    }
    /// Whether the spec wants a pod of this name, or the status lists one.
    pub fn speaks_of(&self, pod: &str) -> bool {
        self.wants_pod(pod) || self.status.pod_names().any(|name| name == pod)
    }
    /// Names in `delete-vm-names`, those of the set's own formula only (D-31).
    pub fn recorded_names(&self) -> impl Iterator<Item = &str> {
        self.recorded.names.iter().map(VmName::as_str)
    }
    /// Whether this name stands there.
    pub fn records_name(&self, vm: &str) -> bool {
        self.recorded.names.contains(vm)
    }
}

impl SetStatus {
    /// Every pod that an entry names.
    pub fn pod_names(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| entry.pod_name.as_str());
        agents.chain(self.toolboxes.iter().map(|entry| entry.pod_name.as_str())).filter(|name| !name.is_empty())
    }
    /// Every pod that an entry says had a VM.
    pub fn pods_with_a_vm(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| (&entry.pod_name, &entry.vm_id));
        let entries = agents.chain(self.toolboxes.iter().map(|entry| (&entry.pod_name, &entry.vm_id)));
        entries.filter(|(_, id)| !id.is_empty()).map(|(pod, _)| pod.as_str())
    }
    /// Whether an entry says that there was a VM of this name.
    pub fn had_vm(&self, vm: &str) -> bool {
        self.vms_had().any(|name| name == vm)
    }
    /// Every VM name that an entry says there was a VM of.
    pub fn vms_had(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| (&entry.vm_name, &entry.vm_id));
        let entries = agents.chain(self.toolboxes.iter().map(|entry| (&entry.vm_name, &entry.vm_id)));
        entries.filter(|(_, id)| !id.is_empty()).map(|(name, _)| name.as_str())
    }
    /// The id of this pod's VM, as it was last seen.
    pub fn vm_id_of(&self, pod: &str) -> Option<&str> {
        let agents = self.agents.iter().map(|entry| (&entry.pod_name, &entry.vm_id));
        let mut entries = agents.chain(self.toolboxes.iter().map(|entry| (&entry.pod_name, &entry.vm_id)));
        entries.find(|(name, id)| *name == pod && !id.is_empty()).map(|(_, id)| id.as_str())
    }
    /// The node on which the VM of this pod was last seen, if it was seen to have one.
    pub fn last_node_of(&self, pod: &str) -> Option<&str> {
        let agents = self.agents.iter().map(|entry| (&entry.pod_name, &entry.vm_id, &entry.node_name));
        let toolboxes = self.toolboxes.iter().map(|entry| (&entry.pod_name, &entry.vm_id, &entry.node_name));
        let mut entries = agents.chain(toolboxes);
        let (_, _, node) = entries.find(|(name, id, node)| *name == pod && !id.is_empty() && !node.is_empty())?;
        Some(node.as_str())
    }
    /// Every pod that an entry gives a VM of this name, with an id.
    pub fn pods_of_vm(&self, vm: &str) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| (&entry.pod_name, &entry.vm_name, &entry.vm_id));
        let entries = agents.chain(self.toolboxes.iter().map(|entry| (&entry.pod_name, &entry.vm_name, &entry.vm_id)));
        entries.filter(move |(_, name, id)| *name == vm && !id.is_empty()).map(|(pod, _, _)| pod.as_str())
    }
    /// The VM name that an entry gives this pod.
    pub fn vm_name_of(&self, pod: &str) -> Option<&str> {
        let agents = self.agents.iter().map(|entry| (&entry.pod_name, &entry.vm_name));
        let mut entries = agents.chain(self.toolboxes.iter().map(|entry| (&entry.pod_name, &entry.vm_name)));
        entries.find(|(name, vm)| *name == pod && !vm.is_empty()).map(|(_, vm)| vm.as_str())
    }
    /// Every node that an entry names.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| entry.node_name.as_str());
        agents.chain(self.toolboxes.iter().map(|entry| entry.node_name.as_str())).filter(|node| !node.is_empty())
    }
}

impl Observed {
    /// What a pod of ours is to the set: by its name, which cannot be edited (D-66). A toolbox that the spec no longer
    /// lists is known by any trace of having been one: its label, its entry in the status, or the name of its VM.
    pub fn role_of(&self, pod: &PodFacts) -> Role {
        let Some(suffix) = pod.name.as_str().strip_prefix(&format!("{}-", self.set.name)) else { return Role::Unknown };
        match canonical_slot(suffix) {
            Some(0) => Role::Main,
            Some(slot) => Role::SubAgent(slot),
            None if self.set.spec.lists_toolbox(suffix) => Role::Toolbox(suffix.to_owned()),
            None if self.was_toolbox(pod) => Role::Toolbox(suffix.to_owned()),
            None => Role::Unknown,
        }
    }
    /// Labels are anybody's to edit: a toolbox whose label is gone must not run on for ever once the spec drops it.
    fn was_toolbox(&self, pod: &PodFacts) -> bool {
        pod.labels.get(keys::ROLE).is_some_and(|role| role == "toolbox")
            || self.set.status.toolboxes.iter().any(|entry| entry.pod_name == pod.name.as_str())
            || self.vm_of(pod).is_some()
    }
    /// Whether the spec no longer wants this pod: a slot beyond its count, or a toolbox that it does not list. Nothing is
    /// while part of the spec cannot be read.
    pub fn is_surplus(&self, pod: &PodFacts) -> bool {
        if self.set.spec.unreadable {
            return false;
        }
        match self.role_of(pod) {
            Role::SubAgent(slot) => i64::from(slot) > self.set.spec.agent.replicas,
            Role::Toolbox(name) => !self.set.spec.lists_toolbox(&name),
            Role::Main | Role::Unknown => false,
        }
    }
    /// The VM name of an existing pod, if it is one that this very pod may have (decision R22).
    pub fn vm_of(&self, pod: &PodFacts) -> Option<String> {
        pod.accepted_vm_name().map(|name| name.0)
    }
    /// Every VM name whose tags the set has to collect in the end.
    pub fn names_owed(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.set.recorded_names().map(str::to_owned).collect();
        names.extend(self.set.status.vm_names().map(str::to_owned));
        names.extend(self.pods.values().filter_map(|pod| self.vm_of(pod)));
        names.extend(self.hidden_pods().filter_map(|pod| pod.vm.clone()));
        names.retain(|name| self.is_of_formula(name));
        names
    }
    /// Pods of ours that a live read showed, whatever the watch says.
    pub fn hidden_pods(&self) -> impl Iterator<Item = &LivePod> {
        self.live.pods.known().into_iter().flatten().filter(|pod| pod.is_controlled_by(&self.set.uid))
    }
    /// Whether the set's formula gives this name (D-31).
    pub fn is_of_formula(&self, vm: &str) -> bool {
        is_of_set(&self.set.namespace, &self.set.name, vm)
    }
    /// Whether the set has a pod or state under this VM name (decision R23).
    pub fn has_it(&self, vm: &str) -> bool {
        self.pods.values().any(|pod| self.vm_of(pod).as_deref() == Some(vm))
            || self.hidden_pods().any(|pod| pod.vm.as_deref() == Some(vm))
            || self.set.holds(vm)
    }
    /// Whether tags of this name are the set's to collect: its formula gives the name, and no other live set speaks of
    /// it, or only this one has something under it (D-29, D-31, decision R23).
    pub fn is_own_name(&self, vm: &str) -> bool {
        self.is_of_formula(vm) && self.rivals.get(vm).is_none_or(|rival| !rival.has_it && self.has_it(vm))
    }
    /// Pods that live on under no owner, and the VM names that each may have (D-79, decision R19).
    pub fn orphans(&self) -> BTreeMap<String, String> {
        let live = self.strangers.values().chain(self.live.pods.known().into_iter().flatten());
        let orphans = live.filter(|pod| pod.owner.is_none() && !pod.deleting);
        let names =
            |pod: &LivePod| [vm_of_pod(&self.set.namespace, &pod.name), successor_vm(&self.set.namespace, &pod.name)];
        orphans.flat_map(|pod| names(pod).map(|vm| (vm.0, pod.name.clone()))).collect()
    }
    /// The slot in a VM name of this set.
    pub fn slot_in(&self, vm: &str) -> Option<u32> {
        slot_of_vm(&self.set.namespace, &self.set.name, vm)
    }
}
