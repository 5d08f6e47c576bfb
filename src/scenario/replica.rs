//! One operator in memory: the core's view, queue and pass, fed from the cluster's event log instead of sockets.

use super::gates::Gates;
use super::happenings::{PassEnd, PassStory};
use super::standing::{Elected, Standing};
use super::watching::{Watching, query};
use crate::core::action::{Action, Attempt, Subject};
use crate::core::call::{Call, call};
use crate::core::classify::classify;
use crate::core::cocoonset::observed::Observed;
use crate::core::control::bugs::Bugs;
use crate::core::control::election::{Terms, term_for};
use crate::core::control::errors;
use crate::core::control::flow::Leave;
use crate::core::control::kinds::{Event, Kind};
use crate::core::control::pass::{Next, Pass, Turn};
use crate::core::control::queue::{Queue, Rest};
use crate::core::control::view::{Clocks, View};
use crate::core::control::wake::{Key, Wake};
use crate::core::outcome::{Class, Outcome};
use crate::core::wire::Reply;
use crate::sim::store::{WatchKind, WatchQuery};
use crate::sim::world::World;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the operator of a story waits for an answer: the shortest time that a runtime's clock knows, so that
/// stories need not speak of it.
pub const DEADLINE: Duration = Duration::from_millis(1);

/// One operator process.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Its name in transcripts; empty for the first.
    pub name: String,
    /// How far its wall clock is off.
    pub skew: SignedDuration,
    /// It dies after so many further calls.
    pub dies_after: Option<u32>,
    view: View,
    queue: Queue<Key, Key>,
    watches: BTreeMap<Kind, Watching>,
    refused: Vec<Kind>,
    gates: Gates,
    bugs: Bugs,
    started: Duration,
    election: Standing,
}

/// What a pass came to, for who drives the operator.
#[derive(Debug)]
pub struct Ran {
    /// What happened in it.
    pub story: Option<PassStory>,
    /// The operator died in it.
    pub died: bool,
    /// How long it waited for answers that never came.
    pub waited: Duration,
}

impl Replica {
    /// A process that starts now; it may not watch the refused kinds.
    pub fn start(name: &str, now: Duration, refused: &[Kind]) -> Self {
        Self {
            name: name.to_owned(),
            skew: SignedDuration::ZERO,
            dies_after: None,
            view: View::new(),
            queue: Queue::new(),
            watches: BTreeMap::new(),
            refused: refused.to_vec(),
            gates: Gates::default(),
            bugs: Bugs::default(),
            started: now,
            election: Standing::default(),
        }
    }

    /// The same, which stands for election under these terms.
    #[must_use]
    pub fn electing(mut self, terms: Option<Terms>) -> Self {
        self.election = Standing::under(terms);
        self
    }
    /// It does not reach the API server, or does again.
    pub fn cut_off(&mut self, on: bool) {
        self.election.cut_off = on;
        Kind::ALL.into_iter().for_each(|kind| self.lag(kind, on));
    }
    /// Goes on with the election, if there is something to do and the cluster was seen.
    pub fn elect(&mut self, world: &mut World, now: Duration) -> Option<Elected> {
        let wall = self.wall(world.now());
        if self.is_synced() { self.election.go_on(world, wall, now.saturating_sub(self.started)) } else { None }
    }
    /// Stops, and gives the lease back.
    pub fn stop(&mut self, world: &mut World, now: Duration) -> Option<Elected> {
        let wall = self.wall(world.now());
        self.election.stop(world, wall, now.saturating_sub(self.started))
    }

    /// What this kind's watch shows stands still, or goes on.
    pub fn lag(&mut self, kind: Kind, on: bool) {
        self.watches.entry(kind).or_default().lags = on;
    }
    /// This kind's watch shows everything this much later.
    pub fn late(&mut self, kind: Kind, by: Duration) {
        self.watches.entry(kind).or_default().late = by;
    }
    /// This kind's watch is broken, or is back: then it lists anew.
    pub fn gap(&mut self, kind: Kind, on: bool) {
        let watch = self.watches.entry(kind).or_default();
        watch.broken = on;
        if !on {
            watch.version = None;
        }
    }

