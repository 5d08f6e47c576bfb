//! Create: from a bound pod to a VM that is ready, in the order of node-agent.md 2.

use super::report::annotations;
use super::{Nodes, Pod, Site, Source, Stage, Step, Work, later};
use crate::core::classify::classify;
use crate::core::contract::lifecycle::State;
use crate::core::contract::{Annotations, flag, keys, text as annotation};
use crate::core::outcome::{Answer, Class};
use crate::core::wire::Verb;
use crate::sim::store::objects::text;
use std::collections::VecDeque;
use std::time::Duration;

/// The pause after a failure doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Why a create cannot go on.
struct Refusal {
    /// The event's reason.
    reason: &'static str,
    words: String,
}

impl Nodes {
    /// Steps 1 to 5a: claims the pod, adopts or decides where its VM comes from.
    pub(super) fn create(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        // The one before it, of the same name, is not gone yet: it calls when it is.
        let before = |other: &&Pod| other.uid != uid && other.place() == pod.place() && other.node == pod.node;
        if pod.leaving || self.pods.values().find(before).is_some() {
            return;
        }
        let said = annotations(&pod.object);
        if let Err(words) = self.may_run(&pod) {
            self.event(site, uid, "Warning", "ProviderCreateFailed", &words);
            self.publish_failed_create(site, uid, &words);
            self.tell(site, &pod, &format!("cannot be made: {words}"));
            return self.try_again(uid);
        }
        self.say(site, uid, State::Creating, "");
        if pod.managed && self.nodes.get(&pod.node).is_some_and(|node| node.vms.contains_key(&pod.vm)) {
            return self.adopt(site, uid, &pod);
        }
        match self.source(site, &pod, &said) {
            Ok(source) => {
                self.tell(site, &pod, &words_for(&source));
                let steps = self.steps_for(&pod, &source, &said);
                // Any fresh bring-up takes the snapshot for forks of an earlier VM away.
                if let Some(node) = self.nodes.get_mut(&pod.node) {
                    node.snapshots.remove(&fork_snapshot(&pod.vm));
                }
                self.enter(site, uid, Stage::Bringing { source, steps });
            }
            Err(refusal) => self.fail_create(site, uid, &refusal),
        }
    }

    /// Steps 1 and 2.
    fn may_run(&self, pod: &Pod) -> Result<(), String> {
        if pod.vm.is_empty() {
            return Err(format!("pod {} has no annotation {}", pod.place(), keys::VM_NAME));
        }
        let wanted = pod.object.pointer("/spec/nodeSelector").and_then(|all| all.get(keys::CPU_CLASS));
        let wanted = wanted.and_then(serde_json::Value::as_str).unwrap_or("");
        let has = self.nodes.get(&pod.node).and_then(|node| node.spec.class.as_deref()).unwrap_or("");
        if !wanted.is_empty() && wanted != has {
            return Err(format!("snapshot class {wanted} of the pod is not the node's class {has}"));
        }
        Ok(())
    }

