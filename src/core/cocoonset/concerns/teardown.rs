//! Deletion: remember names, let pods go, collect tags, let go.

use super::sub_agents;
use crate::core::action::{ActionKind, Change, Live, Question, Want};
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::{LivePod, Observed};
use crate::core::cocoonset::{answers, ended, leaving, left_behind, sitting, tags};
use crate::core::contract::keys;
use crate::core::decide::Gate;
use crate::core::decision::{Finding, Report, Verdict};
use crate::core::oddity::many;
use crate::core::pod::facts::PodFacts;
use crate::core::rule::Rule;
use crate::rules;
use std::collections::BTreeSet;
use std::time::Duration;

rules! {
    /// Do nothing about a set that is being deleted and no longer bears our finalizer: it is not ours to hold.  (CS-D)
    NOT_HELD = "teardown/not-held";
    /// Let go of a set whose pods are to live on: touch neither pods nor tags. Where only single pods live on under no
    /// owner, their tags stay, and the rest goes as always.  (D-79, R19)
    ORPHAN = "teardown/orphan";
    /// Write down every VM name before the first pod goes: afterwards nobody knows whose tags to collect.  (CS-D2, R7, R8)
    REMEMBER = "teardown/remember";
    /// Delete the pods, each in the version looked at.  (CS-D3, D-57, R8)
    DELETE_PODS = "teardown/delete-pods";
    /// Wait for the pods to be gone: until then the node agent may still push snapshots that would be missed. After two
    /// minutes people are told which pods those are, and where.  (CS-D4, D-45, D-51)
    AWAIT_PODS = "teardown/await-pods";
    /// Ask the API server itself whether any pod is left, whatever its labels, before anything irreversible.  (D-56, R8)
    LOOK_FOR_PODS = "teardown/look-for-pods";
    /// Ask the registry which tags exist before deleting any: some registries create an empty repository when a tag of
    /// an unknown one is deleted.  (D-09, R11)
    ASK_TAGS = "teardown/ask-tags";
    /// Collect the tags, by the digest that was just seen.  (CS-D5, D-08, R11)
    COLLECT_TAGS = "teardown/collect-tags";
    /// Keep the finalizer while a `hibernate` tag cannot be deleted: a set of the same name would restore a dead VM.  (D-08, R24)
    TAGS_REMAIN = "teardown/tags-remain";
    /// Let go of a `latest` tag that the registry refuses to delete: it is kept on purpose elsewhere, and no VM is
    /// restored from it.  (D-08)
    LATEST_STAYS = "teardown/latest-stays";
    /// Leave the tags of a name to which another live set has a claim as well, where only one of the two can have made
    /// them and nobody can tell which. A tag too many is safer than another tenant's VM lost.  (D-29, R23)
    CONTESTED_STAYS = "teardown/contested-stays";
    /// Where somebody else's finalizer keeps the set, say in the status that its pods are gone before ours goes: nobody
    /// writes it afterwards. It is tried once, and holds nothing up.  (R10)
    TELL_FIRST = "teardown/tell-first";
    /// Let the set go.  (CS-D6, D-23, R9)
    REMOVE_FINALIZER = "teardown/remove-finalizer";
}

/// Between two looks for pods that no watch shows.
const HIDDEN_FIRST: Duration = Duration::from_secs(30);
const HIDDEN_MOST: Duration = Duration::from_secs(300);

