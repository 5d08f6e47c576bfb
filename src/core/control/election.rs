//! One replica of several writes: lease and clock in, the next request or the next look out. Deterministic; a driver with
//! a connection sends what it is told and brings the answers back (decision R11).
//!
//! Nobody's clock is trusted but our own monotonic one. A rival's lease is timed from when *we* saw it change, so that a
//! wall clock that is off, or jumps, takes no lease away and keeps none. Our own term ends a renew deadline after the last
//! renewal that succeeded was *sent*; a rival waits a whole lease duration from when it saw that renewal. Between the two,
//! nobody writes. A process leads at most once: with its term it ends.

use super::lease::{self, Claim, Record};
pub use super::terms::{Ending, Step, TAG_DELETE_TERM, Terms, Told, term_for};
use crate::core::call::Call;
use crate::core::cocoonset::observed::Lease;
use crate::core::outcome::{Answer, Effect, Outcome};
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Read,
    Create,
    Claim,
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Follows,
    Leads { until: Duration },
    Releases { until: Duration },
    Over(Ending),
}

/// One process that stands for election.
#[derive(Clone, Debug)]
pub struct Elector {
    terms: Terms,
    role: Role,
    plan: What,
    /// When the plan is due, since the start.
    next: Duration,
    /// Under way, and since when.
    sent: Option<(What, Duration)>,
    known: Option<Record>,
    /// The spec of somebody else's lease, and since when it has not changed before our eyes.
    rival: Option<(Value, Duration)>,
    tries: u64,
    trouble: Option<String>,
    follows: Option<String>,
    told: Vec<Told>,
}

impl Elector {
    /// Stands for election from now on.
    pub const fn new(terms: Terms, now: Duration) -> Self {
        Self {
            terms,
            role: Role::Follows,
            plan: What::Read,
            next: now,
            sent: None,
            known: None,
            rival: None,
            tries: 0,
            trouble: None,
            follows: None,
            told: Vec::new(),
        }
    }

    /// The right to write at this time since the start.
    pub fn lease(&self, mono: Duration) -> Lease {
        match self.role {
            Role::Leads { until } => Lease::Held(until.saturating_sub(mono)),
            Role::Follows | Role::Releases { .. } | Role::Over(_) => Lease::Lost,
        }
    }
    /// True while it leads, be its term over or not.
    pub const fn leads(&self) -> bool {
        match self.role {
            Role::Leads { .. } => true,
            Role::Follows | Role::Releases { .. } | Role::Over(_) => false,
        }
    }
    /// False once it is to stop, or over.
    pub const fn stands(&self) -> bool {
        match self.role {
            Role::Follows | Role::Leads { .. } => true,
            Role::Releases { .. } | Role::Over(_) => false,
        }
    }
    /// When there is something to do, since the start; never again once it is over.
    pub fn next_due(&self) -> Option<Duration> {
        match self.role {
            Role::Follows => Some(self.next),
            Role::Leads { until } | Role::Releases { until } => Some(self.next.min(until)),
            Role::Over(_) => None,
        }
    }
    /// What happened since the last call.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// It is to stop: nothing is written from here on but the release.
    pub fn stop(&mut self, mono: Duration) {
        match self.role {
            Role::Leads { until } => {
                self.role = Role::Releases { until };
                self.tries = 0;
                self.plan(What::Release, mono);
            }
            // A claim under way may yet succeed; it is waited out like the lease of a process that was killed.
            Role::Follows => self.role = Role::Over(Ending::Stopped),
            Role::Releases { .. } | Role::Over(_) => {}
        }
    }

    /// What to do now.
    pub fn step(&mut self, now: Timestamp, mono: Duration) -> Step {
        let end = match &self.role {
            Role::Over(ending) => return Step::Over(ending.clone()),
            Role::Follows => None,
            Role::Leads { until } | Role::Releases { until } => Some(*until),
        };
        if end.is_some_and(|end| mono >= end) {
            let why = self.trouble.clone().unwrap_or_else(|| "no answer came in time".to_owned());
            let deadline = self.terms.renew.as_secs_f32();
            return Step::Over(self.run_out(format!("it was not renewed within {deadline}s: {why}")));
        }
        if mono < self.next {
            return Step::Wait(end.map_or(self.next, |end| end.min(self.next)));
        }
        let call = self.call(now);
        self.sent = Some((self.plan, mono));
        let until = mono.saturating_add(self.terms.patience);
        Step::Send { call, until: end.map_or(until, |end| until.min(end)) }
    }

