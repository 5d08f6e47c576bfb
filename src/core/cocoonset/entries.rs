//! What the status lists: the agents and toolboxes that are there, and of those that are not, what nothing else would say.

use super::ended::{is_open, may_run};
use super::observed::Observed;
use crate::core::api::set_status::{AgentEntry, ToolboxEntry};
use crate::core::contract::names::{Role, accepted_vm, canonical_slot, vm_of_pod};
use crate::core::pod::facts::PodFacts;
use crate::core::vanished::Vanished;
use std::collections::BTreeSet;

/// Main agent first, then sub-agents by slot.
pub(super) fn agents(seen: &Observed) -> Vec<AgentEntry> {
    let main_vm = seen.main().and_then(|main| seen.vm_of(main)).unwrap_or_default();
    let mut entries = Vec::new();
    for pod in seen.pods.values() {
        match seen.role_of(pod) {
            Role::Main => entries.push(agent(seen, pod, 0, "")),
            Role::SubAgent(slot) => entries.push(agent(seen, pod, slot, &main_vm)),
            Role::Toolbox(_) | Role::Unknown => {}
        }
    }
    let present: BTreeSet<i32> = entries.iter().map(|entry| entry.slot).collect();
    let absent = seen.set.status.agents.iter().filter(|entry| !present.contains(&entry.slot));
    entries.extend(absent.filter(|entry| is_kept(seen, &entry.pod_name, &entry.vm_name)).map(|entry| AgentEntry {
        vm_id: kept_id(seen, &entry.pod_name, &entry.vm_id),
        phase: String::new(),
        ip: String::new(),
        ..entry.clone()
    }));
    entries.sort_by_key(|entry| entry.slot);
    keep_open_agents(seen, &mut entries);
    entries
}

fn agent(seen: &Observed, pod: &PodFacts, slot: u32, forked_from: &str) -> AgentEntry {
    AgentEntry {
        slot: i32::try_from(slot).unwrap_or(i32::MAX),
        role: agent_role(slot).to_owned(),
        pod_name: pod.name.to_string(),
        vm_name: seen.vm_of(pod).unwrap_or_default(),
        vm_id: pod.runtime.id.clone(),
        ip: pod.runtime.ip.clone(),
        phase: pod.phase.as_str().to_owned(),
        forked_from: forked_from.to_owned(),
        node_name: node_name(seen, pod.node.as_ref().map(|node| node.as_str())),
    }
}

const fn agent_role(slot: u32) -> &'static str {
    if slot == 0 { "main" } else { "sub-agent" }
}

fn node_name(seen: &Observed, node: Option<&str>) -> String {
    node.filter(|_| !seen.memory.node_names_pruned).unwrap_or_default().to_owned()
}

/// An entry without a pod stays while its name is owed, and until it is known that its VM ended, wanted or not: nothing
/// else says so once the seat is wanted again (decisions R7, R18).
fn is_kept(seen: &Observed, pod: &str, vm: &str) -> bool {
    is_owed(seen, vm) || (seen.is_of_formula(vm) && is_open(seen, pod))
}

/// Decision R7: a name leaves the status only when it is written down for teardown, or its pod is there again.
fn is_owed(seen: &Observed, vm: &str) -> bool {
    !vm.is_empty() && seen.is_of_formula(vm) && !seen.set.records_name(vm)
}

/// The VM id of a pod that we deleted goes once its VM has ended (decision R18).
fn kept_id(seen: &Observed, pod: &str, id: &str) -> String {
    let ended = seen.memory.deleted.contains_key(pod) && !may_run(seen, pod);
    if ended { String::new() } else { id.to_owned() }
}

/// By name.
pub(super) fn toolbox_entries(seen: &Observed) -> Vec<ToolboxEntry> {
    let mut entries = Vec::new();
    for pod in seen.pods.values() {
        if let Role::Toolbox(name) = seen.role_of(pod) {
            entries.push(toolbox(seen, pod, name));
        }
    }
    let present: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let absent = seen.set.status.toolboxes.iter().filter(|entry| !present.contains(&entry.name));
    entries.extend(absent.filter(|entry| is_kept(seen, &entry.pod_name, &entry.vm_name)).map(|entry| ToolboxEntry {
        vm_id: kept_id(seen, &entry.pod_name, &entry.vm_id),
        phase: String::new(),
        ip: String::new(),
        ..entry.clone()
    }));
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    keep_open_toolboxes(seen, &mut entries);
    entries
}