/// Where a deletion stands.
enum Step<'a> {
    NotDeleted,
    NotHeld,
    Orphaned,
    Holding(Vec<&'a PodFacts>),
    Leaving(Vec<&'a PodFacts>),
    Unlooked,
    Hidden(Vec<&'a LivePod>),
    HiddenLately(Duration),
    NodesUnasked(BTreeSet<String>),
    NodesLost(Vec<(String, String)>),
    Collecting,
    Clean,
}

impl<'a> Step<'a> {
    fn of(seen: &'a Observed) -> Self {
        if seen.set.deleting.is_none() {
            return Self::NotDeleted;
        }
        if seen.set.claims() == 0 {
            return Self::NotHeld;
        }
        if asks_for_orphans(seen) {
            return Self::of_orphans(seen);
        }
        let (leaving, holding): (Vec<_>, Vec<_>) = seen.pods.values().partition(|pod| pod.deleting);
        if !holding.is_empty() {
            return Self::Holding(holding);
        }
        if !leaving.is_empty() {
            return Self::Leaving(leaving);
        }
        if seen.live.pods.known().is_none() {
            return next_look(seen).map_or(Self::Unlooked, Self::HiddenLately);
        }
        let hidden: Vec<_> = seen.hidden_pods().collect();
        if !hidden.is_empty() {
            return Self::Hidden(hidden);
        }
        let unasked = ended::all_unasked(seen);
        if !unasked.is_empty() {
            return Self::NodesUnasked(unasked);
        }
        let lost = ended::all_lost(seen);
        if !lost.is_empty() {
            return Self::NodesLost(lost);
        }
        if tags::are_gone(seen) { Self::Clean } else { Self::Collecting }
    }

    fn of_orphans(seen: &Observed) -> Self {
        if seen.live.pods.known().is_none() {
            return Self::Unlooked;
        }
        let untold = ended::all_untold(seen);
        if untold.is_empty() { Self::Orphaned } else { Self::NodesUnasked(untold) }
    }
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let rest = |findings| Verdict::Rest { findings, report: Report::Keep };
    match Step::of(seen) {
        Step::NotDeleted => Verdict::pass("not being deleted"),
        Step::NotHeld => Verdict::rest(
            Finding::of(&NOT_HELD, "it is being deleted, and our finalizer is not on it").stop(),
            Report::Silent,
        ),
        Step::Orphaned => rest(last_words(seen, &ORPHAN, "its pods are to live on", left_behind::told(seen))),
        Step::Holding(pods) => rest(delete_pods(seen, &pods)),
        Step::Leaving(pods) => {
            let mut findings: Vec<Finding> = pods.iter().filter_map(|pod| sitting::node_trouble(seen, pod)).collect();
            findings.extend(remember_late(seen));
            findings.push(await_pods(seen, &pods));
            rest(findings)
        }
        Step::Unlooked => rest(tags::held(seen).unwrap_or_else(|| vec![look_for_pods(seen)])),
        Step::Hidden(pods) => rest(hidden_pods(seen, &pods)),
        Step::NodesUnasked(nodes) => rest(nodes.into_iter().map(left_behind::ask).collect()),
        Step::NodesLost(lost) => rest(remember_late(seen).into_iter().chain(left_behind::held(seen, &lost)).collect()),
        Step::HiddenLately(left) => rest(await_hidden(seen, left)),
        Step::Collecting => {
            let (mut findings, is_held) = tags::collect(seen);
            if !is_held {
                findings.extend(let_go(seen, "no pod of ours is left, and no tag is owed that can be collected"));
            }
            rest(findings)
        }
        Step::Clean => rest(let_go(seen, "no pod of ours is left, and no tag is owed")),
    }
}

/// Decision R19: while its owner references are being taken off, no pod of the set is to go.
pub(in crate::core::cocoonset) fn asks_for_orphans(seen: &Observed) -> bool {
    seen.set.finalizers.iter().flatten().any(|finalizer| finalizer == "orphan")
}

/// The end, and whose tags stay behind: the event is all that tells people, once the set is gone.
fn let_go(seen: &Observed, because: &'static str) -> Vec<Finding> {
    if leaving::misleads(seen) && !status_was_tried(seen) {
        let told = Finding::of(&TELL_FIRST, "another finalizer keeps the set, and its status shows pods");
        return vec![told.wait("the status to say so", Some(Duration::from_secs(1)))];
    }
    let stays = orphans_stay(seen).into_iter().chain(contested_stay(seen)).chain(left_behind::told(seen));
    last_words(seen, &REMOVE_FINALIZER, because, stays)
}

/// What people are told as the finalizer goes, and only then.
fn last_words(
    seen: &Observed,
    rule: &Rule,
    because: &'static str,
    told: impl IntoIterator<Item = Finding>,
) -> Vec<Finding> {
    let done = remove_finalizer(seen, Finding::of(rule, because));
    let is_held = done.wants.iter().any(|want| answers::gate(seen, want) != Gate::Open);
    told.into_iter().filter(|_| !is_held).chain([done]).collect()
}

fn status_was_tried(seen: &Observed) -> bool {
    let mut attempts = seen.tried.iter().map(|(attempt, _)| attempt).chain(seen.memory.attempts.keys());
    attempts.any(|attempt| attempt.action == ActionKind::PatchStatus)
}

/// Pods that the set would answer for, had they an owner.
fn orphans_stay(seen: &Observed) -> Option<Finding> {
    let names = names_due(seen);
    let due = seen.orphans().into_iter().filter(|(vm, _)| names.contains(vm));
    let pods: BTreeSet<String> = due.map(|(_, pod)| pod).collect();
    let listed: Vec<&str> = pods.iter().take(5).map(String::as_str).collect();
    let (who, whose) = (many(pods.len(), "pod lives", "pods live"), if pods.len() == 1 { "its" } else { "their" });
    let message = format!("{who} on without an owner ({}): {whose} tags are left", listed.join(", "));
    (!pods.is_empty()).then(|| Finding::of(&ORPHAN, message.clone()).announce(false, "Orphaned", message))
}

/// Names that both sets had, or neither has now: what is plainly the other's needs no word.
fn contested_stay(seen: &Observed) -> Vec<Finding> {
    let due = names_due(seen);
    let contested = due.iter().filter_map(|vm| Some((vm, seen.rivals.get(vm)?)));
    let unclear = contested.filter(|(vm, rival)| !seen.is_own_name(vm) && seen.has_it(vm) == rival.has_it);
    let stays = unclear.map(|(vm, rival)| {
        let message = format!("tags of {vm} are left: CocoonSet {}/{} has the name too", rival.namespace, rival.name);
        Finding::of(&CONTESTED_STAYS, message.clone()).trouble("NameConflict", message.clone()).announce(
            true,
            "NameConflict",
            message,
        )
    });
    stays.collect()
}

fn delete_pods(seen: &Observed, pods: &[&PodFacts]) -> Vec<Finding> {
    let because = format!("it is being deleted, and {} left", many(pods.len(), "pod is", "pods are"));
    let delete = |pod: &&PodFacts| {
        Finding::of(&DELETE_PODS, because.clone()).change(Change::DeletePod {
            pod: pod.name.to_string(),
            uid: pod.uid.to_string(),
            resource_version: Some(pod.resource_version.clone()),
        })
    };
    sub_agents::after_remembering(seen, remember_late(seen), pods.iter().map(delete))
}

/// Names of pods that somebody else deletes are written down while they can still be read.
fn remember_late(seen: &Observed) -> Option<Finding> {
    let remember = seen.remember_at_last()?;
    Some(Finding::of(&REMEMBER, "not every VM name is written down").change(remember))
}

fn await_pods(seen: &Observed, pods: &[&PodFacts]) -> Finding {
    let names: Vec<&str> = pods.iter().take(5).map(|pod| pod.name.as_str()).collect();
    let more = if pods.len() > 5 { format!(" and {} more", pods.len() - 5) } else { String::new() };
    let finding = Finding::of(&AWAIT_PODS, format!("{}{more} still terminating", names.join(", ")));
    let recheck = pods.iter().find_map(|pod| seen.look_after(pod.name.as_str()));
    leaving::patient(seen, finding, leaving::whom(seen, pods), recheck)
}

/// A finalizer that may not be removed yet needs no look at pods and tags, which would have to be repeated.
fn look_for_pods(seen: &Observed) -> Finding {
    let removal = remove_finalizer(seen, Finding::of(&REMOVE_FINALIZER, "no pod of ours is left"));
    let held = removal.wants.iter().find_map(|want| held_back(seen, want));
    let look = || Finding::of(&LOOK_FOR_PODS, "the watch shows no pod of ours").ask(Question::ReadLive(Live::Pods));
    held.unwrap_or_else(look)
}

/// Pods of ours that only the live read shows: their labels were edited, or the watch lags.
fn hidden_pods(seen: &Observed, pods: &[&LivePod]) -> Vec<Finding> {
    let because = format!("{} not in the watch", many(pods.len(), "pod of ours is", "pods of ours are"));
    let holding: Vec<_> = pods.iter().filter(|pod| !pod.deleting).collect();
    if holding.is_empty() {
        return await_hidden(seen, next_look(seen).unwrap_or(HIDDEN_FIRST));
    }
    let delete = |pod: &&&LivePod| {
        Finding::of(&DELETE_PODS, because.clone()).change(Change::DeletePod {
            pod: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: Some(pod.resource_version.clone()),
        })
    };
    sub_agents::after_remembering(seen, remember_late(seen), holding.iter().map(delete))
}

fn await_hidden(seen: &Observed, left: Duration) -> Vec<Finding> {
    let whom = "pods that the watch does not show are";
    let finding = Finding::of(&AWAIT_PODS, format!("{whom} still terminating"));
    let finding = leaving::patient(seen, finding, Some(whom.to_owned()), Some(left));
    remember_late(seen).into_iter().chain([finding]).collect()
}

/// How long until pods that no watch shows are looked for again: somebody's finalizer may hold them for days.
fn next_look(seen: &Observed) -> Option<Duration> {
    let (looks, last) = seen.memory.hidden?;
    let pause = HIDDEN_FIRST.saturating_mul(1 << looks.saturating_sub(1).min(8)).min(HIDDEN_MOST);
    last.saturating_add(pause).checked_sub(seen.mono).filter(|left| !left.is_zero())
}

/// Names whose tags would be collected, were the set alone in the world.
pub fn names_due(seen: &Observed) -> BTreeSet<String> {
    let mut names = seen.names_owed();
    names.extend(seen.set.vm_names());
    names
}

/// What a wish waits for, unless it is another look.
pub(in crate::core::cocoonset) fn held_back(seen: &Observed, want: &Want) -> Option<Finding> {
    match answers::gate(seen, want) {
        Gate::Held(held) if held.rule != answers::LOOK_AGAIN.id() => Some(*held),
        Gate::Held(_) | Gate::Open => None,
    }
}

fn remove_finalizer(seen: &Observed, finding: Finding) -> Finding {
    let list = seen.set.finalizers.clone().unwrap_or_default();
    let finalizers = list.into_iter().filter(|entry| entry != keys::SET_FINALIZER).collect();
    finding.change(Change::RemoveFinalizer { tested: seen.set.finalizers.clone(), finalizers })
}
