//! Taking answers in: the observation after an attempt is the observation before it and what the world said.

use super::absorb_live::{live_read, pod_is_gone, take_pod};
use super::answers::is_known_gone;
use super::observed::{Manifest, Observed, SetFacts, Snapshot};
use super::quota::leaves_room;
use super::tags::delete_of;
use crate::core::action::{ActionKind, Attempt, Change, Question, Want};
use crate::core::api::set_status::SetStatus;
use crate::core::contract::keys;
use crate::core::contract::names::vm_of_pod;
use crate::core::fact::Fact;
use crate::core::memory::{NamespaceLive, NamespaceRefusal, Record, Watched};
use crate::core::outcome::{Answer, Class, Effect, Outcome};
use serde_json::Value;

/// Takes in what an attempt came to.
pub fn absorb(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    seen.tried.push((attempt.clone(), outcome.class));
    match attempt.action {
        ActionKind::ReadLive => live_read(seen, attempt, outcome),
        ActionKind::ProbeSnapshot => probe(seen, attempt, outcome),
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus => {
            object_write(seen, attempt, outcome);
        }
        ActionKind::CreatePod => create(seen, attempt, outcome),
        ActionKind::DeletePod => delete(seen, attempt, outcome),
        ActionKind::PatchPod => patch_pod(seen, attempt, outcome),
        ActionKind::DeleteSnapshot => delete_snapshot(seen, attempt, outcome),
        ActionKind::EmitEvent | ActionKind::Await | ActionKind::Stop => {}
    }
}

/// Success clears what came before; anything else is noted.
pub(super) fn note(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    let on_live = seen.live.object != Fact::Unasked;
    if outcome.effect() == Effect::Happened {
        seen.memory.forget(attempt, seen.mono);
    } else {
        seen.memory.note(attempt, outcome, seen.mono, seen.set.generation, on_live);
    }
}

pub(super) fn object(outcome: &Outcome) -> Option<&Value> {
    match (&outcome.answer, outcome.effect() == Effect::Happened) {
        (Answer::Object(object), true) => Some(object),
        (Answer::Object(_) | Answer::Nothing | Answer::List { .. } | Answer::Snapshot { .. } | Answer::NotThere, _) => {
            None
        }
    }
}

pub(super) fn take_set(seen: &mut Observed, object: &Value) {
    let set = SetFacts::of(object);
    if set.uid != seen.set.uid {
        seen.live.object_gone = true;
        return;
    }
    seen.oddities.retain(|oddity| !seen.set.oddities.contains(oddity));
    seen.oddities.extend(set.oddities.iter().cloned());
    seen.set = set;
}

fn object_write(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    let before = seen.memory.record(attempt).filter(|record| record.on_live).map(|record| record.tested.clone());
    note(seen, attempt, outcome);
    let tested = seen.set.finalizers.clone();
    if attempt.is_about_finalizers()
        && let Some(record) = seen.memory.attempts.get_mut(attempt)
    {
        record.in_vain =
            outcome.class == Class::PreconditionFailed && record.on_live && before.as_ref() == Some(&tested);
        record.tested = tested;
    }
    if let Some(object) = object(outcome) {
        take_set(seen, &object.clone());
        if attempt.action == ActionKind::PatchStatus {
            seen.memory.last_status = Some(seen.mono);
        }
    }
    // One 404 is no proof that the object is gone: that takes a live read, of now or of before.
    if outcome.effect() == Effect::Gone && is_known_gone(seen) {
        seen.live.object_gone = true;
    }
}

/// In a rehearsal our finalizer stands as if added: it is ahead of everything, and hides the plan that follows.
pub fn suppose(seen: &mut Observed, want: &Want) -> bool {
    match want {
        Want::Change(Change::AddFinalizer { finalizers, .. }) if seen.set.claims() == 0 => {
            seen.set.finalizers = Some(finalizers.clone());
            true
        }
        Want::Change(_) | Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => false,
    }
}

