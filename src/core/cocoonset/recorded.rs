//! The names written down for teardown: kept few, so that a set that grows and shrinks for ever can still be written to,
//! and deleted. A name leaves only on evidence that nothing is owed under it any more (D-31, decision R7).

use super::answers;
use super::observed::Observed;
use crate::core::action::{ActionKind, Attempt, Change, Live, Question, Want};
use crate::core::contract::names::{VmName, vm_of_pod};
use crate::core::contract::{delete_names, keys};
use crate::core::decide::Gate;
use crate::core::decision::Finding;
use crate::core::fact::Fact;
use crate::core::oddity::many;
use crate::core::outcome::Effect;
use crate::core::rule::Rule;
use crate::rules;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

rules! {
    /// Ask the API server whether a pod of a recorded name is left, whatever its labels, before the registry is asked for
    /// its tags: while there is one, its node agent may push another.  (D-31, R8, R26)
    LOOK_FOR_PODS = "names/look-for-pods";
    /// Ask the registry whether a tag of a recorded name is left, once many are recorded that nothing speaks of any more.
    /// (D-31, R7)
    ASK_TAGS = "names/ask-tags";
    /// Take names off the record whose pods and tags are gone. Without it a set that grows and shrinks for ever outgrows
    /// what the API server stores, and can be neither written to nor deleted.  (D-31, R7)
    FORGET = "names/forget";
}

/// So many names that nothing speaks of any more are left alone: asking costs more than they do.
const FEW: usize = 32;
/// Between two that are asked about where nothing else happens, or where the last had tags.
const PAUSE: Duration = Duration::from_secs(60);
/// A name whose tags were found is asked about again after this long.
const ASKED_AGAIN: Duration = Duration::from_secs(3600);
/// The most that the record may hold; the API server bears 256 KiB over all of an object's annotations.
const LIMIT: usize = 64 * 1024;

impl Observed {
    /// The write that records these names for teardown, unless they stand there already (decision R7).
    pub fn remember(&self, more: &BTreeSet<String>) -> Option<Change> {
        if more.iter().all(|name| self.set.records_name(name)) {
            return None;
        }
        let mut all = self.set.recorded.names.clone();
        all.extend(more.iter().map(|name| VmName(name.clone())));
        Some(write(self, &all))
    }
    /// The same while the set is being deleted: its status is not written any more, so that the names that it lists need
    /// no second place where the record was refused.
    pub fn remember_at_last(&self) -> Option<Change> {
        let mut owed = self.names_owed();
        if is_refused(self) {
            owed.retain(|name| self.set.records_name(name) || !self.set.status.vm_names().any(|listed| listed == name));
        }
        self.remember(&owed)
    }
}

/// What stands in the place of a write of the record that is too large, and of what is owed after it: by then every name
/// that stands there has tags of its own.
pub fn too_large(rule: &Rule, change: &Change) -> Option<Finding> {
    let Change::PatchObject { annotations, .. } = change else { return None };
    let bytes = annotations.get(keys::DELETE_VM_NAMES)?.as_ref()?.len();
    let message = format!("the names of VMs whose tags are to be collected take {bytes} bytes of at most {LIMIT}");
    (bytes > LIMIT).then(|| {
        Finding::of(rule, message.clone())
            .trouble("RecordTooLarge", format!("{message}; delete tags of VMs that are no more, or the set"))
            .stop()
    })
}

fn write(seen: &Observed, names: &BTreeSet<VmName>) -> Change {
    Change::PatchObject {
        annotations: BTreeMap::from([(keys::DELETE_VM_NAMES.to_owned(), Some(delete_names::write(names)))]),
        resource_version: seen.set.resource_version.clone(),
    }
}

/// The server does not take the record, or does not keep it.
fn is_refused(seen: &Observed) -> bool {
    let attempt = Attempt { action: ActionKind::PatchObject, target: String::new(), dry_run: false };
    let effect = seen.memory.record(&attempt).map(|record| record.class.effect());
    effect == Some(Effect::Refused) || effect == Some(Effect::Happened)
}