    /// Step 4: a VM of this name is here already.
    fn adopt(&mut self, site: &mut Site<'_>, uid: &str, pod: &Pod) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.has_vm = true;
        }
        self.tell(site, pod, &format!("adopts the VM {}", pod.vm));
        self.say_runtime(site, uid);
        self.be_up(site, uid);
        self.be_ready(site, uid);
    }

    /// Steps 5a and 5b: where the VM comes from.
    fn source(&mut self, site: &mut Site<'_>, pod: &Pod, said: &Annotations) -> Result<Source, Refusal> {
        let bring_up = |words: String| Refusal { reason: "CreateBringUpFailed", words };
        if !pod.managed {
            let (id, ip) = (annotation(said, keys::VM_ID), annotation(said, keys::VM_IP));
            if id.is_empty() || ip.is_empty() {
                return Err(bring_up("an unmanaged VM needs its id and ip annotated".to_owned()));
            }
            return Ok(Source::Given { id: id.to_owned(), ip: ip.to_owned() });
        }
        let restores = flag(said, keys::RESTORE) || self.treat_as_restore(site, pod, said)?;
        let fork = annotation(said, keys::FORK_FROM);
        if restores {
            return Ok(Source::Restore);
        }
        if !annotation(said, keys::CLONE_FROM_DIR).is_empty() {
            return Ok(Source::Directory);
        }
        if !fork.is_empty() {
            let node = self.nodes.get(&pod.node);
            let known = node.is_some_and(|node| {
                node.vms.get(fork).is_some_and(|vm| vm.running) || node.snapshots.contains(&fork_snapshot(fork))
            });
            return if known {
                Ok(Source::Fork(fork.to_owned()))
            } else {
                Err(bring_up(format!("fork source {fork} does not run on node {}", pod.node)))
            };
        }
        Ok(if annotation(said, keys::MODE) == "run" { Source::Image } else { Source::Snapshot })
    }

    /// Step 5a: a leftover `hibernate` tag turns a fresh create into a restore, or forbids it.
    fn treat_as_restore(&mut self, site: &mut Site<'_>, pod: &Pod, said: &Annotations) -> Result<bool, Refusal> {
        if !self.settings.evidence_check {
            return Ok(false);
        }
        let unknown = |words: String| Refusal { reason: "HibernateEvidenceUnavailable", words };
        if let Some(words) = self.failure(&pod.uid, Step::Evidence) {
            return Err(unknown(words));
        }
        let reply = site.registry.ask(Verb::RegistryGet, &pod.vm, keys::TAG_HIBERNATE);
        let outcome = classify(Verb::RegistryGet, &reply);
        let base = match (outcome.class, outcome.answer) {
            (Class::Absent, _) => return Ok(false),
            (Class::Present, Answer::Snapshot { base_image, .. }) => base_image,
            (class, _) => {
                let words = format!("cannot tell whether {} was hibernated: {class}: {}", pod.vm, outcome.message);
                return Err(unknown(words));
            }
        };
        let refuse = |words: String| Err(Refusal { reason: "HibernateSnapshotExists", words });
        if !annotation(said, keys::FORK_FROM).is_empty() || !annotation(said, keys::CLONE_FROM_DIR).is_empty() {
            return refuse(format!("{} has a hibernate snapshot, and its pod names another source", pod.vm));
        }
        let image = annotation(said, keys::IMAGE);
        if let Some(base) = base.filter(|base| base != image) {
            return refuse(format!("the hibernate snapshot of {} is of image {base}, not {image}", pod.vm));
        }
        let words = format!("{} has a hibernate snapshot and is restored from it", pod.vm);
        self.event(site, &pod.uid, "Warning", "HibernateSnapshotExists", &words);
        Ok(true)
    }

    fn steps_for(&self, pod: &Pod, source: &Source, said: &Annotations) -> VecDeque<Step> {
        let node = self.nodes.get(&pod.node);
        let cached = |name: &str| node.is_some_and(|node| node.images.contains(name)) && !flag(said, keys::FORCE_PULL);
        let mut steps = VecDeque::new();
        match source {
            Source::Given { .. } => {}
            Source::Restore => steps.extend([Step::Pull, Step::Clone]),
            Source::Directory => steps.push_back(Step::Clone),
            Source::Fork(from) => {
                if !node.is_some_and(|node| node.snapshots.contains(&fork_snapshot(from))) {
                    steps.push_back(Step::ForkSource);
                }
                steps.push_back(Step::Clone);
            }
            Source::Image | Source::Snapshot => {
                if !cached(annotation(said, keys::IMAGE)) {
                    steps.push_back(Step::Pull);
                }
                steps.push_back(if *source == Source::Image { Step::Boot } else { Step::Clone });
            }
        }
        steps
    }

    /// A step of bringing the VM up has taken its time.
    pub(super) fn bring_on(&mut self, site: &mut Site<'_>, uid: &str, step: Step) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let Stage::Bringing { source, .. } = &pod.stage else { return };
        let restores = *source == Source::Restore;
        if let Some(words) = self.failure(uid, step) {
            let reason = match (restores, step) {
                (true, Step::Pull) => "WakePullFailed",
                (true, _) => "WakeCloneFailed",
                (false, _) => "CreateBringUpFailed",
            };
            return self.fail_create(site, uid, &Refusal { reason, words });
        }
        if restores && step == Step::Pull {
            let reply = site.registry.ask(Verb::RegistryGet, &pod.vm, keys::TAG_HIBERNATE);
            let outcome = classify(Verb::RegistryGet, &reply);
            if outcome.class != Class::Present {
                let words = format!("no snapshot {}:{} to restore: {}", pod.vm, keys::TAG_HIBERNATE, outcome.class);
                return self.fail_create(site, uid, &Refusal { reason: "WakePullFailed", words });
            }
        }
        let image = annotation(&annotations(&pod.object), keys::IMAGE).to_owned();
        if let Some(node) = self.nodes.get_mut(&pod.node) {
            match (step, source) {
                (Step::Pull, Source::Image | Source::Snapshot) => drop(node.images.insert(image)),
                (Step::ForkSource, Source::Fork(from)) => {
                    if node.vms.get(from).is_none_or(|vm| !vm.running) {
                        let words = format!("fork source {from} does not run on node {}", pod.node);
                        return self.fail_create(site, uid, &Refusal { reason: "CreateBringUpFailed", words });
                    }
                    node.snapshots.insert(fork_snapshot(from));
                }
                _ => {}
            }
        }
        self.next_step(site, uid);
    }

    /// Steps 6 to 8: the VM runs.
    pub(super) fn brought_up(&mut self, site: &mut Site<'_>, uid: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        let Stage::Bringing { source, .. } = &pod.stage else { return };
        let said = annotations(&pod.object);
        // Somebody else's VM has taken the name meanwhile.
        if pod.managed && self.nodes.get(&pod.node).is_some_and(|node| node.vms.contains_key(&pod.vm)) {
            let words = format!("a VM named {} exists on node {}", pod.vm, pod.node);
            return self.fail_create(site, uid, &Refusal { reason: "CreateBringUpFailed", words });
        }
        let deferred = match source {
            Source::Given { id, ip } => {
                self.take_given(uid, id, ip);
                false
            }
            Source::Image => {
                self.make_vm(uid, annotation(&said, keys::IMAGE), true);
                annotation(&said, keys::OS) == "windows"
            }
            Source::Restore | Source::Directory | Source::Fork(_) | Source::Snapshot => {
                self.make_vm(uid, annotation(&said, keys::IMAGE), false);
                true
            }
        };
        if pod.managed {
            self.say_runtime(site, uid);
        }
        self.be_up(site, uid);
        if !deferred {
            self.be_ready(site, uid);
            return self.catch_up(site, uid);
        }
        let mut steps = VecDeque::new();
        if annotation(&said, keys::OS) == "windows" {
            self.note(site, uid, keys::POST_CLONE_STATE, "running");
            steps.push_back(Step::PostClone);
        }
        steps.push_back(Step::IpWait);
        self.enter(site, uid, Stage::Settling { steps });
        self.catch_up(site, uid);
    }

    /// A VM that others run stands in the node's table under its given id.
    fn take_given(&mut self, uid: &str, id: &str, ip: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.has_vm = true;
        if let Some(node) = self.nodes.get_mut(&pod.node) {
            let vm = super::Vm { id: id.to_owned(), ip: ip.to_owned(), image: String::new(), running: true };
            node.vms.insert(pod.vm.clone(), vm);
        }
    }

    /// Step 7: probe and status.
    fn be_up(&mut self, site: &mut Site<'_>, uid: &str) {
        let well = self.is_well(uid);
        let now = self.now;
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.probe_ok = well;
        pod.started = now;
        pod.tries = 0;
        let pod = pod.clone();
        self.tell(site, &pod, "runs");
        self.publish_running(site, uid, false, "");
    }

    /// Step 9: a background step has taken its time.
    pub(super) fn settle_on(&mut self, site: &mut Site<'_>, uid: &str, step: Step) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        if let Some(words) = self.failure(uid, step) {
            let reason = match step {
                Step::PostClone => "PostCloneExecExhausted",
                _ if flag(&annotations(&pod.object), keys::RESTORE) => "WakeIPWaitTimeout",
                _ => "PostCloneIPWaitTimeout",
            };
            if step == Step::PostClone {
                self.note(site, uid, keys::POST_CLONE_STATE, "failed");
            }
            // The VM runs on, and keeps its id.
            self.fail(site, uid, reason, &words);
            if let Some(pod) = self.pods.get_mut(uid) {
                pod.stage = Stage::Resting;
            }
            return;
        }
        match step {
            Step::PostClone => {
                self.note(site, uid, keys::POST_CLONE_STATE, "done");
                self.event(site, uid, "Normal", "PostCloneSucceeded", "the guest is set up");
            }
            _ => {
                self.lease(uid);
                self.say_runtime(site, uid);
            }
        }
        self.next_step(site, uid);
    }

    /// Step 8: first the status, then the annotation (contract 2.2).
    pub(super) fn be_ready(&mut self, site: &mut Site<'_>, uid: &str) {
        let well = self.is_well(uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.stage = Stage::Resting;
        pod.probe_ok = well;
        let pod = pod.clone();
        self.publish_running(site, uid, well, if well { "" } else { "no answer to the probe" });
        self.say(site, uid, State::Ready, "");
        self.tell(site, &pod, "is ready");
    }

    /// Says `failed`, everywhere where it is said.
    fn fail(&mut self, site: &mut Site<'_>, uid: &str, reason: &str, words: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        self.tell(site, &pod, &format!("fails: {words}"));
        self.event(site, uid, "Warning", reason, words);
        self.say(site, uid, State::Failed, words);
    }

    /// Step 5c: the create has failed, and is tried again later.
    fn fail_create(&mut self, site: &mut Site<'_>, uid: &str, refusal: &Refusal) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.stage = Stage::Waiting;
        }
        self.fail(site, uid, refusal.reason, &refusal.words);
        self.publish_failed_create(site, uid, &refusal.words);
        self.try_again(uid);
        self.catch_up(site, uid);
    }

    fn try_again(&mut self, uid: &str) {
        let (most, first) = (self.settings.create_tries, self.settings.first_pause);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.stage = Stage::Waiting;
        pod.tries = pod.tries.saturating_add(1);
        if pod.tries < most {
            let after = pause(first, pod.tries);
            self.agenda.plan(Work::Pod(uid.to_owned()), later(self.now, after));
        }
    }
}

/// The pause after so many failures.
pub(super) fn pause(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}

/// The local snapshot that forks of this VM are cloned from.
pub(super) fn fork_snapshot(vm: &str) -> String {
    format!("fork-{vm}")
}

fn words_for(source: &Source) -> String {
    match source {
        Source::Given { id, .. } => format!("stands for the VM {id} that others run"),
        Source::Restore => "is restored from its hibernate snapshot".to_owned(),
        Source::Directory => "is cloned from a directory".to_owned(),
        Source::Fork(from) => format!("is forked from {from}"),
        Source::Image => "boots".to_owned(),
        Source::Snapshot => "is cloned".to_owned(),
    }
}

/// The set that owns a pod, as node agents read it (contract 4.3).
pub(super) fn owning_set(pod: &serde_json::Value) -> Option<&str> {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(serde_json::Value::as_array)?;
    owners.iter().find(|owner| text(owner, "/kind") == keys::SET_KIND).map(|owner| text(owner, "/name"))
}
