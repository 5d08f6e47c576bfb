//! Taking the answers of live reads in: what they show is newer than any cache.

use super::absorb::{note, object, take_set, unavailable};
use super::observed::{LivePod, NamespaceSeen, NodeFacts, NodeSeen, Observed};
use crate::core::action::{ActionKind, Attempt, Live, Question};
use crate::core::fact::Fact;
use crate::core::memory::{Foreign, NamespaceLive};
use crate::core::outcome::{Answer, Class, Effect, Outcome};
use crate::core::pod::facts::PodFacts;
use crate::core::vanished::Vanished;
use serde_json::Value;

pub(super) fn live_read(seen: &mut Observed, attempt: &Attempt, outcome: &Outcome) {
    // No list is missing: whoever says so was not asked.
    let absent = outcome.effect() == Effect::Gone && attempt.target != "pods";
    let answered = absent || outcome.effect() == Effect::Happened;
    match attempt.target.as_str() {
        "object" => live_object(seen, outcome),
        "pods" => live_pods(seen, outcome),
        "namespace" => live_namespace(seen, outcome),
        other => {
            if let Some(pod) = other.strip_prefix("pod/") {
                live_pod(seen, pod, outcome);
                if answered {
                    seen.memory.looked(&Question::ReadLive(Live::Pod(pod.to_owned())));
                }
            } else if let Some(node) = other.strip_prefix("node/") {
                return live_node(seen, node, attempt, outcome);
            }
        }
    }
    if answered {
        seen.memory.forget(attempt, seen.mono);
        if attempt.target == "object" {
            seen.memory.looked(&Question::ReadLive(Live::Object));
            // Until the watch shows it, this is all that says so.
            if absent {
                note(seen, attempt, outcome);
            }
        }
    } else {
        note(seen, attempt, outcome);
    }
}

fn live_object(seen: &mut Observed, outcome: &Outcome) {
    match outcome.effect() {
        Effect::Happened => {
            if let Some(object) = object(outcome) {
                take_set(seen, &object.clone());
            }
            seen.live.object = Fact::Known(());
        }
        Effect::Gone => seen.live.object_gone = true,
        Effect::Moved
        | Effect::Taken
        | Effect::NamespaceGoing
        | Effect::Refused
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => seen.live.object = unavailable(outcome),
    }
}

fn live_pods(seen: &mut Observed, outcome: &Outcome) {
    seen.live.pods = match (&outcome.answer, outcome.effect() == Effect::Happened) {
        (Answer::List { items, .. }, true) => {
            let mut pods: Vec<LivePod> = items.iter().map(LivePod::of).collect();
            pods.sort_by(|one, other| one.name.cmp(&other.name));
            note_hidden(seen, &pods);
            Fact::Known(pods)
        }
        (Answer::List { .. } | Answer::Object(_) | Answer::Nothing | Answer::Snapshot { .. } | Answer::NotThere, _) => {
            unavailable(outcome)
        }
    };
}

/// Pods of a set that goes, which no watch of ours shows: how often they were looked at. While there is one, its node
/// agent may push tags, and what was said of them before counts for nothing.
fn note_hidden(seen: &mut Observed, pods: &[LivePod]) {
    if seen.set.deleting.is_none() {
        return;
    }
    let ours: Vec<&LivePod> = pods.iter().filter(|pod| pod.is_controlled_by(&seen.set.uid)).collect();
    let is_leaving = |pod: &&LivePod| pod.deleting || seen.memory.deleted.get(&pod.name) == Some(&pod.uid);
    let looks = seen.memory.hidden.map_or(0, |(looks, _)| looks);
    let are_leaving = !ours.is_empty() && ours.iter().all(is_leaving);
    seen.memory.hidden = are_leaving.then_some((looks.saturating_add(1), seen.mono));
    if !ours.is_empty() {
        seen.memory.collected.clear();
    }
}

