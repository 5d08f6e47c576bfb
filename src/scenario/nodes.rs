//! What nodes and VMs do by themselves.

use super::realm::Realm;
use super::setting::{Cast, done};
use super::steps::{NodeEvent, VmEvent};
use crate::core::contract::keys;
use crate::core::wire::{Method, Request};
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
pub fn node(world: &mut impl Realm, name: &str, event: NodeEvent) -> Result<(), String> {
    if !world.nodes().names().any(|known| known == name) {
        return Err(format!("there is no node {name}"));
    }
    world.with_nodes(|nodes, site| match event {
        NodeEvent::NotReady => nodes.not_ready(site, name),
        NodeEvent::Unreachable => nodes.lose(name),
        NodeEvent::Deleted | NodeEvent::AgentDown => nodes.agent_down(name),
        NodeEvent::Reboots => nodes.reboot(site, name),
        NodeEvent::Back => nodes.come_back(site, name),
        NodeEvent::AgentRestarts => nodes.restart_agent(site, name),
    });
    match event {
        NodeEvent::Deleted => done(world, Request::new(Method::Delete, format!("/api/v1/nodes/{name}"))),
        NodeEvent::NotReady
        | NodeEvent::Unreachable
        | NodeEvent::Reboots
        | NodeEvent::Back
        | NodeEvent::AgentDown
        | NodeEvent::AgentRestarts => Ok(()),
    }
}

/// A VM does something.
pub fn vm(world: &mut impl Realm, cast: &Cast, pod: &str, event: VmEvent) -> Result<(), String> {
    let key = cast.key(Some(pod));
    let found = world.get("pods", &key.namespace, &key.name).ok_or_else(|| format!("there is no pod {pod}"))?;
    let annotations = found.pointer("/metadata/annotations");
    let vm = annotations.and_then(|map| map.get(keys::VM_NAME)).and_then(Value::as_str).unwrap_or_default().to_owned();
    world.with_nodes(|nodes, _| match event {
        VmEvent::Gone => nodes.lose_vm(&vm),
        VmEvent::Stops => nodes.crash_guest(&vm),
        VmEvent::ProbeFails => nodes.set_probe(&vm, false),
        VmEvent::ProbeRecovers => nodes.set_probe(&vm, true),
    });
    Ok(())
}