/// Where many names are recorded that nothing speaks of any more: those that are settled go, after the questions. Nothing
/// is asked that the write would have to be asked for again, and nothing that may not be asked at the moment: there is no
/// hurry.
pub fn settle(seen: &Observed) -> Vec<Finding> {
    let idle = idle(seen);
    if idle.len() <= FEW {
        return Vec::new();
    }
    if !is_open(seen, &Want::Change(write(seen, &seen.set.recorded.names))) {
        return vec![next_look()];
    }
    // One in a pass: the refusal of its tags may be that of all.
    let is_asked = |vm: &str| seen.snapshot(vm, keys::TAG_HIBERNATE) != &Fact::Unasked;
    let may_be_free = |vm: &str| seen.live.pods.known().is_none() || has_no_pod(seen, vm);
    let mut due = idle.iter().copied().filter(|vm| !is_asked(vm) && !found_lately(seen, vm) && may_be_free(vm));
    let due = due.next();
    let is_turn = !is_paced(seen) && !seen.set.recorded_names().any(is_asked);
    let open: Vec<Finding> = due.filter(|_| is_turn).and_then(|vm| questions(seen, vm)).into_iter().collect();
    let is_gone = |vm: &str, tag: &str| seen.snapshot(vm, tag).known() == Some(&None);
    let is_settled = |vm: &str| is_gone(vm, keys::TAG_HIBERNATE) && is_gone(vm, keys::TAG_LATEST);
    let settled: BTreeSet<&str> = idle.into_iter().filter(|vm| is_settled(vm) && has_no_pod(seen, vm)).collect();
    if !open.is_empty() || settled.is_empty() {
        return if open.is_empty() { due.map(|_| next_look()).into_iter().collect() } else { open };
    }
    let because = format!("neither pod nor tag is left of {}", many(settled.len(), "recorded name", "recorded names"));
    let kept = seen.set.recorded.names.iter().filter(|name| !settled.contains(name.as_str()));
    vec![Finding::of(&FORGET, because).change(write(seen, &kept.cloned().collect()))]
}

/// Recorded names that neither spec nor status nor any pod speaks of.
fn idle(seen: &Observed) -> Vec<&str> {
    if seen.set.recorded.names.len() <= FEW {
        return Vec::new();
    }
    let listed: BTreeSet<&str> = seen.set.status.vm_names().collect();
    let borne: BTreeSet<String> = seen.pods.values().filter_map(|pod| seen.vm_of(pod)).collect();
    let wanted = seen.set.vm_names();
    let spoken = |vm: &&str| listed.contains(vm) || borne.contains(*vm) || wanted.contains(*vm);
    let is_idle = |vm: &&str| !spoken(vm) && pod_of(seen, vm).is_some_and(|pod| !is_near(seen, pod));
    seen.set.recorded_names().filter(is_idle).collect()
}

/// A pod of this name is there, or nobody knows yet that it is not.
fn is_near(seen: &Observed, pod: &str) -> bool {
    seen.pods.contains_key(pod)
        || seen.strangers.contains_key(pod)
        || seen.memory.vanished.get(pod).is_some_and(|gone| !gone.confirmed)
}

/// The pod that today's formula gives this name. One of the successors' formula cannot be told from its name, and stays.
fn pod_of<'a>(seen: &Observed, vm: &'a str) -> Option<&'a str> {
    let pod = vm.strip_prefix(vm_of_pod(&seen.set.namespace, "").as_str())?;
    pod.starts_with(&format!("{}-", seen.set.name)).then_some(pod)
}

/// A list of this pass shows no pod under which this VM was.
fn has_no_pod(seen: &Observed, vm: &str) -> bool {
    let live = seen.live.pods.known();
    live.zip(pod_of(seen, vm)).is_some_and(|(pods, pod)| pods.iter().all(|live| live.name != pod))
}

fn found_lately(seen: &Observed, vm: &str) -> bool {
    seen.memory.kept.get(vm).is_some_and(|at| seen.mono.saturating_sub(*at) < ASKED_AGAIN)
}

/// The last that was asked about had tags, or a pod: there is no hurry with the next.
fn is_paced(seen: &Observed) -> bool {
    let last = seen.memory.kept.values().max();
    last.is_some_and(|at| seen.mono.saturating_sub(*at) < PAUSE)
}

fn next_look() -> Finding {
    Finding::of(&ASK_TAGS, "many names are recorded").wait("the next look at recorded names", Some(PAUSE))
}

fn is_open(seen: &Observed, want: &Want) -> bool {
    match answers::gate(seen, want) {
        Gate::Open => true,
        // Another look is all that it takes.
        Gate::Held(held) => held.rule == answers::LOOK_AGAIN.id(),
    }
}

/// First whether its pod is there, then for its tags.
fn questions(seen: &Observed, vm: &str) -> Option<Finding> {
    let probe = |tag: &str| Question::ProbeSnapshot { vm: vm.to_owned(), tag: tag.to_owned() };
    let (rule, questions) = match &seen.live.pods {
        Fact::Unasked => (&LOOK_FOR_PODS, vec![Question::ReadLive(Live::Pods)]),
        Fact::Unavailable(_) => return None,
        Fact::Known(_) if !has_no_pod(seen, vm) => return None,
        Fact::Known(_) => (&ASK_TAGS, vec![probe(keys::TAG_HIBERNATE), probe(keys::TAG_LATEST)]),
    };
    let is_open = questions.iter().all(|question| is_open(seen, &Want::Ask(question.clone())));
    let finding = Finding::of(rule, format!("{vm} is recorded, and nothing speaks of it"));
    is_open.then(|| questions.into_iter().fold(finding, Finding::ask))
}
