//! The controllers of the control plane, as work that falls due: namespace lifecycle, the end of definitions, garbage
//! collection, pod garbage collection, quota. Every write may schedule some; nothing runs until the driver says so.

mod definition;
mod gc;
mod namespace;
mod podgc;

use super::log::Entry;
use super::objects::{Key, is_deleting, later, meta, text};
use super::{Store, admission, crd};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How long the quota controller takes to see a change.
const QUOTA_DELAY: SignedDuration = SignedDuration::from_millis(20);
/// How often quotas are counted anew without a reason.
const QUOTA_RESYNC: i64 = 300;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Look at a terminating namespace.
    Namespace(String),
    /// Empty a kind whose definition is being deleted.
    Definition(String),
    /// Decide whether the object of this uid has lost its owners.
    Dependent(String),
    /// Go on with the foreground or orphaning deletion of the object of this uid.
    Owner(String),
    /// Take away the pods of a node that is gone.
    LostNode(String),
    /// Sweep terminating pods that never had a node.
    PodSweep,
    /// Count a quota: namespace and name.
    Quota(String, String),
    /// The same, but on the controller's periodic round.
    QuotaRound(String, String),
}

impl Work {
    /// Which controller does it.
    const fn actor(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "namespace-controller",
            Self::Definition(_) => "definition-controller",
            Self::Dependent(_) | Self::Owner(_) => "garbage-collector",
            Self::LostNode(_) | Self::PodSweep => "pod-garbage-collector",
            Self::Quota(..) | Self::QuotaRound(..) => "quota-controller",
        }
    }
}

/// What one controller did at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// When.
    pub at: Timestamp,
    /// Which controller.
    pub actor: &'static str,
    /// What it wrote, in order.
    pub changes: Vec<(Key, Change)>,
}

/// What became of an object, as far as its life is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was changed.
    Written,
    /// It began to be deleted.
    Marked,
    /// It is gone.
    Removed,
}

/// What is to be done, each thing once, at its earliest time.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    by_time: BTreeMap<(Timestamp, u64), Work>,
    by_work: BTreeMap<Work, (Timestamp, u64)>,
    sequence: u64,
}

impl Due {
    fn add(&mut self, work: Work, at: Timestamp) {
        if let Some(place) = self.by_work.get(&work) {
            if place.0 <= at {
                return;
            }
            self.by_time.remove(place);
        }
        self.sequence = self.sequence.saturating_add(1);
        self.by_time.insert((at, self.sequence), work.clone());
        self.by_work.insert(work, (at, self.sequence));
    }

    fn take(&mut self, now: Timestamp) -> Option<(Timestamp, Work)> {
        let (place, _) = self.by_time.first_key_value().filter(|(place, _)| place.0 <= now)?;
        let place = *place;
        let work = self.by_time.remove(&place)?;
        self.by_work.remove(&work);
        Some((place.0, work))
    }
}

