//! Kubernetes events (decision R27): what is announced becomes at most one request, and nothing depends on what comes of
//! it. Events say that something happened, once; what happens alike again within minutes is one event with a series, and
//! no object and no reason can flood the others (D-51).

use super::flow::HELD_BACK;
use crate::core::action::{Action, Announcement, Subject, Want};
use crate::core::call::{Call, FIELD_MANAGER};
use crate::core::contract::keys;
use crate::core::outcome::{Class, Outcome};
use crate::core::wire::{JSON, MERGE_PATCH, Method, Request, Verb};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// What happens alike again within this long is one series, as Kubernetes' own recorder has it.
const SERIES: Duration = Duration::from_secs(360);
/// So many events of one reason about one object go out at once …
const BURST: u32 = 25;
/// … and then one in this long (spec/observability.md 1, there for each object).
const REFILL: Duration = Duration::from_secs(300);
/// The most series and the most budgets that are kept; beyond that the oldest go.
const KEPT: usize = 1_024;
/// How long no event is tried where none may be written: doubling from the first to the last.
const CLOSED: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(900));
/// What goes on failing is said again after this long.
const SAID_AGAIN: Duration = Duration::from_secs(3_600);
/// The longest name of a set that an event's name repeats; the rest is for what makes it its own.
const NAME_MOST: usize = 200;

/// Turns announcements into requests, for one operator process.
#[derive(Clone, Debug, Default)]
pub struct Announcer {
    instance: String,
    sent: u64,
    series: BTreeMap<Alike, Said>,
    budgets: BTreeMap<(String, String), Budget>,
    closed: Option<Closed>,
    failures: BTreeMap<Class, Duration>,
}

/// What makes two events one: about whom, what, and in which words.
type Alike = (String, bool, String, String);

#[derive(Clone, Debug)]
struct Said {
    name: String,
    count: u32,
    last: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    left: u32,
    since: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Closed {
    until: Duration,
    times: u32,
}

/// The time, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Wall clock: it stands in the event.
    pub now: Timestamp,
    /// Since the process started: for what is waited for.
    pub mono: Duration,
}

/// One event to send. What came of it is to be told to [`Announcer::answered`].
#[derive(Clone, Debug)]
pub struct Sending {
    /// The request.
    pub call: Call,
    alike: Alike,
    name: String,
}

impl Sending {
    /// Whether it is a repetition that goes into the series of an event sent before.
    pub fn repeats(&self) -> bool {
        self.call.verb() == Verb::Patch
    }
}

impl Announcer {
    /// Speaks as this instance (`reportingInstance`): a pod's name, say.
    pub fn new(instance: &str) -> Self {
        let instance = if instance.is_empty() { FIELD_MANAGER } else { instance };
        Self { instance: crate::core::oddity::excerpt(instance, 100), ..Self::default() }
    }

    /// The request for an announcement; `Err` is what it comes to where none is sent. `None` for any other action.
    pub fn speak(&mut self, subject: &Subject, action: &Action, at: Moment) -> Option<Result<Sending, Outcome>> {
        let Want::Announce(told) = &action.want else { return None };
        if let Some(closed) = self.closed.filter(|closed| closed.until > at.mono) {
            let left = closed.until.saturating_sub(at.mono).as_secs();
            return Some(Err(held_back(&format!("events may not be written; tried again in {left}s"))));
        }
        if !self.spend(subject, told, at.mono) {
            return Some(Err(held_back(&format!("too many {} events about this object", told.reason))));
        }
        let alike = alike(subject, told);
        let known = self.series.get(&alike).filter(|said| at.mono.saturating_sub(said.last) < SERIES);
        let sending = match known {
            Some(said) => Sending {
                call: again(subject, &said.name, said.count.saturating_add(1), at.now),
                name: said.name.clone(),
                alike,
            },
            None => {
                self.sent = self.sent.saturating_add(1);
                let name = self.name(subject, told, at.now);
                Sending { call: first(subject, told, &name, &self.instance, at.now), name, alike }
            }
        };
        Some(Ok(sending))
    }

    /// Takes in what came of it. True where that is worth a line of the log: a failure that is new, or was not said for
    /// an hour.
    pub fn answered(&mut self, sending: Sending, outcome: &Outcome, mono: Duration) -> bool {
        match outcome.class {
            Class::Done => {
                self.closed = None;
                self.failures.clear();
                let said = self.series.get(&sending.alike).filter(|said| said.name == sending.name);
                let count = said.map_or(1, |said| said.count.saturating_add(1));
                keep(&mut self.series, sending.alike, Said { name: sending.name, count, last: mono }, |said| said.last);
                return false;
            }
            // None of them can be written for now: each would be refused the same way.
            Class::RbacDenied | Class::Unauthorized | Class::NotServed => {
                let times = self.closed.map_or(1, |closed| closed.times.saturating_add(1));
                let delay = CLOSED.0.saturating_mul(1 << times.saturating_sub(1).min(8)).min(CLOSED.1);
                self.closed = Some(Closed { until: mono.saturating_add(delay), times });
            }
            // Its first event is gone: the next of its kind begins a series of its own.
            Class::NotFound => drop(self.series.remove(&sending.alike)),
            // This one is lost, and nothing follows from it: it is not sent again, since it may have arrived, and since
            // whatever it told of is told by the status too.
            Class::Conflict
            | Class::PreconditionFailed
            | Class::AlreadyExists
            | Class::AlreadyExistsTerminating
            | Class::NamespaceNotFound
            | Class::NamespaceTerminating
            | Class::QuotaExceeded
            | Class::PodSecurityDenied
            | Class::AdmissionDenied
            | Class::ForbiddenOther
            | Class::FinalizerOnDeleting
            | Class::Immutable
            | Class::Invalid
            | Class::TooLarge
            | Class::BadRequest
            | Class::Throttled
            | Class::Unavailable
            | Class::Expired
            | Class::Unknown
            | Class::Fenced
            | Class::Malformed
            | Class::Present
            | Class::Absent
            | Class::Denied
            | Class::Unsupported => {}
        }
        if is_expected(outcome.class) {
            return false;
        }
        let due = self.failures.get(&outcome.class).is_none_or(|last| mono.saturating_sub(*last) >= SAID_AGAIN);
        if due {
            self.failures.insert(outcome.class, mono);
        }
        due
    }

