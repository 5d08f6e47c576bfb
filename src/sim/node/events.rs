//! How an agent hears of pods: changes as the API server gives them, or a list after it was away.

use super::report::annotations;
use super::{Nodes, Pod, Site, Stage, Work, later};
use crate::core::contract::lifecycle::{Lifecycle, State};
use crate::core::contract::{flag, int, keys, text as annotation};
use crate::sim::store::objects::{is_deleting, meta, text};
use crate::sim::store::{WatchEvent, WatchKind};
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// When drift is first looked for after a pod's start, and how often then; seconds.
const FIRST_ROUND: i64 = 10;
const ROUND: i64 = 30;

impl Nodes {
    /// Takes in what has happened to pods.
    pub(crate) fn look_at(&mut self, site: &mut Site<'_>, events: &[WatchEvent]) {
        for event in events {
            let gone = event.kind == WatchKind::Deleted;
            if gone || self.hears_of(&event.object) {
                self.hear(site, &event.object, gone);
            }
        }
    }

    /// Lists all pods, after the changes since the last look are no longer known.
    pub(crate) fn list_again(&mut self, site: &mut Site<'_>) {
        let all = site.server.pods();
        let here: BTreeSet<&str> = all.iter().map(|pod| meta(pod, "uid")).collect();
        let gone: Vec<Arc<Value>> =
            self.pods.values().filter(|pod| !here.contains(pod.uid.as_str())).map(|pod| pod.object.clone()).collect();
        for pod in &gone {
            self.hear(site, pod, true);
        }
        for pod in &all {
            if self.hears_of(pod) {
                self.hear(site, pod, false);
            }
        }
    }

    fn hears_of(&self, pod: &Value) -> bool {
        self.nodes.get(text(pod, "/spec/nodeName")).is_some_and(|node| node.up)
    }

    fn hear(&mut self, site: &mut Site<'_>, object: &Arc<Value>, gone: bool) {
        let uid = meta(object, "uid").to_owned();
        match (self.pods.contains_key(&uid), gone) {
            (false, true) => {}
            (false, false) => {
                // A change that this agent made itself, of a pod that is gone by now, is no news.
                let here = site.server.pod(&uid).is_some();
                let finished = matches!(text(object, "/status/phase"), "Failed" | "Succeeded");
                if here && (!finished || is_deleting(object)) {
                    self.take_up(object);
                    self.changed(site, &uid, object, false);
                }
            }
            (true, _) => self.changed(site, &uid, object, gone),
        }
    }

    /// A pod that this agent did not know.
    pub(super) fn take_up(&mut self, object: &Arc<Value>) {
        let said = annotations(object);
        let uid = meta(object, "uid").to_owned();
        let pod = Pod {
            node: text(object, "/spec/nodeName").to_owned(),
            namespace: meta(object, "namespace").to_owned(),
            name: meta(object, "name").to_owned(),
            uid: uid.clone(),
            vm: annotation(&said, keys::VM_NAME).to_owned(),
            managed: flag(&said, keys::MANAGED),
            stage: Stage::Waiting,
            has_vm: false,
            leaving: false,
            object_gone: false,
            object: Arc::clone(object),
            tries: 0,
            // What an agent before this one has said is not lowered.
            lifecycle: Lifecycle {
                state: State::Unset,
                observed_generation: int(&said, keys::LIFECYCLE_GENERATION),
                message: String::new(),
            },
            unsaid: 0,
            status: None,
            probe_ok: true,
            ready_since: None,
            started: self.now,
            restarted: None,
        };
        self.pods.insert(uid.clone(), pod);
        self.agenda.plan(Work::Pod(uid), self.now);
    }

    /// A pod that is known has changed, or its object is gone.
    fn changed(&mut self, site: &mut Site<'_>, uid: &str, object: &Arc<Value>, gone: bool) {
        let now = self.now;
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.object = Arc::clone(object);
        pod.object_gone |= gone;
        if !pod.has_vm && !pod.is_busy() {
            let said = annotations(object);
            pod.vm = annotation(&said, keys::VM_NAME).to_owned();
            pod.managed = flag(&said, keys::MANAGED);
        }
        if gone || is_deleting(object) {
            pod.leaving = true;
            if !pod.is_busy() {
                self.begin_leaving(site, uid);
            }
            return;
        }
        if pod.is_busy() {
            return;
        }
        let (state, message) = (pod.lifecycle.state.clone(), pod.lifecycle.message.clone());
        let stamped = int(&annotations(object), keys::GENERATION);
        let behind = stamped > pod.lifecycle.observed_generation && state != State::Unset;
        let exhausted = pod.stage == Stage::Waiting && pod.tries >= self.settings.create_tries;
        if behind {
            // The echo: the same state, known at the new generation (contract 2.2).
            self.say(site, uid, state, &message);
        }
        if exhausted {
            if let Some(pod) = self.pods.get_mut(uid) {
                pod.tries = 0;
            }
            self.agenda.plan_once(Work::Pod(uid.to_owned()), now);
        }
        let drifted = self.pods.get(uid).is_some_and(|pod| self.has_drifted(pod, object));
        if drifted {
            let at = self.next_round(uid);
            self.agenda.plan_once(Work::Reconcile(uid.to_owned()), at);
        }
    }

    /// The agent's next periodic look at this pod.
    fn next_round(&self, uid: &str) -> jiff::Timestamp {
        let Some(pod) = self.pods.get(uid) else { return self.now };
        let age = self.now.duration_since(pod.started).as_secs();
        let rounds = if age < FIRST_ROUND { 0 } else { (age - FIRST_ROUND) / ROUND + 1 };
        let at = SignedDuration::from_secs(FIRST_ROUND.saturating_add(rounds.saturating_mul(ROUND)));
        pod.started.checked_add(at).unwrap_or(self.now)
    }

    /// Forgets a pod, and lets one of the same name begin.
    pub(super) fn forget(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else { return };
        for work in [Work::Pod, Work::Probe, Work::Look, Work::Restarted, Work::Reconcile] {
            self.agenda.cancel(&work(uid.to_owned()));
        }
        let waits = |other: &&Pod| {
            other.node == pod.node && other.place() == pod.place() && other.stage == Stage::Waiting && other.tries == 0
        };
        let next = self.pods.values().find(waits).map(|other| other.uid.clone());
        if let Some(uid) = next {
            self.agenda.plan(Work::Pod(uid), later(self.now, std::time::Duration::ZERO));
        }
    }
}