fn live_pod(seen: &mut Observed, name: &str, outcome: &Outcome) {
    let fact = match outcome.effect() {
        Effect::Happened => match object(outcome) {
            Some(pod) => {
                take_pod(seen, name, &pod.clone());
                Fact::Known(Some(LivePod::of(pod)))
            }
            None => unavailable(outcome),
        },
        Effect::Gone => {
            pod_is_gone(seen, name);
            if !seen.memory.vanished.contains_key(name) {
                seen.memory.absent.insert(name.to_owned());
            }
            Fact::Known(None)
        }
        Effect::Moved
        | Effect::Taken
        | Effect::NamespaceGoing
        | Effect::Refused
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => unavailable(outcome),
    };
    seen.live.pod.insert(name.to_owned(), fact);
}

/// A pod as the server returned it: ours, or somebody else's.
pub(super) fn take_pod(seen: &mut Observed, name: &str, object: &Value) {
    let live = LivePod::of(object);
    seen.memory.absent.remove(name);
    let replaced = seen.pods.get(name).is_some_and(|known| known.uid.as_str() != live.uid);
    let doubted = seen.memory.vanished.get(name).filter(|gone| !gone.confirmed);
    // One name, one pod: whoever bears it now, what we looked for under another uid is gone.
    if replaced || doubted.is_some_and(|gone| gone.uid != live.uid) {
        pod_is_gone(seen, name);
    }
    if let Fact::Known(pods) = &mut seen.live.pods {
        pods.retain(|known| known.name != name);
        pods.push(live.clone());
    }
    if seen.memory.deleted.get(name).is_some_and(|uid| *uid != live.uid) {
        seen.memory.deleted.remove(name);
    }
    if live.deleting && is_ours_in_doubt(seen, name) {
        seen.memory.deleted.insert(name.to_owned(), live.uid.clone());
    }
    if live.is_controlled_by(&seen.set.uid) {
        seen.strangers.remove(name);
        seen.memory.foreign.remove(name);
        let sought = seen.memory.vanished.remove(name).filter(|gone| gone.uid == live.uid);
        let mut pod = PodFacts::read(object);
        pod.stopped |= sought.is_some_and(|gone| gone.succeeded);
        if let Some(known) = seen.pods.get(name) {
            pod.follow(known);
        }
        if pod.deleting && pod.is_hidden() {
            // No watch says when it is gone: it is looked for before its name is taken for free (decisions R26, R31).
            let sought = Vanished { confirmed: false, ..Vanished::of(&pod) };
            seen.memory.vanished.insert(name.to_owned(), sought);
        }
        seen.pods.insert(name.to_owned(), pod);
    } else {
        seen.pods.remove(name);
        // Ours until it lost its owner: it is there, and somebody else's now (D-26).
        if seen.memory.vanished.get(name).is_some_and(|gone| gone.uid == live.uid) {
            seen.memory.vanished.remove(name);
        }
        let looks = seen.memory.foreign.get(name).map_or(0, |foreign| foreign.looks);
        let owner = live.owner.clone().map(|(kind, name, _)| (kind, name));
        let foreign = Foreign { owner, deleting: live.deleting, looks: looks.saturating_add(1), last: seen.mono };
        seen.memory.foreign.insert(name.to_owned(), foreign);
        seen.strangers.insert(name.to_owned(), live);
    }
}

/// A live answer says that there is no such pod.
pub(super) fn pod_is_gone(seen: &mut Observed, name: &str) {
    seen.strangers.remove(name);
    seen.memory.foreign.remove(name);
    if let Fact::Known(pods) = &mut seen.live.pods {
        pods.retain(|known| known.name != name);
    }
    if let Some(known) = seen.pods.remove(name) {
        seen.memory.vanished.insert(name.to_owned(), Vanished::of(&known));
    }
    let in_doubt = is_ours_in_doubt(seen, name);
    let deleted = seen.memory.deleted.get(name).cloned();
    if let Some(vanished) = seen.memory.vanished.get_mut(name) {
        vanished.confirmed = true;
        if in_doubt || deleted.as_ref() == Some(&vanished.uid) {
            vanished.by_us = true;
            seen.memory.deleted.insert(name.to_owned(), vanished.uid.clone());
        }
    }
    // Of a pod that we deleted ourselves nothing is left to know but whether its VM ended.
    seen.memory.vanished.retain(|pod, gone| pod != name || !gone.by_us || gone.may_run());
    let attempt = |action| Attempt { action, target: name.to_owned(), dry_run: false };
    seen.memory.attempts.remove(&attempt(ActionKind::DeletePod));
    seen.memory.attempts.remove(&attempt(ActionKind::PatchPod));
}

