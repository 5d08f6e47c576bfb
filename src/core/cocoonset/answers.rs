//! What came of a wish before, and so whether it may be sent again. Every class of every answer is decided here:
//! a call site that a concern adds is covered the moment it exists.

use super::observed::{Lease, Observed};
use crate::core::action::{ActionKind, Attempt, Change, Live, Want};
use crate::core::control::election::TAG_DELETE_TERM;
use crate::core::decide::Gate;
use crate::core::decision::Finding;
use crate::core::memory::Record;
use crate::core::outcome::{Class, Effect};
use crate::core::rule::Rule;
use crate::rules;
use std::collections::BTreeSet;
use std::time::Duration;

rules! {
    /// Read the object live before writing it again: what the last write rested on is no longer so, or nobody can say
    /// whether it happened. Without it the same write goes out on the same evidence, for ever.  (R2, R8, D-23)
    LOOK_AGAIN = "answer/look-again";
    /// Wait before writing again what moved, or stayed unanswered, twice in a row: another writer is busy there.
    /// Without it two operators chase each other at full speed.  (R2)
    MOVED_TWICE = "answer/moved-twice";
    /// Wait for room in the quota. Without it a full quota is met by as many refusals as there are pods to create,
    /// and noticed minutes after it was raised.  (D-24, R3, R31)
    AWAIT_QUOTA = "answer/await-quota";
    /// Wait until somebody gives back a permission. Without it every pod of the set earns a refusal of its own.  (D-24, R4)
    AWAIT_PERMISSION = "answer/await-permission";
    /// Wait for an admission policy, webhook or limit to let it through: policies change, and webhooks come back.  (D-24, R4)
    AWAIT_ADMISSION = "answer/await-admission";
    /// Wait for an edit: what we sent is not acceptable as it stands, and sending it again changes nothing.
    /// Without it a typing error in a manifest becomes a hot loop.  (D-24, R4)
    AWAIT_EDIT = "answer/await-edit";
    /// Wait for the API server, which is busy or away, at least for as long as it said.  (D-24, R29)
    AWAIT_SERVER = "answer/await-server";
    /// Wait for the registry, which is away, or does not let us. Never read as "there is no snapshot".  (D-08, D-55)
    AWAIT_REGISTRY = "answer/await-registry";
    /// Send nothing while the lease is gone, or too short for what has no precondition; what was not sent for its sake is
    /// sent once it is held again.  (R11)
    FENCED = "answer/fenced";
    /// Say that an answer cannot be read, whoever wants what comes next: a server or proxy that garbles answers is for a
    /// person to mend.  (R4)
    UNREADABLE = "answer/unreadable";
    /// Wait before writing again what was accepted twice and did not stay: a webhook takes it off. Without it one pass
    /// writes the same until it is given up, and what was to be written first, a name or a charge, is lost with what
    /// follows it. People are told until no write was undone for ten minutes.  (R3, R8, R12)
    UNDONE = "answer/undone";
    /// Nothing more to do: the object itself is gone.
    OBJECT_GONE = "answer/object-gone";
}

/// So many times in a row, and people are told of what usually passes by itself.
const LASTING: u32 = 4;
/// After this long in a refusal that may pass by itself, it needs a person (decision R4).
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether this wish may be sent, and what stands in its place if not.
pub fn gate(seen: &Observed, want: &Want) -> Gate {
    let Some(attempt) = Attempt::of(want) else { return Gate::Open };
    if let Some(finding) = fenced(seen, want) {
        return held(finding);
    }
    let Some(record) = seen.memory.record(&attempt) else { return Gate::Open };
    if record.generation != seen.set.generation {
        return Gate::Open;
    }
    match record.class.effect() {
        Effect::Happened => undone(seen, &attempt, record),
        Effect::Moved | Effect::Unsure => our_fault(moved(seen, want, &attempt, record), &attempt, record),
        Effect::Taken => taken(seen, want, &attempt, record),
        Effect::Gone => gone(seen, want, &attempt, record),
        Effect::NamespaceGoing => wait(seen, &AWAIT_SERVER, &attempt, record),
        Effect::Refused => refused(seen, want, &attempt, record),
        Effect::Later => wait(seen, away(&attempt), &attempt, record),
        Effect::NotSent => wait(seen, &FENCED, &attempt, record),
    }
}

