//! The VMs of a node, and what becomes of them on their own: guests that crash, VMs that vanish, probes that change
//! their mind (node-agent.md 6).

use super::{Nodes, Pod, Site, Stage, Step, Work, later};
use crate::core::contract::lifecycle::State;
use crate::sim::store::objects::{stamp, text};
use serde_json::json;
use std::time::Duration;

/// The agent notices that a VM does not run.
const NOTICE: Duration = Duration::from_secs(1);
/// Three probes have failed.
const UNREADY_AFTER: Duration = Duration::from_secs(15);
/// The next probe succeeds.
const READY_AFTER: Duration = Duration::from_secs(5);
/// A guest is started again once in this time, seconds.
const RESTART_EVERY: i64 = 30;
/// How many addresses the network of a node has.
const ADDRESSES: u64 = 250 * 250;

/// A VM on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// The runtime's id.
    pub id: String,
    /// Its address, empty before it has one.
    pub ip: String,
    /// What it was started from.
    pub image: String,
    /// False after its guest has stopped.
    pub running: bool,
}

impl Nodes {
    /// The pod, and the VM that stands for it.
    pub(super) fn pod_and_vm(&self, uid: &str) -> Option<(&Pod, &Vm)> {
        let pod = self.pods.get(uid).filter(|pod| pod.has_vm)?;
        Some((pod, self.nodes.get(&pod.node)?.vms.get(&pod.vm)?))
    }

    /// Makes the pod's VM.
    pub(super) fn make_vm(&mut self, uid: &str, image: &str, with_ip: bool) {
        self.made = self.made.saturating_add(1);
        let ip = if with_ip { self.free_address(uid) } else { String::new() };
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let Some(node) = self.nodes.get_mut(&pod.node) else { return };
        let id = format!("{:012x}", self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
        node.vms.insert(pod.vm.clone(), Vm { id, ip, image: image.to_owned(), running: true });
        pod.has_vm = true;
    }

    /// Gives the pod's VM its address.
    pub(super) fn lease(&mut self, uid: &str) {
        let ip = self.free_address(uid);
        let Some(pod) = self.pods.get(uid) else { return };
        let Some(node) = self.nodes.get_mut(&pod.node) else { return };
        if let Some(vm) = node.vms.get_mut(&pod.vm).filter(|vm| vm.ip.is_empty()) {
            vm.ip = ip;
        }
    }

    /// An address on the network of the pod's node that no VM of the cluster has; empty where there is none left.
    fn free_address(&self, uid: &str) -> String {
        let node = self.pods.get(uid).and_then(|pod| self.nodes.get(&pod.node));
        let Some(index) = node.map(|node| node.index) else { return String::new() };
        let is_free = |ip: &String| self.vms().all(|(_, _, vm)| vm.ip != *ip);
        let candidates = (0..ADDRESSES).map(|at| address(index, self.made.saturating_add(at)));
        candidates.into_iter().find(is_free).unwrap_or_default()
    }

    /// Removes a VM; other pods that it stands for miss it.
    pub(super) fn remove_vm(&mut self, node: &str, vm: &str) {
        if self.nodes.get_mut(node).and_then(|held| held.vms.remove(vm)).is_some() {
            self.miss(node, vm);
        }
    }

    /// Plans a look at every pod that this VM stands for.
    fn miss(&mut self, node: &str, vm: &str) {
        let of_vm =
            |pod: &&Pod| pod.node == node && pod.vm == vm && pod.has_vm && !matches!(pod.stage, Stage::Leaving { .. });
        let uids: Vec<String> = self.pods.values().filter(of_vm).map(|pod| pod.uid.clone()).collect();
        for uid in uids {
            self.agenda.plan_once(Work::Look(uid), later(self.now, NOTICE));
        }
    }

    /// The guest of this VM stops, wherever it runs.
    pub(crate) fn crash_guest(&mut self, vm: &str) {
        let mut stopped = Vec::new();
        for (name, node) in &mut self.nodes {
            if let Some(vm) = node.vms.get_mut(vm) {
                vm.running = false;
                stopped.push(name.clone());
            }
        }
        for node in stopped {
            self.miss(&node, vm);
        }
    }

    /// The VM vanishes, wherever it is.
    pub(crate) fn lose_vm(&mut self, vm: &str) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for node in names {
            self.remove_vm(&node, vm);
        }
    }

