//! What is kept about an object, as an observation stream states it (docs/observation.md): times as ages, so that it can
//! be decided on again at any time. `explain` reads it back.

use super::action::Attempt;
use super::cocoonset::observed::Observed;
use super::memory::{Foreign, Memory, NamespaceLive, NamespaceRefusal, Record, Watched};
use super::vanished::Vanished;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Ages beyond this are written as this: whatever is older is past every delay there is.
const OLDEST: Duration = Duration::from_secs(30 * 86_400);

/// One entry of `memory`: what was kept about this object before the observation was made.
pub fn entry(seen: &Observed) -> Value {
    let mut entry = of(&seen.memory, seen.mono);
    entry.insert("uid".to_owned(), json!(seen.set.uid));
    if !seen.unseen.is_empty() {
        entry.insert("unseen".to_owned(), json!(seen.unseen));
    }
    Value::Object(entry)
}

fn of(memory: &Memory, now: Duration) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    // What was counted of its failures decides nothing.
    let Memory {
        attempts,
        namespace,
        last_status,
        deleted,
        vanished,
        absent,
        watched,
        woken,
        stamps,
        foreign,
        found,
        kept,
        lost_nodes,
        collected,
        hidden,
        undone,
        node_names_pruned,
        failed: _,
        scale_pruned,
        error,
    } = memory;
    let attempts: Vec<Value> = attempts.iter().map(|(attempt, record)| tried(attempt, record, now)).collect();
    put("attempts", (!attempts.is_empty()).then(|| json!(attempts)));
    put("namespaceRefusal", namespace.as_ref().map(|refusal| refused(refusal, now)));
    put("lastStatusAgeSeconds", last_status.map(|at| age(at, now)));
    put("deleted", (!deleted.is_empty()).then(|| json!(deleted)));
    put("vanished", by_name(vanished.iter().map(|(pod, gone)| (pod, gone_pod(gone)))));
    put("absent", (!absent.is_empty()).then(|| json!(absent)));
    put("watched", by_name(watched.iter().map(|(uid, seen)| (uid, watched_vm(*seen)))));
    put("woken", (!woken.is_empty()).then(|| json!(woken)));
    let stamps: Vec<(String, Value)> =
        stamps.iter().map(|(stamp, met)| (stamp.to_string(), since(*met, now))).collect();
    put("stamps", by_name(stamps.iter().map(|(stamp, age)| (stamp, age.clone()))));
    put("foreign", by_name(foreign.iter().map(|(pod, other)| (pod, stranger(other, now)))));
    put("found", by_name(found.iter().map(|(vm, at)| (vm, age(*at, now)))));
    put("kept", by_name(kept.iter().map(|(vm, at)| (vm, age(*at, now)))));
    put("lostNodes", by_name(lost_nodes.iter().map(|(node, at)| (node, age(*at, now)))));
    put("collected", (!collected.is_empty()).then(|| json!(collected)));
    put("hidden", hidden.map(|(looks, at)| json!({ "looks": looks, "ageSeconds": age(at, now) })));
    put("undone", by_name(undone.iter().map(|(what, at)| (what, age(*at, now)))));
    put("nodeNamesPruned", node_names_pruned.then_some(Value::Bool(true)));
    put("scalePruned", scale_pruned.then_some(Value::Bool(true)));
    put("error", error.as_ref().map(|(reason, at)| json!({ "reason": reason, "ageSeconds": age(*at, now) })));
    out
}

fn by_name<'a>(entries: impl Iterator<Item = (&'a String, Value)>) -> Option<Value> {
    let map: Map<String, Value> = entries.map(|(name, value)| (name.clone(), value)).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

/// Seconds from then to now; whole ones without a fraction.
fn age(at: Duration, now: Duration) -> Value {
    seconds(now.saturating_sub(at).min(OLDEST))
}

/// The age of a stamp that had the first of these when it was read, at the second.
fn since((age, met): (Duration, Duration), now: Duration) -> Value {
    seconds(age.saturating_add(now.saturating_sub(met)).min(OLDEST))
}

fn seconds(span: Duration) -> Value {
    if span.subsec_nanos() == 0 { json!(span.as_secs()) } else { json!(span.as_secs_f64()) }
}

fn tried(attempt: &Attempt, record: &Record, now: Duration) -> Value {
    let Record {
        class,
        count,
        since,
        last,
        retry_after,
        message,
        target,
        generation,
        looked,
        on_live,
        tested,
        in_vain,
    } = record;
    let mut out = json!({
        "action": attempt.action.name(), "target": target, "class": class.name(), "count": (*count).max(1),
        "ageSeconds": age(*last, now), "sinceAgeSeconds": age(*since, now), "generation": (*generation).max(0),
    });
    let flags = [("dryRun", attempt.dry_run), ("looked", *looked), ("onLive", *on_live), ("inVain", *in_vain)];
    if let Some(out) = out.as_object_mut() {
        for (key, _) in flags.into_iter().filter(|(_, is)| *is) {
            out.insert(key.to_owned(), json!(true));
        }
        if !message.is_empty() {
            out.insert("message".to_owned(), json!(message));
        }
        if let Some(after) = retry_after {
            out.insert("retryAfterSeconds".to_owned(), seconds((*after).min(OLDEST)));
        }
        if let Some(tested) = tested {
            out.insert("tested".to_owned(), json!(tested));
        }
    }
    out
}

fn refused(refusal: &NamespaceRefusal, now: Duration) -> Value {
    let NamespaceRefusal { count, last, message, live, asked } = refusal;
    let live = match live {
        NamespaceLive::Unasked => "unasked",
        NamespaceLive::Terminating => "terminating",
        NamespaceLive::Active => "active",
        NamespaceLive::Refused => "refused",
    };
    let mut out = json!({
        "count": (*count).max(1), "ageSeconds": age(*last, now), "message": message, "live": live,
    });
    if let (Some(asked), Some(out)) = (asked, out.as_object_mut()) {
        out.insert("askedAgeSeconds".to_owned(), age(*asked, now));
    }
    out
}

/// What the pod was is not stated: a stream has the pods that exist.
fn gone_pod(gone: &Vanished) -> Value {
    let Vanished { uid, node, had_vm, succeeded, given_up, vm_id, node_was_ready, by_us, confirmed, carried: _ } = gone;
    let mut out = json!({
        "uid": uid, "hadVm": had_vm, "succeeded": succeeded, "givenUp": given_up, "confirmed": confirmed,
    });
    if let Some(out) = out.as_object_mut() {
        if let Some(node) = node {
            out.insert("node".to_owned(), json!(node));
        }
        if let Some(ready) = node_was_ready {
            out.insert("nodeWasReady".to_owned(), json!(ready));
        }
        if !vm_id.is_empty() {
            out.insert("vmId".to_owned(), json!(vm_id));
        }
        if *by_us {
            out.insert("byUs".to_owned(), json!(true));
        }
    }
    out
}

fn watched_vm(seen: Watched) -> Value {
    let Watched { ever_ready, ever_marked, failing } = seen;
    json!({ "everReady": ever_ready, "everMarked": ever_marked, "failing": failing })
}

fn stranger(other: &Foreign, now: Duration) -> Value {
    let Foreign { owner, deleting, looks, last } = other;
    let mut out = json!({ "looks": (*looks).max(1), "ageSeconds": age(*last, now), "deleting": deleting });
    if let (Some((kind, name)), Some(out)) = (owner, out.as_object_mut()) {
        out.insert("owner".to_owned(), json!({ "kind": kind, "name": name }));
    }
    out
}