fn held(finding: Finding) -> Gate {
    Gate::Held(Box::new(finding))
}

/// No write without the lease, no tag delete on its last seconds.
fn fenced(seen: &Observed, want: &Want) -> Option<Finding> {
    let tag_delete = match want {
        Want::Change(Change::DeleteSnapshot { .. }) => true,
        Want::Change(_) => false,
        Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => return None,
    };
    match seen.lease {
        Lease::NotNeeded => None,
        Lease::Lost => Some(Finding::of(&FENCED, "the lease is not held").stop()),
        Lease::Held(left) if tag_delete && left < TAG_DELETE_TERM => Some(
            Finding::of(&FENCED, "less than 5 s of the lease are left, too little for a tag delete")
                .wait("the lease to be renewed", Some(Duration::from_secs(1))),
        ),
        Lease::Held(left) if left.is_zero() => Some(
            Finding::of(&FENCED, "the lease has run out").wait("the lease to be renewed", Some(Duration::from_secs(1))),
        ),
        Lease::Held(_) => None,
    }
}

/// A success stands in memory only where what was written did not stay.
fn undone(seen: &Observed, attempt: &Attempt, record: &Record) -> Gate {
    if record.count < 2 || seen.mono >= due(seen, attempt, record) {
        return Gate::Open;
    }
    // What the registry will not delete is told with all that is owed there.
    if attempt.action == ActionKind::DeleteSnapshot {
        let Gate::Held(finding) = timer(seen, &AWAIT_REGISTRY, attempt, record) else { return Gate::Open };
        return held(Finding { trouble: None, ..*finding });
    }
    let Gate::Held(finding) = timer(seen, &UNDONE, attempt, record) else { return Gate::Open };
    let because = format!("{}: {}", attempt_of(attempt, record), record.message);
    held(Finding { because: because.clone().into(), ..*finding }.trouble("WriteUndone", because))
}

/// It moved, or may have happened: look before writing again; the second time, wait first.
fn moved(seen: &Observed, want: &Want, attempt: &Attempt, record: &Record) -> Gate {
    if record.count >= 2 && seen.mono < due(seen, attempt, record) {
        let rule = if attempt.action == ActionKind::ProbeSnapshot { &AWAIT_REGISTRY } else { &MOVED_TWICE };
        return timer(seen, rule, attempt, record);
    }
    match want {
        Want::Change(change) if !record.looked => {
            let question = change.looked_up_by();
            match gate(seen, &Want::Ask(question.clone())) {
                Gate::Open => {
                    held(Finding::of(&LOOK_AGAIN, format!("{attempt} came to {}", record.class)).ask(question))
                }
                instead @ Gate::Held(_) => instead,
            }
        }
        Want::Change(_) => Gate::Open,
        Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => wait(seen, away(attempt), attempt, record),
    }
}

/// What no other writer explains needs a person: a success that cannot be read (decision R4), a test that fails although
/// the list is as tested (R9).
fn our_fault(gate: Gate, attempt: &Attempt, record: &Record) -> Gate {
    let Gate::Held(finding) = gate else { return Gate::Open };
    if record.class != Class::Malformed && !record.in_vain {
        return Gate::Held(finding);
    }
    let message = format!("{}: {}", attempt_of(attempt, record), record.message);
    held(finding.trouble(record.class.name(), message).error_if(true))
}

/// Answers of this pass that could not be read, and were not followed by one that could.
pub fn unreadable(seen: &Observed) -> Vec<Finding> {
    let malformed = seen.tried.iter().filter(|(_, class)| *class == Class::Malformed);
    let attempts: BTreeSet<&Attempt> = malformed.map(|(attempt, _)| attempt).collect();
    let records = attempts.into_iter().filter_map(|attempt| Some((attempt, seen.memory.record(attempt)?)));
    let told = records.filter(|(_, record)| record.class == Class::Malformed).map(|(attempt, record)| {
        let message = format!("{}: {}", attempt_of(attempt, record), record.message);
        Finding::of(&UNREADABLE, message.clone()).trouble(record.class.name(), message).error_if(true)
    });
    told.collect()
}