    /// The answer to what was to be sent.
    pub fn answered(&mut self, outcome: &Outcome, mono: Duration) {
        let Some((what, sent)) = self.sent.take() else { return };
        match self.role {
            Role::Follows => self.follower(what, sent, outcome, mono),
            Role::Leads { until } => self.leader(what, sent, until, outcome, mono),
            Role::Releases { .. } => self.releasing(what, outcome, mono),
            Role::Over(_) => {}
        }
    }

    fn call(&mut self, now: Timestamp) -> Call {
        let Terms { namespace, identity, lease, .. } = &self.terms;
        let claim = Claim { holder: identity, duration: *lease, now };
        let released = Claim { holder: "", duration: Duration::from_secs(1), now };
        match (self.plan, &self.known) {
            (What::Create, _) => lease::create(namespace, &claim),
            (What::Claim, Some(base)) => lease::update(namespace, base, &claim),
            (What::Release, Some(base)) => lease::update(namespace, base, &released),
            (What::Read, _) | (What::Claim | What::Release, None) => {
                self.plan = What::Read;
                lease::read(namespace)
            }
        }
    }

    fn follower(&mut self, what: What, sent: Duration, outcome: &Outcome, mono: Duration) {
        let record = record(outcome);
        match (what, outcome.effect()) {
            (What::Create | What::Claim, Effect::Happened) => match record {
                // A term that is over before its answer came is none: the next read finds the lease ours.
                Some(record) if self.is_ours(&record) && mono < sent.saturating_add(self.terms.renew) => {
                    self.told.push(Told::Leads);
                    self.renewed(record, sent, mono);
                }
                Some(_) | None => self.later(What::Read, outcome, mono),
            },
            (What::Read | What::Release, Effect::Happened) => match record {
                Some(record) => self.saw(record, mono),
                None => self.failed(What::Read, outcome, mono),
            },
            (What::Read, Effect::Gone) => match self.still_believed(mono) {
                Some(expires) => {
                    let next = mono.saturating_add(self.pause());
                    self.plan(What::Read, next.min(expires));
                }
                None => self.plan(What::Create, mono),
            },
            // Somebody was faster.
            (What::Create | What::Claim | What::Release, Effect::Moved | Effect::Taken | Effect::Gone)
            | (What::Read, Effect::Moved | Effect::Taken) => self.later(What::Read, outcome, mono),
            (_, Effect::NamespaceGoing | Effect::Refused | Effect::Later | Effect::Unsure | Effect::NotSent) => {
                self.failed(What::Read, outcome, mono)
            }
        }
    }

    /// A lease of somebody, or of nobody, as it stands.
    fn saw(&mut self, record: Record, mono: Duration) {
        // Whoever gives it back leaves a duration; a lease that was emptied by hand may still be believed in.
        let given_back = record.holder().is_empty() && (record.duration().is_some() || self.known.is_none());
        let free = given_back || self.is_ours(&record);
        let since = match &self.rival {
            Some((spec, since)) if spec == record.spec() => *since,
            Some(_) | None => mono,
        };
        self.rival = Some((record.spec().clone(), since));
        let expires = since.saturating_add(record.duration().unwrap_or(self.terms.lease));
        if !free && !record.holder().is_empty() && self.follows.as_deref() != Some(record.holder()) {
            self.told.push(Told::Follows(record.holder().to_owned()));
            self.follows = Some(record.holder().to_owned());
        }
        self.known = Some(record);
        if free || expires <= mono {
            self.plan(What::Claim, mono);
        } else {
            self.trouble = None;
            let next = mono.saturating_add(self.pause());
            self.plan(What::Read, next.min(expires));
        }
    }

    /// Until when another may go on who was last seen to hold a lease that is gone since: it notices at its next renewal.
    fn still_believed(&self, mono: Duration) -> Option<Duration> {
        let known = self.known.as_ref().filter(|known| !known.holder().is_empty() && !self.is_ours(known))?;
        let (_, since) = self.rival.as_ref()?;
        let expires = since.saturating_add(known.duration().unwrap_or(self.terms.lease));
        (mono < expires).then_some(expires)
    }

    fn leader(&mut self, what: What, sent: Duration, until: Duration, outcome: &Outcome, mono: Duration) {
        let record = record(outcome);
        match (outcome.effect(), record) {
            (Effect::Happened, Some(record)) if !self.is_ours(&record) => {
                let holder = if record.holder().is_empty() { "nobody" } else { record.holder() };
                self.lose(format!("{holder} holds it"));
            }
            (Effect::Happened, Some(record)) if what == What::Read => {
                self.known = Some(record);
                self.plan(What::Claim, mono);
            }
            (Effect::Happened, Some(record)) => {
                // An answer that comes after the term's end does not bring it back.
                if mono < until {
                    self.renewed(record, sent, mono);
                }
            }
            // Whoever deletes it wants another leader, or there is one already.
            (Effect::Gone, _) => self.lose("it was deleted".to_owned()),
            // Somebody wrote it: who?
            (Effect::Moved | Effect::Taken, _) => self.plan(What::Read, mono),
            // It may have happened: the version may have moved.
            (Effect::Happened | Effect::Unsure, _) => self.failed(What::Read, outcome, mono),
            (Effect::NamespaceGoing | Effect::Refused | Effect::Later | Effect::NotSent, _) => {
                self.failed(what, outcome, mono);
            }
        }
    }

