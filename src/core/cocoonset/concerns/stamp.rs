//! Tell every pod which generation it answers to, and whose it is.

use crate::core::action::{Change, MetaPatch};
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::answers::gate;
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::contract::names::Role;
use crate::core::decide::Gate;
use crate::core::decision::{Finding, Verdict};
use crate::core::pod::facts::PodFacts;
use crate::rules;

rules! {
    /// Stamp each pod with the generation of the set. Without it nobody can tell whether what the node agent says was
    /// said in knowledge of this spec. Not a pod that the spec stopped wanting: it is deleted, and where that delete
    /// meets a conflict it is sent again without a stamp in between.  (CS-E1, D-57)
    GENERATION = "stamp/generation";
    /// Put back the labels of a pod that is ours by its owner. Without them the watch does not show it, and the set
    /// tries for ever to create what exists.  (D-26, D-66)
    LABELS = "stamp/labels";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let mut findings = Vec::new();
    for pod in seen.pods.values().filter(|pod| !pod.deleting) {
        findings.extend(labels(seen, pod));
        findings.extend(generation(seen, pod));
    }
    if findings.is_empty() {
        return Verdict::pass(format!("every pod answers to generation {}", seen.set.generation));
    }
    Verdict::Act(findings)
}

fn generation(seen: &Observed, pod: &PodFacts) -> Option<Finding> {
    let wanted = seen.set.generation;
    // What the spec no longer wants is about to be deleted, and answers to no generation any more.
    if pod.generation == wanted || seen.is_surplus(pod) {
        return None;
    }
    let because = format!("{} answers to generation {}, not {wanted}", pod.name, pod.generation);
    let patch = MetaPatch::annotation(keys::GENERATION, Some(&wanted.to_string()));
    Some(Finding::of(&GENERATION, because).change(patch_pod(pod, patch)))
}

fn labels(seen: &Observed, pod: &PodFacts) -> Option<Finding> {
    let role = seen.role_of(pod);
    if role == Role::Unknown {
        return None;
    }
    let wanted =
        [(keys::NAME, seen.set.name.clone()), (keys::ROLE, role.label().to_owned()), (keys::SLOT, role.slot_label())];
    let mut patch = MetaPatch::default();
    for (key, value) in wanted {
        if pod.labels.get(key) != Some(&value) {
            patch.labels.insert(key.to_owned(), Some(value));
        }
    }
    if patch.is_empty() {
        return None;
    }
    let because = format!("{} lacks labels of ours", pod.name);
    Some(Finding::of(&LABELS, because).change(patch_pod(pod, patch)))
}

/// A pod that no watch shows, and that one will once its labels are back: until then its delete waits. Nobody would see
/// when it is gone, and its VM name would count as free while its VM is still being saved (decision R26).
pub fn is_hidden_for_now(seen: &Observed, pod: &PodFacts) -> bool {
    let hidden = !pod.labels.contains_key(keys::NAME);
    hidden && labels(seen, pod).is_some_and(|told| told.wants.iter().all(|want| gate(seen, want) == Gate::Open))
}

/// A patch of a pod, with its uid.
pub fn patch_pod(pod: &PodFacts, patch: MetaPatch) -> Change {
    Change::PatchPod { pod: pod.name.to_string(), uid: pod.uid.to_string(), patch }
}