/// The name is taken. The creating concern looks who has it; here only the pace is set.
fn taken(seen: &Observed, want: &Want, attempt: &Attempt, record: &Record) -> Gate {
    moved(seen, want, attempt, record)
}

/// That the custom resource is gone takes a live read, not one 404 of a write; on a pod it was taken in as an answer
/// already.
fn gone(seen: &Observed, want: &Want, attempt: &Attempt, record: &Record) -> Gate {
    match attempt.action {
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus => {
            if !is_known_gone(seen) {
                return moved(seen, want, attempt, record);
            }
            held(Finding::of(&OBJECT_GONE, "it is not found any more").stop())
        }
        ActionKind::CreatePod => refusal(seen, &AWAIT_EDIT, attempt, record, false),
        ActionKind::ProbeSnapshot | ActionKind::ReadLive | ActionKind::DeleteSnapshot => {
            wait(seen, away(attempt), attempt, record)
        }
        ActionKind::DeletePod | ActionKind::PatchPod | ActionKind::EmitEvent | ActionKind::Await | ActionKind::Stop => {
            Gate::Open
        }
    }
}

/// A live read said that the object is gone.
pub(super) fn is_known_gone(seen: &Observed) -> bool {
    let look = Attempt { action: ActionKind::ReadLive, target: Live::Object.short(), dry_run: false };
    seen.memory.record(&look).is_some_and(|record| record.class.effect() == Effect::Gone)
}

/// Understood and refused. What may pass by itself is tried again; what cannot waits for an edit.
fn refused(seen: &Observed, want: &Want, attempt: &Attempt, record: &Record) -> Gate {
    let long = seen.mono.saturating_sub(record.since) >= PATIENCE;
    match record.class {
        Class::QuotaExceeded => refusal(seen, &AWAIT_QUOTA, attempt, record, long),
        Class::RbacDenied | Class::Unauthorized => refusal(seen, &AWAIT_PERMISSION, attempt, record, true),
        Class::AdmissionDenied | Class::PodSecurityDenied | Class::ForbiddenOther => {
            refusal(seen, &AWAIT_ADMISSION, attempt, record, long)
        }
        Class::Denied | Class::Unsupported => refusal(seen, &AWAIT_REGISTRY, attempt, record, long),
        Class::FinalizerOnDeleting => moved(seen, want, attempt, record),
        Class::NotServed
        | Class::Immutable
        | Class::Invalid
        | Class::TooLarge
        | Class::BadRequest
        | Class::Done
        | Class::Conflict
        | Class::PreconditionFailed
        | Class::AlreadyExists
        | Class::AlreadyExistsTerminating
        | Class::NotFound
        | Class::NamespaceNotFound
        | Class::NamespaceTerminating
        | Class::Throttled
        | Class::Unavailable
        | Class::Expired
        | Class::Unknown
        | Class::Fenced
        | Class::Malformed
        | Class::Present
        | Class::Absent => refusal(seen, &AWAIT_EDIT, attempt, record, true),
    }
}

/// Who is away: the registry or the API server.
fn away(attempt: &Attempt) -> &'static Rule {
    match attempt.action {
        ActionKind::ProbeSnapshot | ActionKind::DeleteSnapshot => &AWAIT_REGISTRY,
        ActionKind::ReadLive
        | ActionKind::AddFinalizer
        | ActionKind::RemoveFinalizer
        | ActionKind::CreatePod
        | ActionKind::DeletePod
        | ActionKind::PatchPod
        | ActionKind::PatchObject
        | ActionKind::PatchStatus
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => &AWAIT_SERVER,
    }
}

/// Wait until it is due, saying why; people are told only of what does not pass soon.
fn wait(seen: &Observed, rule: &'static Rule, attempt: &Attempt, record: &Record) -> Gate {
    if seen.mono >= due(seen, attempt, record) { Gate::Open } else { timer(seen, rule, attempt, record) }
}

/// The same for a refusal, which people are told of at once.
fn refusal(seen: &Observed, rule: &'static Rule, attempt: &Attempt, record: &Record, error: bool) -> Gate {
    if seen.mono >= due(seen, attempt, record) {
        return Gate::Open;
    }
    let Gate::Held(finding) = timer(seen, rule, attempt, record) else { return Gate::Open };
    let message = format!("{}: {}", attempt_of(attempt, record), record.message);
    held(finding.trouble(record.class.name(), message).error_if(error))
}