/// An older CRD prunes `nodeName` of entries, and what scaling shows: then it is no longer compared (decision R25). Only a
/// write that stated it tells: of a pod that had no node yet, or in a write of conditions alone, there was none to prune.
pub fn note_pruned(seen: &mut Observed, change: &Change, outcome: &Outcome) {
    let Change::PatchStatus { status, .. } = change else { return };
    if object(outcome).is_none() {
        return;
    }
    let (stated, answered) = (SetStatus::read(status), &seen.set.status);
    let names_a_node = |status: &SetStatus| status.node_names().next().is_some();
    let memory = &mut seen.memory;
    memory.node_names_pruned = !names_a_node(answered) && (names_a_node(&stated) || memory.node_names_pruned);
    memory.scale_pruned = answered.selector.is_empty() && (!stated.selector.is_empty() || memory.scale_pruned);
}

fn probe(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    let Some((vm, tag)) = attempt.target.rsplit_once(':') else { return };
    let fact = if outcome.class == Class::Absent {
        Fact::Known(None)
    } else if outcome.effect() == Effect::Happened {
        Fact::Known(Some(manifest(outcome)))
    } else {
        unavailable(outcome)
    };
    let target = &attempt.target;
    match fact.known() {
        Some(None) if seen.set.deleting.is_some() => settle_tag(seen, target),
        Some(Some(_)) => drop(seen.memory.collected.remove(target)),
        Some(None) | None => {}
    }
    if fact.known().is_some() {
        seen.memory.looked(&Question::ProbeSnapshot { vm: vm.to_owned(), tag: tag.to_owned() });
    }
    match &fact {
        Fact::Known(Some(_)) if tag == keys::TAG_HIBERNATE => drop(seen.memory.found.insert(vm.to_owned(), seen.mono)),
        Fact::Known(_) => drop(seen.memory.found.remove(vm)),
        Fact::Unasked | Fact::Unavailable(_) => {}
    }
    if matches!(fact, Fact::Known(Some(_))) && seen.set.records_name(vm) {
        seen.memory.kept.insert(vm.to_owned(), seen.mono);
    }
    seen.snapshots.insert((vm.to_owned(), tag.to_owned()), Snapshot { fact, fresh: true });
    note(seen, attempt, outcome);
}

fn manifest(outcome: &Outcome) -> Manifest {
    match &outcome.answer {
        Answer::Snapshot { digest, base_image } => Manifest { digest: digest.clone(), base_image: base_image.clone() },
        Answer::Nothing | Answer::Object(_) | Answer::List { .. } | Answer::NotThere => Manifest::default(),
    }
}

/// The registry says that this tag is gone, and nothing that came of its delete matters any more.
fn settle_tag(seen: &mut Observed, target: &str) {
    seen.memory.collected.insert(target.to_owned());
    let delete = delete_of(target);
    let whole = Attempt { target: "*".to_owned(), ..delete.clone() };
    let is_its = |record: &Record| record.target == target;
    for attempt in [delete, whole] {
        if seen.memory.attempts.get(&attempt).is_some_and(is_its) {
            seen.memory.attempts.remove(&attempt);
        }
    }
}

fn delete_snapshot(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    let Some((vm, tag)) = attempt.target.rsplit_once(':') else { return };
    let key = (vm.to_owned(), tag.to_owned());
    let is_gone = outcome.effect() == Effect::Happened && outcome.answer != Answer::NotThere;
    if is_gone {
        seen.snapshots.insert(key, Snapshot { fact: Fact::Known(None), fresh: true });
        seen.memory.collected.insert(attempt.target.clone());
        return note(seen, attempt, outcome);
    }
    // "There is no such tag", of one that was shown right before: one of the two is wrong, and only another look tells.
    seen.snapshots.remove(&key);
    let refusal = seen.memory.refusal(attempt).filter(|_| outcome.effect() == Effect::Later);
    // A registry that is away between two refusals refuses still.
    let noted = refusal.map_or_else(
        || outcome.clone(),
        |refusal| Outcome { class: refusal.class, message: refusal.message.clone(), ..outcome.clone() },
    );
    seen.memory.note(attempt, &noted, seen.mono, seen.set.generation, false);
}

