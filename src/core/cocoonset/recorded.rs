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
    LOOK_FOR_POD = "names/look-for-pod";
    /// Ask the registry whether a tag of a recorded name is left, once many are recorded that nothing speaks of any more.
    /// (D-31, R7)
    ASK_TAGS = "names/ask-tags";
    /// Take names off the record whose pods and tags are gone. Without it a set that grows and shrinks for ever outgrows
    /// what the API server stores, and can be neither written to nor deleted.  (D-31, R7)
    FORGET = "names/forget";
}

/// So many names that nothing speaks of any more are left alone: asking costs more than they do.
const FEW: usize = 32;
/// So many are asked about in one pass.
const AT_ONCE: usize = 16;
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

/// Where many names are recorded that nothing speaks of any more: those that are settled go, after the questions.
pub fn settle(seen: &Observed) -> Vec<Finding> {
    let idle = idle(seen);
    if idle.len() <= FEW {
        return Vec::new();
    }
    let is_gone = |tag: &str, vm: &str| seen.snapshot(vm, tag).known() == Some(&None);
    let is_settled = |vm: &&str| {
        let no_pod = pod_of(seen, vm).is_some_and(|pod| is_known_gone(seen, pod));
        no_pod && is_gone(keys::TAG_HIBERNATE, vm) && is_gone(keys::TAG_LATEST, vm)
    };
    let due = idle.into_iter().filter(|vm| !found_lately(seen, vm)).take(AT_ONCE);
    let (settled, open): (Vec<&str>, Vec<&str>) = due.partition(is_settled);
    let questions: Vec<Finding> = open.iter().filter_map(|vm| next_question(seen, vm)).collect();
    if !questions.is_empty() || settled.is_empty() {
        return questions;
    }
    let because = format!("neither pod nor tag is left of {}", many(settled.len(), "recorded name", "recorded names"));
    let kept = seen.set.recorded.names.iter().filter(|name| !settled.contains(&name.as_str()));
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

fn is_known_gone(seen: &Observed, pod: &str) -> bool {
    seen.live.pod.get(pod).and_then(Fact::known) == Some(&None)
}

fn found_lately(seen: &Observed, vm: &str) -> bool {
    seen.memory.kept.get(vm).is_some_and(|at| seen.mono.saturating_sub(*at) < ASKED_AGAIN)
}

/// First the pod, then its tags; nothing that may not be asked at the moment: there is no hurry.
fn next_question(seen: &Observed, vm: &str) -> Option<Finding> {
    let pod = pod_of(seen, vm)?;
    let (rule, questions) = if is_known_gone(seen, pod) {
        let probe = |tag: &str| Question::ProbeSnapshot { vm: vm.to_owned(), tag: tag.to_owned() };
        let tags = [keys::TAG_HIBERNATE, keys::TAG_LATEST];
        let unasked = tags.iter().filter(|tag| *seen.snapshot(vm, tag) == Fact::Unasked);
        (&ASK_TAGS, unasked.map(|tag| probe(tag)).collect::<Vec<_>>())
    } else if seen.live.pod.contains_key(pod) {
        (&LOOK_FOR_POD, Vec::new())
    } else {
        (&LOOK_FOR_POD, vec![Question::ReadLive(Live::Pod(pod.to_owned()))])
    };
    let open = questions.into_iter().filter(|it| answers::gate(seen, &Want::Ask(it.clone())) == Gate::Open);
    let finding = Finding::of(rule, format!("{vm} is recorded, and nothing speaks of it"));
    let finding = open.fold(finding, Finding::ask);
    (!finding.wants.is_empty()).then_some(finding)
}
