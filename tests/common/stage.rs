//! A world, the operator's view of it, and time: passes are run over it and everything sent is recorded.

use super::world::World;
use super::{NAMESPACE, SET};
use cocoon_operator::core::action::{Action, Attempt};
use cocoon_operator::core::call::call;
use cocoon_operator::core::cocoonset::observed::{Lease, Observed};
use cocoon_operator::core::control::kinds::{Event, Kind};
use cocoon_operator::core::control::pass::{Next, Pass};
use cocoon_operator::core::control::view::{Clocks, View};
use cocoon_operator::core::control::wake::{Key, Wake};
use cocoon_operator::core::decision::Decision;
use cocoon_operator::core::outcome::{Class, Outcome};
use cocoon_operator::core::rule::Because;
use cocoon_operator::core::wire::Verb;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// World, view and clock.
#[derive(Clone, Debug)]
pub struct Stage {
    pub world: World,
    pub view: View,
    pub mono: Duration,
    pub lease: Lease,
    /// Everything sent, over all passes.
    pub sent: Vec<Sent>,
    shown: BTreeMap<(Kind, String), Value>,
    listed: bool,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Duration,
    pub attempt: Attempt,
    pub rule: String,
    pub verb: Verb,
    pub class: Class,
}

/// One pass, as it went.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Every decision, the last one (at rest) included.
    pub decisions: Vec<Decision>,
    /// What it sent.
    pub sent: Vec<Sent>,
    pub end: Result<Option<Duration>, Because>,
}

/// What a test answers in the world's place; `None` lets the world answer.
pub type Interfere<'a> = dyn FnMut(&mut World, &Action, &Attempt) -> Option<Outcome> + 'a;

/// Lets the world answer everything.
pub fn plainly(_: &mut World, _: &Action, _: &Attempt) -> Option<Outcome> {
    None
}

impl Stage {
    pub fn new(world: World) -> Self {
        Self {
            world,
            view: View::new(),
            mono: Duration::from_secs(1000),
            lease: Lease::NotNeeded,
            sent: Vec::new(),
            shown: BTreeMap::new(),
            listed: false,
        }
    }
    pub fn key() -> Key {
        Key::new(NAMESPACE, SET)
    }
    pub fn clocks(&self) -> Clocks {
        let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let now = start + jiff::SignedDuration::try_from(self.mono).expect("a short time");
        Clocks { now, mono: self.mono, seed: 0, lease: self.lease }
    }
    pub fn observe(&mut self) -> Option<Observed> {
        self.sync();
        self.view.observe(&Self::key(), self.clocks())
    }

    /// The same, with every first list in another order.
    pub fn observe_shuffled(&mut self, seed: u64) -> Option<Observed> {
        assert!(!self.listed, "the lists have come already");
        self.listed = true;
        let now = self.objects();
        for kind in Kind::ALL.into_iter().rev() {
            let mut items: Vec<Value> =
                now.iter().filter(|((of, _), _)| *of == kind).map(|(_, object)| object.clone()).collect();
            let by = seed as usize % items.len().max(1);
            items.rotate_left(by);
            items.reverse();
            self.view.apply(kind, Event::Listed { items, version: "1".to_owned() });
        }
        let version = self.world.next_version();
        for kind in Kind::ALL {
            self.view.apply(kind, Event::Bookmark(version.clone()));
        }
        self.shown = now;
        self.view.observe(&Self::key(), self.clocks())
    }

    /// Lets the watches catch up with the world.
    pub fn sync(&mut self) -> Vec<Wake> {
        let now = self.objects();
        let mut woken = Vec::new();
        if !self.listed {
            self.listed = true;
            for kind in Kind::ALL {
                let items: Vec<Value> =
                    now.iter().filter(|((of, _), _)| *of == kind).map(|(_, object)| object.clone()).collect();
                woken.extend(self.view.apply(kind, Event::Listed { items, version: "1".to_owned() }));
            }
        } else {
            let before = std::mem::take(&mut self.shown);
            for ((kind, name), object) in &before {
                if !now.contains_key(&(*kind, name.clone())) {
                    let mut gone = object.clone();
                    if self.world.ended.contains(&gone["metadata"]["uid"].to_string()) {
                        gone["status"]["phase"] = Value::from("Succeeded");
                    }
                    gone["metadata"]["resourceVersion"] = Value::from(self.world.next_version());
                    woken.extend(self.view.apply(*kind, Event::Deleted(gone)));
                }
            }
            for ((kind, _), object) in now.iter().filter(|(key, object)| before.get(*key) != Some(*object)) {
                woken.extend(self.view.apply(*kind, Event::Applied(object.clone())));
            }
        }
        let version = self.world.next_version();
        for kind in Kind::ALL {
            woken.extend(self.view.apply(kind, Event::Bookmark(version.clone())));
        }
        self.shown = now;
        woken
    }