/// A delete of ours that nobody could vouch for: where the pod is on its way out, or gone, it was that delete, and no
/// disappearance to be charged or feared (D-18, D-46).
fn is_ours_in_doubt(seen: &Observed, name: &str) -> bool {
    let attempt = Attempt { action: ActionKind::DeletePod, target: name.to_owned(), dry_run: false };
    seen.memory.attempts.get(&attempt).is_some_and(|record| record.class.effect() == Effect::Unsure)
}

/// A node that is up has a node agent that stops what has no pod: from here on nobody has to fear for what was there.
fn live_node(seen: &mut Observed, name: &str, attempt: &Attempt, outcome: &Outcome) {
    let fact = match outcome.effect() {
        Effect::Happened => match object(outcome) {
            Some(node) => Fact::Known(NodeSeen::There(NodeFacts::of(node))),
            None => unavailable(outcome),
        },
        Effect::Gone => Fact::Known(NodeSeen::Gone),
        Effect::Refused if [Class::RbacDenied, Class::ForbiddenOther].contains(&outcome.class) => {
            Fact::Known(NodeSeen::Refused)
        }
        Effect::Refused
        | Effect::Moved
        | Effect::Taken
        | Effect::NamespaceGoing
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => unavailable(outcome),
    };
    let is_up = matches!(&fact, Fact::Known(NodeSeen::There(facts)) if facts.ready);
    let was_there = |gone: &&mut Vanished| is_up && gone.confirmed && gone.node.as_deref() == Some(name);
    seen.memory.vanished.values_mut().filter(was_there).for_each(|gone| gone.node_was_ready = Some(true));
    if fact.known().is_some() {
        seen.memory.forget(attempt, seen.mono);
        seen.memory.lost_nodes.remove(name);
        if super::ended::is_lost(&fact) {
            seen.memory.lost_nodes.insert(name.to_owned(), seen.mono);
        }
    } else {
        note(seen, attempt, outcome);
    }
    seen.live.nodes.insert(name.to_owned(), fact);
}

fn live_namespace(seen: &mut Observed, outcome: &Outcome) {
    let live = match outcome.effect() {
        // No proof that it goes, from a server that may lag: only the watch can bear it out. Otherwise one stale answer
        // would be believed for ever.
        Effect::Gone => match seen.namespace {
            NamespaceSeen::Terminating { .. } => NamespaceLive::Terminating,
            NamespaceSeen::Unknown | NamespaceSeen::Active { .. } => NamespaceLive::Active,
        },
        Effect::Refused => NamespaceLive::Refused,
        Effect::Happened => match object(outcome) {
            Some(namespace) if is_terminating(namespace) => NamespaceLive::Terminating,
            Some(_) => NamespaceLive::Active,
            None => NamespaceLive::Unasked,
        },
        Effect::Moved | Effect::Taken | Effect::NamespaceGoing | Effect::Later | Effect::Unsure | Effect::NotSent => {
            NamespaceLive::Unasked
        }
    };
    let now = seen.mono;
    if let Some(refusal) = &mut seen.memory.namespace {
        refusal.live = live;
        refusal.asked = Some(now);
    }
}

/// Whether a namespace object is being deleted.
pub fn is_terminating(namespace: &Value) -> bool {
    namespace.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
        || namespace.pointer("/status/phase").and_then(Value::as_str) == Some("Terminating")
}
