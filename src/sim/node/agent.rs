//! One step further with a pod: what was begun ends, and the next thing begins. Per pod nothing overlaps.

use super::{Nodes, Site, Stage, Step, Strays};
use crate::core::contract::lifecycle::{Lifecycle, State};
use crate::core::contract::{keys, text as annotation};
use crate::sim::store::objects::{is_deleting, meta, text};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

impl Nodes {
    /// The next step with this pod.
    pub(super) fn step(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid) else { return };
        match &pod.stage {
            Stage::Waiting => self.create(site, uid),
            Stage::Bringing { steps, .. } => match steps.front().copied() {
                Some(step) => self.bring_on(site, uid, step),
                None => self.brought_up(site, uid),
            },
            Stage::Settling { steps } => match steps.front().copied() {
                Some(step) => self.settle_on(site, uid, step),
                None => self.be_ready(site, uid),
            },
            Stage::Resting => {}
            Stage::Leaving { steps } => match steps.front().copied() {
                Some(step) => self.leave_on(site, uid, step),
                None => self.left(site, uid),
            },
        }
    }

    /// Begins the first step of a stage, or ends a stage that has none.
    pub(super) fn enter(&mut self, site: &mut Site<'_>, uid: &str, stage: Stage) {
        let first = match &stage {
            Stage::Bringing { steps, .. } | Stage::Settling { steps } | Stage::Leaving { steps } => {
                steps.front().copied()
            }
            Stage::Waiting | Stage::Resting => None,
        };
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.stage = stage;
        match first {
            Some(step) => self.plan_step(uid, step),
            None => self.step(site, uid),
        }
    }

    /// The step in front is done.
    pub(super) fn next_step(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let next: Option<Step> = match &mut pod.stage {
            Stage::Bringing { steps, .. } | Stage::Settling { steps } | Stage::Leaving { steps } => {
                steps.pop_front();
                steps.front().copied()
            }
            Stage::Waiting | Stage::Resting => return,
        };
        match next {
            Some(step) => self.plan_step(uid, step),
            None => self.step(site, uid),
        }
    }

    /// Something long has ended: a deletion that was noticed meanwhile begins.
    pub(super) fn catch_up(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid) else { return };
        if pod.leaving && !pod.is_busy() {
            self.begin_leaving(site, uid);
        }
    }

    /// The agent of this node stops: it forgets everything it had in mind. The VMs run on.
    pub(super) fn stop_agent(&mut self, node: &str) {
        let Some(held) = self.nodes.get_mut(node) else { return };
        held.up = false;
        let uids: Vec<String> = self.pods.values().filter(|pod| pod.node == node).map(|pod| pod.uid.clone()).collect();
        for uid in uids {
            self.forget(&uid);
        }
    }

    /// The agent of this node starts: it finds the VMs of its pods again, by id or by name, and makes what it does not
    /// find. VMs without a pod go.
    pub(super) fn start_agent(&mut self, site: &mut Site<'_>, node: &str) {
        let Some(held) = self.nodes.get_mut(node) else { return };
        if held.up {
            return;
        }
        held.up = true;
        let here = |pod: &Arc<Value>| text(pod, "/spec/nodeName") == node;
        let pods: Vec<Arc<Value>> = site.server.pods().into_iter().filter(here).collect();
        let mut claimed = BTreeSet::new();
        for pod in &pods {
            let finished = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
            if finished && !is_deleting(pod) {
                continue;
            }
            self.take_up(pod);
            claimed.extend(self.find_again(site, meta(pod, "uid"), pod));
        }
        let strays = self.nodes.get(node).into_iter().flat_map(|held| held.vms.keys());
        let strays: Vec<String> = strays.filter(|vm| !claimed.contains(*vm)).cloned().collect();
        if self.settings.strays == Strays::Destroy {
            strays.iter().for_each(|vm| self.remove_vm(node, vm));
        }
    }

    /// Goes on with a pod whose VM is there, as far as the agent before had come. Gives the VM's name.
    fn find_again(&mut self, site: &mut Site<'_>, uid: &str, object: &Value) -> Option<String> {
        let said = super::report::annotations(object);
        let pod = self.pods.get_mut(uid)?;
        let held = self.nodes.get(&pod.node)?;
        let id = annotation(&said, keys::VM_ID);
        let by_id = held.vms.iter().find(|(_, vm)| !id.is_empty() && vm.id == id).map(|(name, _)| name.clone());
        let vm = by_id.or_else(|| held.vms.contains_key(&pod.vm).then(|| pod.vm.clone()))?;
        pod.vm.clone_from(&vm);
        pod.has_vm = true;
        pod.lifecycle = Lifecycle::read(&said);
        pod.started = text(object, "/status/startTime").parse().unwrap_or(pod.started);
        if is_deleting(object) {
            pod.leaving = true;
            pod.stage = Stage::Resting;
            self.begin_leaving(site, uid);
            return Some(vm);
        }
        let steps = match pod.lifecycle.state {
            State::Ready | State::Failed => {
                pod.stage = Stage::Resting;
                let state = pod.lifecycle.state.clone();
                pod.probe_ok = true;
                let well = self.is_well(uid);
                self.publish_running(site, uid, well && state == State::Ready, "");
                return Some(vm);
            }
            State::Unset | State::Creating | State::Hibernating | State::Hibernated | State::Unknown(_) => {
                VecDeque::from([Step::IpWait])
            }
        };
        self.event(site, uid, "Normal", "ResumedAfterRestart", "the agent was started again");
        self.say_runtime(site, uid);
        self.publish_running(site, uid, false, "");
        self.enter(site, uid, Stage::Settling { steps });
        Some(vm)
    }
}