    fn objects(&self) -> BTreeMap<(Kind, String), Value> {
        let world = &self.world;
        let pods = world.pods.iter().filter(|(name, _)| !world.hidden.contains(*name));
        let pods = pods.map(|(name, pod)| ((Kind::Pods, name.clone()), pod.clone()));
        let nodes = world.nodes.iter().map(|(name, node)| ((Kind::Nodes, name.clone()), node.clone()));
        let set = world.set.iter().map(|set| ((Kind::CocoonSets, SET.to_owned()), set.clone()));
        let namespace = world.namespace.iter().map(|ns| ((Kind::Namespaces, NAMESPACE.to_owned()), ns.clone()));
        pods.chain(nodes).chain(set).chain(namespace).collect()
    }

    /// One pass on what the watches have shown so far; `None` where there is no such set.
    pub fn pass(&mut self, interfere: &mut Interfere<'_>) -> Option<Ran> {
        let seen = self.view.observe(&Self::key(), self.clocks())?;
        let subject = seen.subject();
        let mut pass = Pass::begin(seen);
        let mut sent = Vec::new();
        let end = loop {
            match pass.next_step() {
                Next::Do(wave) => {
                    let mut outcomes = Vec::new();
                    for action in &wave {
                        let Some(call) = call(&subject, action) else {
                            outcomes.push(Outcome::of(Class::Done));
                            continue;
                        };
                        let attempt = Attempt::of(&action.want).expect("what is called is answered");
                        let outcome =
                            interfere(&mut self.world, action, &attempt).unwrap_or_else(|| self.world.answer(action));
                        self.view.answered(&subject, &attempt, &outcome);
                        sent.push(Sent {
                            at: self.mono,
                            attempt,
                            rule: action.rule.to_string(),
                            verb: call.verb(),
                            class: outcome.class,
                        });
                        outcomes.push(outcome);
                    }
                    pass.answer(outcomes);
                }
                Next::Rest(after) => break Ok(after),
                Next::GiveUp(because) => break Err(because),
            }
        };
        let mut decisions: Vec<Decision> = pass.turns().iter().map(|turn| turn.decision.clone()).collect();
        decisions.push(pass.decision().clone());
        let _ = self.view.rest(pass.into_seen());
        self.sent.extend(sent.iter().cloned());
        Some(Ran { decisions, sent, end })
    }

    /// Runs what is due for this long: passes on events and timers, the node a second after it got work.
    pub fn drive(&mut self, span: Duration, interfere: &mut Interfere<'_>) -> Driven {
        let end = self.mono + span;
        let mut driven = Driven::default();
        let mut due = Some(self.mono);
        let mut at_once = 0;
        loop {
            let woken = self.sync().iter().any(|wake| wake.key == Self::key());
            if woken || due.is_some_and(|due| due <= self.mono) {
                at_once += 1;
                assert!(
                    at_once < 40,
                    "a hot loop: {:?}",
                    self.sent
                        .iter()
                        .rev()
                        .take(4)
                        .map(|s| format!("{} {} {}", s.attempt, s.rule, s.class))
                        .collect::<Vec<_>>()
                );
                let Some(ran) = self.pass(interfere) else { return driven };
                driven.passes += 1;
                match ran.end.clone() {
                    Ok(after) => due = after.map(|after| self.mono + after.max(Duration::from_millis(1))),
                    Err(because) => panic!("the pass was given up: {because}"),
                }
                driven.take(ran);
                continue;
            }
            let works = self.world.has_work().then(|| self.mono + Duration::from_secs(1));
            let Some(next) = due.into_iter().chain(works).min().filter(|next| *next <= end) else {
                self.mono = end;
                return driven;
            };
            self.mono = next;
            at_once = 0;
            if works.is_some_and(|works| works <= next) {
                self.world.node_works();
            }
        }
    }
}

/// What came of driving on.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    pub passes: usize,
    pub calls: usize,
    /// Decisions in which something needed a person.
    pub errors: Vec<String>,
    pub last: Option<Ran>,
}

impl Driven {
    fn take(&mut self, ran: Ran) {
        self.calls += ran.sent.len();
        for trouble in ran.decisions.iter().filter_map(Decision::error) {
            if !self.errors.contains(&trouble.reason.to_string()) {
                self.errors.push(trouble.reason.to_string());
            }
        }
        self.last = Some(ran);
    }
}