    /// The probe of this VM fails from now on, or succeeds again.
    pub(crate) fn set_probe(&mut self, vm: &str, ok: bool) {
        if ok {
            self.unwell.remove(vm);
        } else {
            self.unwell.insert(vm.to_owned());
        }
        let uids: Vec<String> =
            self.pods.values().filter(|pod| pod.vm == vm && pod.has_vm).map(|pod| pod.uid.clone()).collect();
        let after = if ok { READY_AFTER } else { UNREADY_AFTER };
        for uid in uids {
            self.agenda.plan(Work::Probe(uid), later(self.now, after));
        }
    }

    /// True where a probe of this pod's VM succeeds.
    pub(super) fn is_well(&self, uid: &str) -> bool {
        self.pod_and_vm(uid).is_some_and(|(pod, vm)| vm.running && !self.unwell.contains(&pod.vm))
    }

    /// A probe has changed its mind: only the status says so, the lifecycle stays.
    pub(super) fn probe(&mut self, site: &mut Site<'_>, uid: &str) {
        let well = self.is_well(uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if pod.probe_ok == well || !pod.has_vm || pod.is_busy() {
            return;
        }
        pod.probe_ok = well;
        let ready = well && pod.lifecycle.state == State::Ready;
        let pod = pod.clone();
        self.tell(site, &pod, if well { "answers its probe again" } else { "does not answer its probe" });
        self.publish_running(site, uid, ready, if well { "" } else { "probe failed 3 times" });
    }

    /// Looks why the VM does not run: it is started again once per 30 s, else the pod goes.
    pub(super) fn look(&mut self, site: &mut Site<'_>, uid: &str) {
        let now = self.now;
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        if pod.is_busy() || !pod.has_vm {
            return;
        }
        let Some((_, vm)) = self.pod_and_vm(uid) else {
            return self.give_up_vm(site, uid, "VMGone", "the VM is gone");
        };
        if vm.running {
            return;
        }
        let recent = pod.restarted.is_some_and(|at| now.duration_since(at).as_secs() < RESTART_EVERY);
        if recent {
            return self.give_up_vm(site, uid, "RestartCooldown", "the VM stopped again within 30s");
        }
        self.tell(site, &pod, "has stopped and is started again");
        self.publish_running(site, uid, false, "the VM has stopped");
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.restarted = Some(now);
            pod.probe_ok = false;
        }
        if let Some(after) = self.duration(uid, Step::Restart) {
            self.agenda.plan(Work::Restarted(uid.to_owned()), later(now, after));
        }
    }

    /// A guest that was started again is up, or not.
    pub(super) fn restarted(&mut self, site: &mut Site<'_>, uid: &str) {
        if self.pods.get(uid).is_none_or(Pod::is_busy) {
            return;
        }
        if let Some(words) = self.failure(uid, Step::Restart) {
            return self.give_up_vm(site, uid, "RestartFailed", &words);
        }
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        if let Some(vm) = self.nodes.get_mut(&pod.node).and_then(|node| node.vms.get_mut(&pod.vm)) {
            vm.running = true;
        }
        self.agenda.plan(Work::Probe(uid.to_owned()), self.now);
    }

    /// Deletes the pod through the API server and says that its VM is no more.
    fn give_up_vm(&mut self, site: &mut Site<'_>, uid: &str, reason: &str, words: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        self.tell(site, &pod, &format!("has lost its VM ({reason})"));
        self.event(site, uid, "Warning", reason, words);
        pod.delete_object(site, None);
        let name = text(&pod.object, "/spec/containers/0/name");
        let finished = json!({
            "phase": "Failed", "reason": reason, "message": words,
            "containerStatuses": [{
                "name": name, "image": text(&pod.object, "/spec/containers/0/image"), "imageID": "", "ready": false,
                "restartCount": 0, "started": false,
                "state": {"terminated": {"exitCode": 137, "reason": reason, "finishedAt": stamp(self.now)}},
            }],
        });
        self.publish(site, uid, finished);
        self.remove_vm(&pod.node, &pod.vm);
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.has_vm = false;
            pod.stage = Stage::Resting;
        }
    }
}

/// The address of the n-th VM, on its node's network.
fn address(node: u64, made: u64) -> String {
    format!("10.{}.{}.{}", node % 200 + 10, (made / 250) % 250, made % 250 + 2)
}
