//! Writes that the API server accepted and did not keep: a webhook took them off again. The same write would meet the same
//! webhook, and what stands behind it in the plan rests on what was not written.

use super::absorb::absorb;
use super::answers::UNDONE;
use super::observed::Observed;
use crate::core::action::{Attempt, Change, MetaPatch};
use crate::core::contract::keys;
use crate::core::decision::Finding;
use crate::core::meta;
use crate::core::outcome::{Answer, Class, Effect, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than the longest pause between two tries: as long as they are undone, people are told.
const QUIET: Duration = Duration::from_secs(600);

/// Takes in what a change came to; true where it succeeded and was undone at once.
pub fn take_in(seen: &mut Observed, change: &Change, attempt: &Attempt, outcome: &Outcome) -> bool {
    let now = seen.mono;
    seen.memory.undone.retain(|_, at| left(*at, now).is_some());
    let Some(lost) = lost(change, outcome) else {
        absorb(seen, attempt, outcome);
        return false;
    };
    let before = seen.memory.attempts.get(attempt).filter(|record| record.class == Class::Done).cloned();
    absorb(seen, attempt, outcome);
    if let Some(record) = before {
        seen.memory.keep(attempt, record);
    }
    let said =
        Outcome::of(Class::Done).saying(format!("it was accepted, and {lost} did not stay: a webhook takes it off"));
    seen.memory.note(attempt, &said, seen.mono, seen.set.generation, false);
    if seen.memory.record(attempt).is_some_and(|record| record.count >= 2) {
        seen.memory.undone.insert(format!("{attempt}: {}", said.message), seen.mono);
    }
    true
}

/// What people are told of writes that did not stay: from the second time on, and until none was undone for a while,
/// whoever wants them at the moment. Otherwise the condition would come and go with each try, and be an event each time.
pub fn told(seen: &Observed) -> Vec<Finding> {
    let lasting = seen.memory.undone.iter().filter_map(|(what, at)| Some((what, left(*at, seen.mono)?)));
    let told = lasting.map(|(what, left)| {
        let finding = Finding::of(&UNDONE, what.clone()).trouble("WriteUndone", what.clone());
        finding.wait("no write to be undone for ten minutes", Some(left))
    });
    told.collect()
}

/// How long a write that was undone then is told of yet.
fn left(at: Duration, now: Duration) -> Option<Duration> {
    at.saturating_add(QUIET).checked_sub(now).filter(|left| !left.is_zero())
}

/// What of the change the returned object lacks, if anything.
fn lost(change: &Change, outcome: &Outcome) -> Option<String> {
    let (Answer::Object(object), Effect::Happened) = (&outcome.answer, outcome.effect()) else { return None };
    if meta::text(object, "uid").is_empty() {
        return None;
    }
    match change {
        Change::PatchObject { annotations, .. } => differs(object, "annotations", annotations),
        Change::PatchPod { patch: MetaPatch { labels, annotations }, .. } => {
            differs(object, "annotations", annotations).or_else(|| differs(object, "labels", labels))
        }
        Change::AddFinalizer { .. } => (!bears_ours(object)).then(|| "our finalizer".to_owned()),
        Change::RemoveFinalizer { .. } => bears_ours(object).then(|| "the list without our finalizer".to_owned()),
        Change::CreatePod { .. }
        | Change::DeletePod { .. }
        | Change::PatchStatus { .. }
        | Change::DeleteSnapshot { .. } => None,
    }
}

fn bears_ours(object: &Value) -> bool {
    meta::strings(object, "finalizers").is_some_and(|list| list.iter().any(|entry| entry == keys::SET_FINALIZER))
}

/// The first of these that does not read as it was written.
fn differs(object: &Value, map: &str, written: &BTreeMap<String, Option<String>>) -> Option<String> {
    let stored = meta::metadata(object).get(map);
    let reads = |key: &str| stored.and_then(|map| map.get(key)).and_then(Value::as_str);
    written.iter().find(|(key, value)| reads(key) != value.as_deref()).map(|(key, _)| format!("{key} in its {map}"))
}