fn toolbox(seen: &Observed, pod: &PodFacts, name: String) -> ToolboxEntry {
    let vm_name = if pod.managed { seen.vm_of(pod).unwrap_or_default() } else { pod.vm_name.to_string() };
    ToolboxEntry {
        name,
        pod_name: pod.name.to_string(),
        vm_name,
        vm_id: pod.runtime.id.clone(),
        ip: pod.runtime.ip.clone(),
        phase: pod.phase.as_str().to_owned(),
        conn_type: Some(pod.connection_type()),
        vnc_port: i32::from(pod.runtime.vnc_port),
        node_name: node_name(seen, pod.node.as_ref().map(|node| node.as_str())),
    }
}

/// Agents whose VMs nobody saw end are listed whatever became of the status: a restart would forget them (R18).
pub(super) fn keep_open_agents(seen: &Observed, entries: &mut Vec<AgentEntry>) {
    for open in all_open(seen) {
        let Some(slot) = canonical_slot(open.suffix) else { continue };
        let number = i32::try_from(slot).unwrap_or(i32::MAX);
        if let Some(entry) = entries.iter_mut().find(|entry| entry.slot == number) {
            open.fill(seen, [&mut entry.pod_name, &mut entry.vm_name, &mut entry.vm_id, &mut entry.node_name]);
            continue;
        }
        let mut entry = AgentEntry { slot: number, role: agent_role(slot).to_owned(), ..AgentEntry::default() };
        open.fill(seen, [&mut entry.pod_name, &mut entry.vm_name, &mut entry.vm_id, &mut entry.node_name]);
        entries.push(entry);
        entries.sort_by_key(|entry| entry.slot);
    }
}

/// The same of toolboxes.
pub(super) fn keep_open_toolboxes(seen: &Observed, entries: &mut Vec<ToolboxEntry>) {
    for open in all_open(seen).filter(|open| canonical_slot(open.suffix).is_none()) {
        if let Some(entry) = entries.iter_mut().find(|entry| entry.name == open.suffix) {
            open.fill(seen, [&mut entry.pod_name, &mut entry.vm_name, &mut entry.vm_id, &mut entry.node_name]);
            continue;
        }
        let mut entry = ToolboxEntry { name: open.suffix.to_owned(), ..ToolboxEntry::default() };
        open.fill(seen, [&mut entry.pod_name, &mut entry.vm_name, &mut entry.vm_id, &mut entry.node_name]);
        entries.push(entry);
        entries.sort_by(|one, other| one.name.cmp(&other.name));
    }
}

/// A pod that this process saw go, with a VM that nobody saw end.
struct Gone<'a> {
    pod: &'a str,
    suffix: &'a str,
    known: &'a Vanished,
}

fn all_open(seen: &Observed) -> impl Iterator<Item = Gone<'_>> {
    let gone = seen
        .memory
        .vanished
        .iter()
        .filter(|(pod, gone)| !gone.vm_id.is_empty() && !seen.pods.contains_key(*pod) && is_open(seen, pod));
    gone.filter_map(|(pod, known)| {
        let suffix = pod.strip_prefix(seen.set.name.as_str())?.strip_prefix('-')?;
        Some(Gone { pod, suffix, known })
    })
}

impl Gone<'_> {
    /// What the status lacks of it; what it says of this pod stands.
    fn fill(&self, seen: &Observed, [pod, vm, id, node]: [&mut String; 4]) {
        let name = self.known.carried.as_ref().map(|carried| carried.vm.name.to_string());
        let name = name.filter(|name| accepted_vm(&seen.set.namespace, self.pod, name).is_some());
        let name = name.unwrap_or_else(|| vm_of_pod(&seen.set.namespace, self.pod).to_string());
        let values = [self.pod.to_owned(), name, self.known.vm_id.clone(), node_name(seen, self.known.node.as_deref())];
        let of_another = pod != self.pod;
        for (field, value) in [pod, vm, id, node].into_iter().zip(values) {
            if of_another || field.is_empty() {
                *field = value;
            }
        }
    }
}
