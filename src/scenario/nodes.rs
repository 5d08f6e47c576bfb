//! What nodes and VMs do by themselves.

use super::setting::Cast;
use super::steps::{NodeEvent, VmEvent};
use crate::core::contract::keys;
use crate::sim::world::World;
use serde_json::Value;

impl VmEvent {
    /// As the transcript says it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Gone => "is gone",
            Self::Stops => "stops",
            Self::ProbeFails => "does not answer its probe",
            Self::ProbeRecovers => "answers its probe again",
        }
    }
}

/// Something happens to a node.
pub fn node(world: &mut World, name: &str, event: NodeEvent) -> Result<(), String> {
    if !world.nodes.names().any(|known| known == name) {
        return Err(format!("there is no node {name}"));
    }
    match event {
        NodeEvent::NotReady => world.node_not_ready(name),
        NodeEvent::Unreachable => world.lose_node(name),
        NodeEvent::Deleted => world.delete_node(name),
        NodeEvent::Reboots => world.reboot_node(name),
        NodeEvent::Back => world.node_back(name),
        NodeEvent::AgentDown => world.agent_down(name),
        NodeEvent::AgentRestarts => world.restart_agent(name),
    }
    Ok(())
}

/// A VM does something.
pub fn vm(world: &mut World, cast: &Cast, pod: &str, event: VmEvent) -> Result<(), String> {
    let key = cast.key(Some(pod));
    let found = world.store.get("pods", &key.namespace, &key.name).ok_or_else(|| format!("there is no pod {pod}"))?;
    let annotations = found.pointer("/metadata/annotations");
    let vm = annotations.and_then(|map| map.get(keys::VM_NAME)).and_then(Value::as_str).unwrap_or_default().to_owned();
    match event {
        VmEvent::Gone => world.lose_vm(&vm),
        VmEvent::Stops => world.crash_guest(&vm),
        VmEvent::ProbeFails => world.set_probe(&vm, false),
        VmEvent::ProbeRecovers => world.set_probe(&vm, true),
    }
    Ok(())
}
