//! The tags of a set that goes: which are owed, what is known of each, and what stands in the way. A tag that the registry
//! said is gone stays settled until the registry shows it again; no answer between says otherwise.

use super::answers;
use super::concerns::teardown::{
    ASK_TAGS, COLLECT_TAGS, LATEST_STAYS, TAGS_REMAIN, asks_for_orphans, held_back, names_due,
};
use super::observed::{Manifest, Observed};
use crate::core::action::{ActionKind, Attempt, Change, Question, Want};
use crate::core::api::words::SnapshotPolicy;
use crate::core::contract::keys;
use crate::core::contract::names::{RoleWord, leaves_latest};
use crate::core::decide::Gate;
use crate::core::decision::Finding;
use crate::core::fact::Fact;
use crate::core::memory::Record;
use crate::core::oddity::many;
use crate::core::outcome::{Class, Effect};
use std::collections::BTreeSet;

/// VM name and tag.
type Tags = BTreeSet<(String, &'static str)>;

/// Every tag that is the set's to collect, whatever is known of it.
fn due(seen: &Observed) -> Tags {
    let orphans = seen.orphans();
    let names = names_due(seen).into_iter().filter(|name| seen.is_own_name(name) && !orphans.contains_key(name));
    let mut tags = BTreeSet::new();
    for name in names {
        if drops_latest(seen, &name) {
            tags.insert((name.clone(), keys::TAG_LATEST));
        }
        tags.insert((name, keys::TAG_HIBERNATE));
    }
    tags
}

/// CS-D5: `always` keeps every `latest`, `main-only` the main agent's, `never` none.
fn drops_latest(seen: &Observed, vm: &str) -> bool {
    let policy: &SnapshotPolicy = &seen.set.spec.snapshot_policy;
    !leaves_latest(policy, Some(RoleWord::of_slot(seen.slot_in(vm))))
}

/// Those that are not known to be gone, and those that were gone when last asked, in an earlier pass.
fn open(seen: &Observed) -> (Tags, Tags) {
    let is_gone = |vm: &str, tag: &str| seen.snapshot(vm, tag).known() == Some(&None);
    let open = due(seen).into_iter().filter(|(vm, tag)| !is_gone(vm, tag));
    open.partition(|(vm, tag)| {
        matches!(seen.snapshot(vm, tag), Fact::Known(_)) || !seen.memory.collected.contains(&format!("{vm}:{tag}"))
    })
}

/// Every tag is gone, and was asked for in this pass.
pub fn are_gone(seen: &Observed) -> bool {
    let (owed, unchecked) = open(seen);
    owed.is_empty() && unchecked.is_empty()
}

/// What to do about the tags that are left, and whether any of it holds the set.
pub fn collect(seen: &Observed) -> (Vec<Finding>, bool) {
    let (owed, unchecked) = open(seen);
    let (refused, mut due): (Tags, Tags) = owed.into_iter().partition(|(vm, tag)| latest_is_refused(seen, vm, tag));
    if due.is_empty() {
        // What was refused a while ago holds nothing up, and is tried once more before the set goes.
        due = refused.iter().filter(|(vm, tag)| held_delete(seen, vm, tag).is_none()).cloned().collect();
    }
    let mut findings: Vec<Finding> = refused.difference(&due).map(|(vm, _)| latest_stays(vm)).collect();
    let mut kept = BTreeSet::new();
    for (vm, tag) in &due {
        kept.insert(format!("{vm}:{tag}"));
        findings.push(match seen.snapshot(vm, tag).known() {
            Some(Some(manifest)) => delete_tag(seen, vm, tag, manifest),
            Some(None) | None => {
                held_delete(seen, vm, tag).unwrap_or_else(|| ask(vm, tag, format!("{vm}:{tag} may exist")))
            }
        });
    }
    if kept.is_empty() {
        // The last word on those that were settled in an earlier pass: nothing else would ever look at them again.
        let asked = unchecked.iter().map(|(vm, tag)| ask(vm, tag, format!("{vm}:{tag} was gone when last asked")));
        findings.extend(asked);
        return (findings, !unchecked.is_empty());
    }
    findings.extend(told_of(seen, &kept));
    (findings, true)
}

fn ask(vm: &str, tag: &str, because: String) -> Finding {
    Finding::of(&ASK_TAGS, because).ask(Question::ProbeSnapshot { vm: vm.to_owned(), tag: tag.to_owned() })
}

fn delete_tag(seen: &Observed, vm: &str, tag: &str, manifest: &Manifest) -> Finding {
    let fresh = seen.snapshots.get(&(vm.to_owned(), tag.to_owned())).is_some_and(|snapshot| snapshot.fresh);
    if !fresh {
        return ask(vm, tag, format!("{vm}:{tag} was seen earlier"));
    }
    let change = Change::DeleteSnapshot { vm: vm.to_owned(), tag: tag.to_owned(), digest: manifest.digest.clone() };
    Finding::of(&COLLECT_TAGS, format!("{vm}:{tag} exists")).change(change)
}

/// Where no tag may be asked for yet, nothing irreversible is near, and the pods need no look.
pub fn held(seen: &Observed) -> Option<Vec<Finding>> {
    let (owed, unchecked) = open(seen);
    let owed: Tags = owed.into_iter().filter(|(vm, tag)| !latest_is_refused(seen, vm, tag)).collect();
    let mut findings = Vec::new();
    for (vm, tag) in if owed.is_empty() { &unchecked } else { &owed } {
        let question = Question::ProbeSnapshot { vm: vm.clone(), tag: (*tag).to_owned() };
        let of_delete = held_delete(seen, vm, tag).filter(|_| !owed.is_empty());
        let held = of_delete.or_else(|| match answers::gate(seen, &Want::Ask(question)) {
            Gate::Held(held) => Some(*held),
            Gate::Open => None,
        });
        findings.push(held?);
    }
    if asks_for_orphans(seen) || findings.is_empty() {
        return None;
    }
    findings.extend(told_of(seen, &owed.iter().map(|(vm, tag)| format!("{vm}:{tag}")).collect()));
    Some(findings)
}

/// A delete that may not be sent yet needs no answer of the registry.
fn held_delete(seen: &Observed, vm: &str, tag: &str) -> Option<Finding> {
    let delete = Change::DeleteSnapshot { vm: vm.to_owned(), tag: tag.to_owned(), digest: None };
    held_back(seen, &Want::Change(delete))
}

fn latest_stays(vm: &str) -> Finding {
    Finding::of(&LATEST_STAYS, format!("the registry refuses to delete {vm}:latest"))
}

/// A refusal, not an outage: the `latest` tag stays where it is.
fn latest_is_refused(seen: &Observed, vm: &str, tag: &str) -> bool {
    tag == keys::TAG_LATEST && refusal_of(seen, &format!("{vm}:{tag}")).is_some()
}

/// The attempt to delete this tag, given as `vm:tag`.
pub fn delete_of(target: &str) -> Attempt {
    Attempt { action: ActionKind::DeleteSnapshot, target: target.to_owned(), dry_run: false }
}

fn refusal_of<'a>(seen: &'a Observed, target: &str) -> Option<&'a Record> {
    let attempt = delete_of(target);
    seen.memory.refusal(&attempt)
}