    /// Takes in what the watches have to show. Lists what was not listed yet.
    pub fn pump(&mut self, world: &World, now: Duration) {
        for kind in Kind::ALL {
            let events = self.events(world, kind, now);
            for event in events {
                let woken = self.view.apply(kind, event);
                self.wake(woken, now);
            }
        }
    }

    /// When it would look again by itself.
    pub fn next_due(&self) -> Option<Duration> {
        let election = self.election.next_due().map(|due| due.saturating_add(self.started));
        election.into_iter().chain(self.next_work()).min()
    }
    /// The same but for the lease.
    pub fn next_work(&self) -> Option<Duration> {
        let watches = self.watches.values().filter_map(Watching::next_due);
        let queue = self.queue.next_due().filter(|_| self.election.leads());
        watches.chain(queue.map(|due| due.saturating_add(self.started))).min()
    }

    fn is_synced(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.view.is_synced(*kind) || self.refused.contains(kind))
    }

    /// One pass, if there is something to look at.
    pub fn work(&mut self, world: &mut World, at: Duration) -> Option<Ran> {
        if !self.is_synced() || !self.election.leads() {
            return None;
        }
        let mono = at.saturating_sub(self.started);
        let key = self.queue.next(mono)?;
        let clocks = Clocks { now: self.wall(world.now()), mono, seed: 0, lease: self.election.lease(mono) };
        let Some(seen) = self.view.observe(&key, clocks) else {
            self.bugs.over(&key);
            self.queue.done(&key, mono, Rest::OnChange);
            return Some(Ran { story: None, died: false, waited: Duration::ZERO });
        };
        let (mut story, seen, waited) = self.pass(world, at, key.clone(), seen);
        let died = story.end == PassEnd::Crashed;
        if died {
            return Some(Ran { story: Some(story), died, waited });
        }
        let rest = self.remember(seen, &mut story, mono, mono.saturating_add(waited));
        self.queue.done(&key, mono.saturating_add(waited), rest);
        Some(Ran { story: Some(story), died, waited })
    }

    /// Keeps what outlives the pass, counts its error, and says when to look again.
    fn remember(&mut self, mut seen: Observed, story: &mut PassStory, began: Duration, now: Duration) -> Rest {
        let key = &story.key;
        let (rest, error) = match &story.end {
            PassEnd::Crashed => (Rest::OnChange, None),
            PassEnd::GaveUp(_) => {
                let (delay, counts) = self.bugs.another(key, "Bug", now, 0);
                (Rest::After(delay), counts.then(|| "Bug".to_owned()))
            }
            PassEnd::Rest(after) => {
                self.bugs.over(key);
                let (decision, behind) = (&story.last.decision, !seen.unseen.is_empty());
                let counted = errors::rested(&mut seen.memory, decision, behind, began);
                let error = errors::counting(decision, &counted).next().map(|trouble| trouble.reason.to_string());
                (after.map_or(Rest::OnChange, Rest::After), error)
            }
        };
        let woken = self.view.rest(seen);
        self.wake(woken, began.saturating_add(self.started));
        story.error = error;
        rest
    }

    fn pass(&mut self, world: &mut World, at: Duration, key: Key, seen: Observed) -> (PassStory, Observed, Duration) {
        let mut waited = Duration::ZERO;
        let subject = seen.subject();
        let mut pass = Pass::begin(seen);
        let mut last: Vec<Outcome> = Vec::new();
        let mut turns = 0;
        let end = loop {
            let wave = match pass.next_step() {
                Next::Do(wave) => wave,
                Next::Rest(after) => break PassEnd::Rest(after),
                Next::GiveUp(because) => break PassEnd::GaveUp(because),
            };
            if pass.turns().len() > turns {
                turns = pass.turns().len();
                last.clear();
            }
            let now = at.saturating_add(waited).saturating_sub(self.started);
            let (outcomes, died, lost) = self.carry_out(world, &subject, &wave, now);
            waited = waited.saturating_add(lost);
            last.extend(outcomes.iter().cloned());
            if died {
                break PassEnd::Crashed;
            }
            pass.answer(outcomes);
        };
        if pass.turns().len() > turns {
            last.clear();
        }
        let story = PassStory {
            at,
            operator: self.name.clone(),
            key,
            subject,
            turns: pass.turns().to_vec(),
            last: Turn { decision: pass.decision().clone(), outcomes: last },
            end,
            error: None,
        };
        (story, pass.into_seen(), waited)
    }

    /// Sends a wave, one call after another; each may be the last. What it waited for in vain comes last.
    fn carry_out(
        &mut self,
        world: &mut World,
        subject: &Subject,
        wave: &[Action],
        now: Duration,
    ) -> (Vec<Outcome>, bool, Duration) {
        let (mut outcomes, mut waited) = (Vec::new(), Duration::ZERO);
        let calls = wave.iter().map(|action| {
            let call = call(subject, action)?;
            let leave = self.gates.leave(&call, now);
            Some((call, leave))
        });
        let calls: Vec<Option<(Call, Leave)>> = calls.collect();
        // The wave leaves side by side: under one term.
        let lease = self.election.lease(now);
        for (action, call) in wave.iter().zip(calls) {
            let Some((call, leave)) = call else {
                outcomes.push(Outcome::of(Class::Done));
                continue;
            };
            let held_back = self.gates.holds_back(&call, leave, now);
            let passed = held_back.is_none();
            let fenced = (passed && term_for(lease, call.verb()).is_none()).then_some(Reply::Fenced);
            let sent = passed && fenced.is_none();
            if sent && self.dies_after == Some(0) {
                return (outcomes, true, waited);
            }
            let cut_off = self.election.cut_off;
            let reply = held_back.or(fenced).unwrap_or_else(|| send(world, &call, cut_off));
            if passed {
                self.gates.ended(&call, &reply, now);
            }
            if reply == Reply::TimedOut {
                waited = DEADLINE;
            }
            let outcome = classify(call.verb(), &reply);
            if let Some(attempt) = Attempt::of(&action.want) {
                self.view.answered(subject, &attempt, &outcome);
            }
            outcomes.push(outcome);
            self.dies_after = self.dies_after.map(|left| left.saturating_sub(u32::from(sent)));
            if self.dies_after == Some(0) {
                return (outcomes, true, waited);
            }
        }
        (outcomes, false, waited)
    }

    fn events(&mut self, world: &World, kind: Kind, now: Duration) -> Vec<Event> {
        let watch = self.watches.entry(kind).or_default();
        if self.refused.contains(&kind) {
            let first = watch.version.replace(0).is_none();
            return if first { vec![Event::Refused] } else { Vec::new() };
        }
        // What stands still or is broken was listed before.
        if (watch.broken || watch.lags) && watch.version.is_some() {
            return Vec::new();
        }
        let query = query(kind);
        let Some(version) = watch.version else { return vec![list(world, &query, watch)] };
        match world.store.watch_from(&query, version) {
            Ok(events) => {
                let shown = watch.shows(now, world.store.version());
                watch.version = Some(shown);
                events
                    .into_iter()
                    .filter(|event| event.version <= shown)
                    .map(|event| match event.kind {
                        WatchKind::Deleted => Event::Deleted(event.object.as_ref().clone()),
                        WatchKind::Added | WatchKind::Modified | WatchKind::Bookmark | WatchKind::Error => {
                            Event::Applied(event.object.as_ref().clone())
                        }
                    })
                    .collect()
            }
            // Too old: the watch has to list anew.
            Err(_) => vec![list(world, &query, watch)],
        }
    }

    fn wake(&mut self, woken: Vec<Wake>, at: Duration) {
        let mono = at.saturating_sub(self.started);
        for Wake { key, priority } in woken {
            match self.bugs.delays(&key, priority, mono) {
                Some(left) => self.queue.add_after(key.clone(), key, priority, mono, left),
                None => self.queue.add(key.clone(), key, priority, mono),
            }
        }
    }

    fn wall(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.skew).unwrap_or(now)
    }
}

fn send(world: &mut World, call: &Call, cut_off: bool) -> Reply {
    match call {
        Call::Api { .. } if cut_off => Reply::TimedOut,
        Call::Api { request, .. } => world.api(crate::sim::world::OPERATOR, request),
        Call::Registry { verb, vm, tag, digest } => world.registry_call(*verb, vm, tag, digest.as_deref()),
    }
}

fn list(world: &World, query: &WatchQuery, watch: &mut Watching) -> Event {
    let version = world.store.version();
    watch.version = Some(version);
    let objects = world.store.objects(&query.resource, None).filter(|object| query.selector.matches(object));
    Event::Listed { items: objects.cloned().collect(), version: version.to_string() }
}