    /// How many series and budgets are kept, for the proof that memory is bounded.
    pub fn sizes(&self) -> (usize, usize) {
        (self.series.len(), self.budgets.len())
    }

    /// Takes one from the budget of this reason about this object, if something is left of it.
    fn spend(&mut self, subject: &Subject, told: &Announcement, mono: Duration) -> bool {
        let key = (subject.uid.clone(), told.reason.clone());
        let mut budget = self.budgets.get(&key).copied().unwrap_or(Budget { left: BURST, since: mono });
        let refills = mono.saturating_sub(budget.since).as_secs() / REFILL.as_secs();
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if budget.left.saturating_add(refills) >= BURST {
            budget = Budget { left: BURST, since: mono };
        } else {
            budget.left += refills;
            budget.since = budget.since.saturating_add(REFILL.saturating_mul(refills));
        }
        let some = budget.left > 0;
        budget.left = budget.left.saturating_sub(1);
        keep(&mut self.budgets, key, budget, |budget| budget.since);
        some
    }

    /// A name that no other event has, of this process or another.
    fn name(&self, subject: &Subject, told: &Announcement, now: Timestamp) -> String {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let (time, count) = (now.as_nanosecond().to_be_bytes(), self.sent.to_be_bytes());
        let parts: [&[u8]; 5] =
            [self.instance.as_bytes(), subject.uid.as_bytes(), told.reason.as_bytes(), &time, &count];
        for byte in parts.into_iter().flatten() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let set: String = subject.name.chars().take(NAME_MOST).collect();
        format!("{}.{hash:016x}", set.trim_end_matches(['-', '.']))
    }
}

/// Refusals that are no fault of the installation: the namespace went, the server is busy, or the lease is not ours.
fn is_expected(class: Class) -> bool {
    [Class::NamespaceTerminating, Class::NamespaceNotFound, Class::NotFound, Class::Throttled, Class::Fenced]
        .contains(&class)
}

/// Puts an entry in; where there are too many the oldest goes.
fn keep<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: K, value: V, age: impl Fn(&V) -> Duration) {
    map.insert(key, value);
    if map.len() > KEPT
        && let Some(oldest) = map.iter().min_by_key(|(_, value)| age(value)).map(|(key, _)| key.clone())
    {
        map.remove(&oldest);
    }
}

fn held_back(why: &str) -> Outcome {
    Outcome::of(Class::Throttled).saying(format!("{HELD_BACK}: {why}"))
}

fn alike(subject: &Subject, told: &Announcement) -> Alike {
    (subject.uid.clone(), told.warning, told.reason.clone(), told.message.clone())
}

/// What was being done, in a word for machines; required of every event.
fn doing(reason: &str) -> &'static str {
    match reason {
        "PodLifecycleFailed" | "MainAgentFailed" | "RecoveredFromFailure" => "Watch",
        "SubAgentDeadLetter" | "MainDeadLetter" | "ToolboxDeadLetter" | "DeadLetter" => "GiveUp",
        "SubAgentRebuilding" | "MainRebuilding" | "ToolboxRebuilding" | "Rebuilding" => "Rebuild",
        "Recreating" => "Replace",
        "TakesEffectAtNextBoot" => "Patch",
        "Orphaned" => "LetGo",
        _ => "Reconcile",
    }
}

fn collection(subject: &Subject) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", subject.namespace)
}

fn first(subject: &Subject, told: &Announcement, name: &str, instance: &str, now: Timestamp) -> Call {
    let mut event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": name, "namespace": subject.namespace },
        "eventTime": micro(now),
        "reportingController": FIELD_MANAGER, "reportingInstance": instance,
        "action": doing(&told.reason), "reason": told.reason, "note": told.message,
        "type": if told.warning { "Warning" } else { "Normal" },
        "regarding": {
            "apiVersion": keys::API_VERSION, "kind": subject.kind,
            "namespace": subject.namespace, "name": subject.name, "uid": subject.uid,
        },
    });
    if let (Some(pod), Some(event)) = (&told.related, event.as_object_mut()) {
        let related = json!({
            "apiVersion": "v1", "kind": "Pod", "namespace": subject.namespace, "name": pod.pod, "uid": pod.uid,
        });
        event.insert("related".to_owned(), related);
    }
    let request = Request::new(Method::Post, collection(subject)).with_body(JSON, event);
    let request = request.with_query("fieldManager", FIELD_MANAGER);
    Call::Api { verb: Verb::Create, resource: "events", request }
}

fn again(subject: &Subject, name: &str, count: u32, now: Timestamp) -> Call {
    let body = json!({ "series": { "count": count, "lastObservedTime": micro(now) } });
    let request = Request::new(Method::Patch, format!("{}/{name}", collection(subject))).with_body(MERGE_PATCH, body);
    let request = request.with_query("fieldManager", FIELD_MANAGER);
    Call::Api { verb: Verb::Patch, resource: "events", request }
}

/// As Kubernetes writes a MicroTime.
fn micro(now: Timestamp) -> Value {
    Value::from(format!("{now:.6}"))
}