    fn releasing(&mut self, what: What, outcome: &Outcome, mono: Duration) {
        let record = record(outcome);
        self.tries = self.tries.saturating_add(1);
        match (what, outcome.effect(), record) {
            (What::Release, Effect::Happened, _) => {
                self.told.push(Told::Released);
                self.role = Role::Over(Ending::Stopped);
            }
            (What::Read | What::Claim | What::Create, Effect::Happened, Some(record)) if self.is_ours(&record) => {
                self.known = Some(record);
                self.plan(What::Release, mono);
            }
            (What::Release | What::Claim, Effect::Moved | Effect::Unsure, _) if self.tries < 4 => {
                self.plan(What::Read, mono);
            }
            (
                _,
                Effect::Happened
                | Effect::Moved
                | Effect::Taken
                | Effect::Gone
                | Effect::NamespaceGoing
                | Effect::Refused
                | Effect::Later
                | Effect::Unsure
                | Effect::NotSent,
                _,
            ) => {
                self.told.push(Told::Trouble(format!("it could not be given back: {}", words(outcome))));
                self.role = Role::Over(Ending::Stopped);
            }
        }
    }

    fn renewed(&mut self, record: Record, sent: Duration, mono: Duration) {
        self.role = Role::Leads { until: sent.saturating_add(self.terms.renew) };
        self.known = Some(record);
        self.trouble = None;
        self.plan(What::Claim, sent.saturating_add(self.terms.retry).max(mono));
    }

    fn lose(&mut self, why: String) {
        self.told.push(Told::Lost(why.clone()));
        self.role = Role::Over(Ending::Lost(why));
    }

    /// The term is over.
    fn run_out(&mut self, why: String) -> Ending {
        let ending = match self.role {
            Role::Releases { .. } | Role::Over(Ending::Stopped) => Ending::Stopped,
            Role::Follows | Role::Leads { .. } | Role::Over(Ending::Lost(_)) => Ending::Lost(why.clone()),
        };
        if ending != Ending::Stopped {
            self.told.push(Told::Lost(why));
        }
        self.role = Role::Over(ending.clone());
        ending
    }

    fn plan(&mut self, what: What, at: Duration) {
        (self.plan, self.next) = (what, at);
    }

    /// Not now: after a pause, and not sooner than the server asked for, but in time to try once more within the term.
    fn later(&mut self, what: What, outcome: &Outcome, mono: Duration) {
        let asked = outcome.retry_after.unwrap_or_default();
        let asked = match self.role {
            Role::Leads { until } => asked.min(until.saturating_sub(mono) / 2),
            Role::Follows | Role::Releases { .. } | Role::Over(_) => asked,
        };
        let pause = self.pause().max(asked);
        self.plan(what, mono.saturating_add(pause));
    }

    /// The same, and people are told why, once.
    fn failed(&mut self, what: What, outcome: &Outcome, mono: Duration) {
        let why = words(outcome);
        if self.trouble.as_ref() != Some(&why) {
            self.told.push(Told::Trouble(why.clone()));
            self.trouble = Some(why);
        }
        self.later(what, outcome, mono);
    }

    /// A retry period; those who wait take up to a fifth off it, each another part, so that they do not come at once.
    fn pause(&mut self) -> Duration {
        self.tries = self.tries.saturating_add(1);
        if self.terms.seed == 0 || self.leads() {
            return self.terms.retry;
        }
        let mut hash = self.terms.seed ^ self.tries.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let percent = u32::try_from((hash >> 33) % 21).unwrap_or_default();
        self.terms.retry.saturating_sub(self.terms.retry.saturating_mul(percent) / 100)
    }

    fn is_ours(&self, record: &Record) -> bool {
        record.holder() == self.terms.identity
    }
}

fn record(outcome: &Outcome) -> Option<Record> {
    match &outcome.answer {
        Answer::Object(object) => Record::of(object),
        Answer::Nothing | Answer::List { .. } | Answer::Snapshot { .. } | Answer::NotThere => None,
    }
}

fn words(outcome: &Outcome) -> String {
    if outcome.message.is_empty() {
        outcome.class.to_string()
    } else {
        format!("{}: {}", outcome.class, outcome.message)
    }
}