/// What people are told of a registry's refusal, also where it may be tried again at this moment.
pub fn refusal_told(seen: &Observed, attempt: &Attempt, record: &Record) -> Finding {
    let message = format!("{}: {}", attempt_of(attempt, record), record.message);
    let long = seen.mono.saturating_sub(record.since) >= PATIENCE;
    Finding::of(&AWAIT_REGISTRY, message.clone()).trouble(record.class.name(), message).error_if(long)
}

fn timer(seen: &Observed, rule: &'static Rule, attempt: &Attempt, record: &Record) -> Gate {
    let left = due(seen, attempt, record).saturating_sub(seen.mono);
    let what = match record.class.effect() {
        Effect::Refused => format!("{} to be allowed", attempt.action.name()),
        Effect::Moved
        | Effect::Taken
        | Effect::Unsure
        | Effect::Happened
        | Effect::Gone
        | Effect::NamespaceGoing
        | Effect::Later
        | Effect::NotSent => format!("the next try of {}", attempt.action.name()),
    };
    let because = format!("{} came to {}", attempt_of(attempt, record), record.class);
    let finding = Finding::of(rule, because).wait(what, Some(left));
    if record.count < LASTING {
        return held(finding);
    }
    let message = format!("{}: {}", attempt_of(attempt, record), record.message);
    held(finding.trouble(record.class.name(), message))
}

fn attempt_of(attempt: &Attempt, record: &Record) -> Attempt {
    Attempt { target: record.target.clone(), ..attempt.clone() }
}

/// When it may be tried again, since the process started.
pub fn due(seen: &Observed, attempt: &Attempt, record: &Record) -> Duration {
    let (first, most) = pace(record.class);
    let free = match record.class.effect() {
        Effect::Moved | Effect::Taken | Effect::Unsure => 2,
        Effect::Happened
        | Effect::Gone
        | Effect::NamespaceGoing
        | Effect::Refused
        | Effect::Later
        | Effect::NotSent => 1,
    };
    let doublings = record.count.saturating_sub(free).min(16);
    let delay = first.saturating_mul(1 << doublings).min(most);
    let delay = record.retry_after.map_or(delay, |said| said.max(delay));
    record.last.saturating_add(spread(delay, seen.seed, attempt, record.count))
}

/// First and longest delay between two tries.
const fn pace(class: Class) -> (Duration, Duration) {
    let seconds = Duration::from_secs;
    match class {
        // Rights that come back are to be noticed, and all made good, within ten seconds.
        Class::RbacDenied => (seconds(2), seconds(8)),
        Class::QuotaExceeded | Class::Unauthorized => (seconds(2), seconds(10)),
        Class::AdmissionDenied | Class::PodSecurityDenied | Class::ForbiddenOther => (seconds(2), seconds(30)),
        Class::Denied | Class::Unsupported => (seconds(5), seconds(60)),
        Class::NotServed
        | Class::Immutable
        | Class::Invalid
        | Class::TooLarge
        | Class::BadRequest
        | Class::NotFound => (seconds(60), seconds(900)),
        Class::Done | Class::Absent => (seconds(5), seconds(300)),
        Class::Conflict
        | Class::PreconditionFailed
        | Class::AlreadyExists
        | Class::AlreadyExistsTerminating
        | Class::NamespaceNotFound
        | Class::NamespaceTerminating
        | Class::FinalizerOnDeleting
        | Class::Throttled
        | Class::Unavailable
        | Class::Expired
        | Class::Unknown
        | Class::Fenced
        | Class::Malformed
        | Class::Present => (seconds(1), seconds(30)),
    }
}

/// Up to a tenth more, the same for the same seed, attempt and count (D-76).
pub fn spread(delay: Duration, seed: u64, attempt: &Attempt, count: u32) -> Duration {
    if seed == 0 {
        return delay;
    }
    let mut hash = seed ^ u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in attempt.action.name().bytes().chain(attempt.target.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let tenth = delay.as_millis() as u64 / 10;
    delay.saturating_add(Duration::from_millis(if tenth == 0 { 0 } else { hash % tenth }))
}