fn create(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    if attempt.dry_run && outcome.effect() != Effect::NamespaceGoing {
        return create_asked(seen, attempt, outcome);
    }
    match outcome.effect() {
        Effect::Happened => {
            if let Some(pod) = object(outcome) {
                let pod = pod.clone();
                seen.memory.watched.insert(crate::core::meta::text(&pod, "uid"), Watched::default());
                take_pod(seen, &attempt.target, &pod);
            }
            seen.memory.namespace = None;
            seen.memory.deleted.remove(&attempt.target);
            note(seen, attempt, outcome);
        }
        Effect::NamespaceGoing => {
            let count = seen.memory.namespace.as_ref().map_or(0, |refusal| refusal.count);
            seen.memory.namespace = Some(NamespaceRefusal {
                count: count.saturating_add(1),
                last: seen.mono,
                message: outcome.message.clone(),
                live: NamespaceLive::Unasked,
                asked: None,
            });
        }
        Effect::Moved
        | Effect::Taken
        | Effect::Gone
        | Effect::Refused
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => {
            seen.live.pod.remove(&attempt.target);
            note(seen, attempt, outcome);
        }
    }
}

/// A dry run: that the name is taken means that admission let it through, and so does a full quota, as far as the old
/// pod's share is enough (decision R20).
fn create_asked(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    const ADMITTED: [Class; 3] = [Class::Done, Class::AlreadyExists, Class::AlreadyExistsTerminating];
    let old = seen.pods.get(&attempt.target);
    let fits = outcome.class == Class::QuotaExceeded && old.is_none_or(|old| leaves_room(&outcome.message, old));
    if fits || ADMITTED.contains(&outcome.class) {
        seen.live.admitted.insert(attempt.target.clone());
        seen.memory.namespace = None;
        seen.memory.forget(attempt, seen.mono);
    } else {
        note(seen, attempt, outcome);
    }
}

fn delete(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    let name = attempt.target.as_str();
    // What the registry said of a VM while its pod was there may not be so after it: it is asked again.
    if matches!(outcome.effect(), Effect::Happened | Effect::Gone) {
        let vm = vm_of_pod(&seen.set.namespace, name);
        seen.snapshots.retain(|(of, _), _| of != vm.as_str());
    }
    match outcome.effect() {
        Effect::Happened => {
            if let Fact::Known(pods) = &mut seen.live.pods
                && let Some(pod) = pods.iter_mut().find(|pod| pod.name == name)
            {
                pod.deleting = true;
                seen.memory.deleted.insert(name.to_owned(), pod.uid.clone());
            }
            if let Some(pod) = seen.pods.get_mut(name) {
                let gone_at_once = pod.node.is_none() && pod.finalizers.is_empty();
                seen.memory.deleted.insert(name.to_owned(), pod.uid.to_string());
                pod.deleting = true;
                if gone_at_once {
                    seen.pods.remove(name);
                }
            }
            note(seen, attempt, outcome);
        }
        Effect::Gone => pod_is_gone(seen, name),
        Effect::Moved
        | Effect::Taken
        | Effect::NamespaceGoing
        | Effect::Refused
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => note(seen, attempt, outcome),
    }
}

fn patch_pod(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    if outcome.effect() == Effect::Gone {
        return pod_is_gone(seen, &attempt.target);
    }
    note(seen, attempt, outcome);
    if let Some(pod) = object(outcome) {
        take_pod(seen, &attempt.target, &pod.clone());
    }
}

pub(super) fn unavailable<T>(outcome: &Outcome) -> Fact<T> {
    Fact::Unavailable(format!("{}: {}", outcome.class, outcome.message).into())
}