impl Store {
    /// When the next controller has something to do.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.by_time.first_key_value().map(|(place, _)| place.0)
    }

    /// Does the next thing that is due by `then`, at its time, and says what it was.
    pub fn run_next(&mut self, then: Timestamp) -> Option<Ran> {
        let (at, work) = self.due.take(then)?;
        self.now = self.now.max(at);
        let (actor, before) = (work.actor(), self.version);
        self.run(work);
        let changes = self.log.after(before).map(|entry| (entry.key.clone(), change(entry))).collect();
        Some(Ran { at: self.now, actor, changes })
    }

    /// Does what is due by now; true if there was something.
    pub fn run_due(&mut self) -> bool {
        let mut any = false;
        while let Some((_, work)) = self.due.take(self.now) {
            any = true;
            self.run(work);
        }
        any
    }

    /// Lets time pass until `then`: controllers act at the moments at which they are due.
    pub fn advance_to(&mut self, then: Timestamp) {
        while let Some((at, work)) = self.due.take(then) {
            self.now = self.now.max(at);
            self.run(work);
        }
        self.now = self.now.max(then);
    }

    fn run(&mut self, work: Work) {
        match work {
            Work::Namespace(name) => self.sync_namespace(&name),
            Work::Definition(name) => self.empty_kind(&name),
            Work::Dependent(uid) => self.collect_dependent(&uid),
            Work::Owner(uid) => self.process_owner(&uid),
            Work::LostNode(node) => self.collect_lost_pods(&node),
            Work::PodSweep => self.sweep_unbound_pods(),
            Work::Quota(namespace, name) | Work::QuotaRound(namespace, name) => {
                admission::quota::recount(self, &namespace, &name);
            }
        }
    }

    fn schedule(&mut self, work: Work, after: SignedDuration) {
        let at = later(self.now, after);
        self.due.add(work, at);
    }

    /// The next multiple of `period` seconds after the cluster's start that lies at or after `at`.
    fn round(&self, at: Timestamp, period: i64) -> Timestamp {
        let since = at.duration_since(self.epoch).as_millis().max(0);
        let span = i128::from(period) * 1000;
        let rounds = (since + span - 1) / span;
        let millis = i64::try_from(rounds.max(1) * span).unwrap_or(i64::MAX);
        later(self.epoch, SignedDuration::from_millis(millis))
    }

    /// What a write gives the controllers to do.
    pub(super) fn notice(&mut self, entry: &Entry) {
        self.notice_ownership(entry);
        self.notice_quota(entry);
        match entry.key.resource.as_str() {
            "namespaces" => self.notice_namespace(entry),
            "nodes" | "pods" => self.notice_pods(entry),
            crd::DEFINITIONS => self.notice_definition(entry),
            _ => {}
        }
    }

    fn notice_quota(&mut self, entry: &Entry) {
        let namespace = entry.key.namespace.clone();
        if entry.key.resource == "resourcequotas" {
            let spec =
                |object: &Option<std::sync::Arc<super::Value>>| object.as_ref().and_then(|o| o.get("spec").cloned());
            if entry.after.is_some() && spec(&entry.before) != spec(&entry.after) {
                self.schedule(Work::Quota(namespace, entry.key.name.clone()), QUOTA_DELAY);
            }
            return;
        }
        if namespace.is_empty() {
            return;
        }
        let quotas: Vec<String> =
            self.objects("resourcequotas", Some(&namespace)).map(|quota| meta(quota, "name").to_owned()).collect();
        for quota in quotas {
            self.notice_quota_use(entry, &namespace, quota);
        }
    }

    /// A quota is counted when an object went or a pod finished; a pod that outlives its grace is noticed only on the
    /// periodic round (R31).
    fn notice_quota_use(&mut self, entry: &Entry, namespace: &str, quota: String) {
        let finished = |object: &super::Value| matches!(text(object, "/status/phase"), "Failed" | "Succeeded");
        let place = (namespace.to_owned(), quota);
        match (&entry.before, &entry.after) {
            (Some(_), None) => self.schedule(Work::Quota(place.0, place.1), QUOTA_DELAY),
            (Some(before), Some(after)) if entry.key.resource == "pods" => {
                if finished(after) && !finished(before) {
                    self.schedule(Work::Quota(place.0, place.1), QUOTA_DELAY);
                } else if is_deleting(after) && !is_deleting(before) {
                    let grace = after.pointer("/metadata/deletionGracePeriodSeconds");
                    let grace = grace.and_then(super::Value::as_i64).unwrap_or(0);
                    let end = super::objects::time(meta(after, "deletionTimestamp")).unwrap_or(self.now);
                    let at = self.round(super::objects::plus(end, grace.saturating_add(1)), QUOTA_RESYNC);
                    self.due.add(Work::QuotaRound(place.0, place.1), at);
                }
            }
            _ => {}
        }
    }

    fn key_of(&self, uid: &str) -> Option<Key> {
        self.by_uid.get(uid).cloned()
    }
}

fn change(entry: &Entry) -> Change {
    match (&entry.before, &entry.after) {
        (_, None) => Change::Removed,
        (Some(before), Some(after)) if is_deleting(after) && !is_deleting(before) => Change::Marked,
        (_, Some(_)) => Change::Written,
    }
}
