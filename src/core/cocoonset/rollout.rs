//! A pod that is not as the spec wants it: patched in place where the node agent reads the value later, replaced one at
//! a time where it does not.

use super::answers;
use super::concerns::stamp::patch_pod;
use super::costs::Costed;
use super::observed::Observed;
use super::rebuild;
use super::rolling;
use super::seat::{self, Seat};
use crate::core::action::{Attempt, Change, MetaPatch, Want};
use crate::core::decide::Gate;
use crate::core::decision::Finding;
use crate::core::pod::drift::{FieldDrift, adopt, must_recreate, patch_in_place};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::field::Remedy;
use crate::core::pod::template::{Placement, PodTemplate};
use crate::rules;

rules! {
    /// Patch what the node agent reads when it needs it: an edit of a policy or a probe destroys no VM.  (D-20, R20)
    PATCH_IN_PLACE = "rollout/patch-in-place";
    /// State on a pod of an older operator what was asked for in it: from then on every edit is noticed, and no change
    /// that admission made is.  (D-19, R20)
    ADOPT = "rollout/adopt";
    /// Say that a patched value only counts from the next boot on.  (R20)
    TAKES_EFFECT_LATER = "rollout/takes-effect-later";
    /// Ask whether the new pod would be admitted before the old one is deleted, and the registry whether a snapshot would
    /// keep it from being created. Without it a refused spec costs a running VM, and so does a registry that is away, or a
    /// quota in which the old pod's share leaves no room for the new one.  (D-55, R20)
    ASK_ADMISSION = "rollout/ask-admission";
    /// Replace nothing where a snapshot waits that this version does not restore: no successor would be created.  (D-81, R20)
    SNAPSHOT_FOUND = "rollout/snapshot-found";
    /// Delete a pod whose difference no patch can mend; it is created anew as wanted.  (CS-X1, CS-A8, CS-B3, R20)
    RECREATE = "rollout/recreate";
    /// Wait for the last replaced pod to be Ready before the next is replaced: one at a time, and none after one that
    /// failed.  (D-20, R20)
    AWAIT_TURN = "rollout/await-turn";
    /// Replace nothing while part of the spec cannot be read: what stands in its place is a guess, and no VM is lost for a
    /// guess. What the other parts ask for waits with it.  (D-58, D-71)
    UNREADABLE = "rollout/unreadable-spec";
    /// Delete a pod that no node has taken yet and that may only go to a node where it is no longer wanted: its affinity
    /// never changes, so that it would wait for ever. Nothing runs in it; it is created anew for the right node.  (D-44)
    FOLLOW = "rollout/follow";
}

/// What a patch can put right, if anything.
pub fn in_place(pod: &PodFacts, wanted: &PodTemplate, drifts: &[FieldDrift]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut patch = patch_in_place(wanted, &pod.carries, drifts);
    patch.retain(|key, value| pod.annotations.get(key) != value.as_ref());
    if !patch.is_empty() {
        let because = format!("{}: {}", pod.name, told(drifts.iter().filter(|drift| drift.remedy != Remedy::Recreate)));
        let patch = MetaPatch { annotations: patch, ..MetaPatch::default() };
        findings.push(Finding::of(&PATCH_IN_PLACE, because).change(patch_pod(pod, patch.clone())));
        let later: Vec<&str> =
            drifts.iter().filter(|drift| drift.remedy == Remedy::PatchAtNextBoot).map(|drift| drift.field).collect();
        if !later.is_empty() {
            let message = format!("{} of {} counts from the next boot on", later.join(", "), pod.name);
            let finding = Finding::of(&TAKES_EFFECT_LATER, message.clone()).change(patch_pod(pod, patch));
            findings.push(finding.announce(false, "TakesEffectAtNextBoot", message).about(pod));
        }
    }
    if drifts.is_empty()
        && let Some(patch) = adopt(wanted, &pod.carries)
    {
        let because = format!("{} does not say what was asked for in it", pod.name);
        let patch = MetaPatch { annotations: patch, ..MetaPatch::default() };
        findings.push(Finding::of(&ADOPT, because).change(patch_pod(pod, patch)));
    }
    findings
}

/// Leaves a pod that is to go for another, while nobody knows what the other is to be.
pub fn unreadable(pod: &PodFacts) -> Finding {
    Finding::of(&UNREADABLE, format!("{}: part of the spec cannot be read", pod.name)).stop()
}

