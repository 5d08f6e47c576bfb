//! Delete: a snapshot where the policy wants one, then the VM goes, then the object (node-agent.md 5).

use super::create::{fork_snapshot, owning_set, pause};
use super::report::annotations;
use super::{Nodes, Site, Stage, Step, Work, later};
use crate::core::api::words::SnapshotPolicy;
use crate::core::contract::names::{RoleWord, leaves_latest};
use crate::core::contract::{flag, keys, text as annotation};
use serde_json::json;
use std::collections::VecDeque;

impl Nodes {
    /// Begins to take down a pod that is being deleted, or whose object is gone.
    pub(super) fn begin_leaving(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let said = annotations(&pod.object);
        let policy = SnapshotPolicy::of(annotation(&said, keys::SNAPSHOT_POLICY));
        let role = RoleWord::of_vm(&pod.namespace, owning_set(&pod.object), &pod.vm);
        let mut steps = VecDeque::new();
        if pod.has_vm && (pod.managed || !self.settings.forgets_unmanaged) {
            // The runtime cannot save a VM that it does not run: the attempt is logged and nothing comes of it.
            if pod.managed && leaves_latest(&policy, Some(role)) {
                steps.extend([Step::Save, Step::Push]);
                self.tell(site, &pod, "is being saved");
            } else {
                self.tell(site, &pod, "stops");
            }
            steps.push_back(Step::Remove);
        }
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.tries = 0;
        }
        self.enter(site, uid, Stage::Leaving { steps });
    }

    /// A step of taking the pod down has taken its time.
    pub(super) fn leave_on(&mut self, site: &mut Site<'_>, uid: &str, step: Step) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let failed = self.failure(uid, step);
        match (step, failed) {
            (Step::Save, Some(words)) => {
                // Logged, and the deletion goes on without a snapshot.
                self.tell(site, &pod, &format!("could not be saved: {words}"));
                if let Some(pod) = self.pods.get_mut(uid) {
                    pod.stage = Stage::Leaving { steps: VecDeque::from([Step::Save, Step::Remove]) };
                }
            }
            (Step::Push, Some(words)) => self.tell(site, &pod, &format!("could not be pushed: {words}")),
            (Step::Push, None) => {
                let base = annotation(&annotations(&pod.object), keys::IMAGE).to_owned();
                site.registry.put(
                    &pod.vm,
                    keys::TAG_LATEST,
                    Some(&base).filter(|base| !base.is_empty()).map(String::as_str),
                );
                self.tell(site, &pod, "is pushed as latest");
            }
            (Step::Remove, Some(words)) => {
                self.tell(site, &pod, &format!("could not be stopped: {words}"));
                return self.remove_later(uid);
            }
            _ => {}
        }
        self.next_step(site, uid);
    }

    /// Tries again to remove the VM, after a growing pause and so many times; the pod stays Terminating.
    fn remove_later(&mut self, uid: &str) {
        let (most, first) = (self.settings.create_tries, self.settings.first_pause);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.tries = pod.tries.saturating_add(1);
        if pod.tries < most {
            let after = pause(first, pod.tries);
            self.agenda.plan(Work::Pod(uid.to_owned()), later(self.now, after));
        }
    }

    /// The VM is gone: so are its local snapshots, and last the object.
    pub(super) fn left(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let said = annotations(&pod.object);
        if let Some(node) = self.nodes.get_mut(&pod.node)
            && !flag(&said, keys::KEEP_SNAPSHOT)
        {
            node.snapshots.remove(&pod.vm);
            node.snapshots.remove(&fork_snapshot(&pod.vm));
        }
        if pod.has_vm {
            if let Some(pod) = self.pods.get_mut(uid) {
                pod.has_vm = false;
            }
            self.remove_vm(&pod.node, &pod.vm);
        }
        if !pod.object_gone {
            if pod.has_vm {
                self.publish(site, uid, json!({"phase": "Succeeded"}));
            }
            pod.remove_object(site);
        }
        self.tell(site, &pod, "is gone");
        self.forget(uid);
    }
}