/// What people should know while these tags cannot be collected, the same whichever of them is due at the moment: what
/// the registry refuses, or says it has not and shows all the same; and which tags it is about.
fn told_of(seen: &Observed, kept: &BTreeSet<String>) -> Vec<Finding> {
    let stuck = seen.memory.attempts.iter().any(|(attempt, record)| {
        let is_delete = attempt.action == ActionKind::DeleteSnapshot;
        let is_probe = attempt.action == ActionKind::ProbeSnapshot;
        is_delete || (is_probe && record.class.effect() != Effect::Happened)
    });
    if kept.is_empty() || !stuck {
        return Vec::new();
    }
    let refusal = kept.iter().find_map(|target| Some((delete_of(target), refusal_of(seen, target)?)));
    let mut told: Vec<Finding> =
        refusal.map(|(attempt, record)| answers::refusal_told(seen, &attempt, record)).into_iter().collect();
    let names: Vec<&str> = kept.iter().take(5).map(String::as_str).collect();
    let mut message = format!("{} cannot be collected yet: {}", many(kept.len(), "tag", "tags"), names.join(", "));
    let denied = |target: &&String| seen.memory.attempts.get(&delete_of(target)).is_some_and(is_denied);
    if let Some(target) = kept.iter().find(denied) {
        message = format!("{message}; the registry shows {target}, and says of its delete that there is no such tag");
    }
    told.push(Finding::of(&TAGS_REMAIN, message.clone()).trouble("TagsRemaining", message));
    told
}

/// Its delete was answered with a 404 at least twice, though the tag was shown right before.
fn is_denied(record: &Record) -> bool {
    record.class == Class::Absent && record.count >= 2
}