/// Replaces a pod: first the question, then the delete.
pub fn replace(seen: &Observed, seat: &Seat, pod: &PodFacts, wanted: &PodTemplate, drifts: &[FieldDrift]) -> Costed {
    if let Some(node) = rebuild::lost_node(seen, pod) {
        return rebuild::await_node(seen, pod, &node).into();
    }
    if pod.may_outlive_its_end() {
        return rebuild::await_word(pod).into();
    }
    if seen.set.spec.unreadable {
        return unreadable(pod).into();
    }
    let because = format!("{}: {}", pod.name, told(drifts.iter().filter(|drift| drift.remedy == Remedy::Recreate)));
    let delete = Change::DeletePod {
        pod: pod.name.to_string(),
        uid: pod.uid.to_string(),
        resource_version: Some(pod.resource_version.clone()),
    };
    if let Some(told) = rolling::tell_first(seen, &because) {
        return told.into();
    }
    let is_admitted = seen.live.admitted.contains(&seat.pod);
    // A delete that may not be sent yet needs no answer of registry and admission.
    if !is_admitted && let Gate::Held(held) = answers::gate(seen, &Want::Change(delete.clone())) {
        return Finding { because: format!("{} ({because})", held.because).into(), ..*held }.into();
    }
    let ask = Finding::of(&ASK_ADMISSION, because.clone());
    let create = Want::Change(seat::create(seen, seat, wanted, true));
    // Before admission may be asked again, nobody needs to know of a snapshot.
    let is_refused = !is_admitted && answers::gate(seen, &create) != Gate::Open;
    if let Some(mut held) = seat::successor_held(seen, seat, ask.clone(), &SNAPSHOT_FOUND).filter(|_| !is_refused) {
        let is_news = |want: &Want| matches!(want, Want::Ask(_)) && !is_answered(seen, want);
        // Both are asked in one plan, of which no patch of this pod is part.
        if !is_admitted && !seen.memory.found.contains_key(&seat.vm) && held.wants.iter().all(is_news) {
            held.wants.push(create);
        }
        return held.into();
    }
    if !is_admitted {
        return Finding { wants: vec![create], ..ask }.into();
    }
    let message = format!("{because}; the pod is replaced");
    let recreate = Finding::of(&RECREATE, because).change(delete).announce(false, "Recreating", message).about(pod);
    Costed::from(recreate).fresh(seen, seat)
}

/// Whether it came to something else than what was wanted, and that is not over.
fn is_answered(seen: &Observed, want: &Want) -> bool {
    Attempt::of(want).is_some_and(|attempt| seen.memory.record(&attempt).is_some())
}

/// Says that a replacement has to wait for its turn.
pub fn await_turn(pod: &PodFacts, drifts: &[FieldDrift], whom: &str) -> Finding {
    let because = format!("{}: {}; first {whom}", pod.name, told(drifts.iter()));
    Finding::of(&AWAIT_TURN, because).wait(whom.to_owned(), None)
}

/// Whether a pod waits for a node where it is no longer wanted. One that is bound stays: placement never drifts.
pub fn is_misplaced(pod: &PodFacts, wanted: &PodTemplate) -> bool {
    let bound_for = match &pod.carries.placement {
        Placement::Required(_) => &pod.carries.placement,
        Placement::Preferred(_) | Placement::Anywhere => return false,
    };
    pod.node.is_none() && !pod.deleting && !pod.has_vm() && *bound_for != wanted.placement
}

/// Deletes it, on the version that no node has: one that is bound meanwhile stays.
pub fn follow(pod: &PodFacts, wanted: &PodTemplate) -> Finding {
    let because = format!("{} waits for {}, wanted {}", pod.name, pod.carries.placement, wanted.placement);
    Finding::of(&FOLLOW, because).change(Change::DeletePod {
        pod: pod.name.to_string(),
        uid: pod.uid.to_string(),
        resource_version: Some(pod.resource_version.clone()),
    })
}

/// Whether a replacement is called for.
pub fn is_due(drifts: &[FieldDrift]) -> bool {
    must_recreate(drifts)
}

fn told<'a>(drifts: impl Iterator<Item = &'a FieldDrift>) -> String {
    let fields: Vec<String> =
        drifts.take(4).map(|drift| format!("{} is {}, wanted {}", drift.field, drift.from, drift.to)).collect();
    fields.join("; ")
}
