//! One pass over one object: decide, act, absorb, decide again, until nothing is left to do.
//! The shell, the simulator and a replay only ever carry actions out and answer.

use crate::core::action::{Action, Attempt, Change, Want};
use crate::core::decide::{Observation, explain, independent};
use crate::core::decision::Decision;
use crate::core::outcome::{Effect, Outcome};
use crate::core::rule::Because;
use std::collections::BTreeMap;
use std::time::Duration;

/// Turns without anything happening after which a pass is given up: a bug, never a way to retry (decision R3).
const IDLE_TURNS_MAX: u32 = 16;
/// Turns after which a pass is given up whatever happened in it: more than the seats of the largest set, twice.
const TURNS_MAX: usize = 1024;
/// So often the same write may succeed in one pass and count as progress: after that somebody undoes it.
const SAME_WRITE_MAX: u32 = 3;
/// The widest wave.
pub const WIDTH_MAX: usize = 16;

/// A pass in progress.
#[derive(Clone, Debug)]
pub struct Pass<O> {
    seen: O,
    decision: Decision,
    outcomes: Vec<Outcome>,
    wave: usize,
    width: usize,
    surprised: bool,
    idle: u32,
    tried: BTreeMap<Attempt, u32>,
    broken: Option<Because>,
    turns: Vec<Turn>,
}

/// One decision, and what came of those of its actions that were carried out, in order.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The decision.
    pub decision: Decision,
    /// Outcomes of its first actions; the plan was dropped where there are fewer than actions.
    pub outcomes: Vec<Outcome>,
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Independent of one another: carry them out and give every outcome back, in order.
    Do(Vec<Action>),
    /// Nothing is left to do; look again after this long if nothing changes before.
    Rest(Option<Duration>),
    /// A bug: a broken law, or no progress.
    GiveUp(Because),
}

impl<O: Observation> Pass<O> {
    /// Starts with what is seen now.
    pub fn begin(seen: O) -> Self {
        let mut pass = Self {
            seen,
            decision: Decision::default(),
            outcomes: Vec::new(),
            wave: 0,
            width: 1,
            surprised: false,
            idle: 0,
            tried: BTreeMap::new(),
            broken: None,
            turns: Vec::new(),
        };
        pass.decide();
        pass
    }

    /// The next wave of actions, or the end.
    pub fn next_step(&mut self) -> Next {
        loop {
            if let Some(law) = &self.broken {
                return Next::GiveUp(law.clone());
            }
            let left = self.decision.actions.get(self.outcomes.len()..).unwrap_or_default();
            let wave = if self.surprised { Vec::new() } else { first_wave(left, self.width) };
            if !wave.is_empty() {
                self.wave = wave.len();
                return Next::Do(wave);
            }
            if self.outcomes.is_empty() {
                return Next::Rest(self.decision.recheck_after());
            }
            if self.idle >= IDLE_TURNS_MAX || self.turns.len() >= TURNS_MAX {
                return Next::GiveUp(format!("{} turns without coming to rest", self.turns.len() + 1).into());
            }
            self.turn_over();
        }
    }

    /// Takes the outcomes of the last wave in, in order. A surprise drops the rest of the plan.
    pub fn answer(&mut self, outcomes: Vec<Outcome>) {
        let from = self.outcomes.len();
        let sent: Vec<Action> = self.decision.actions.iter().skip(from).take(self.wave).cloned().collect();
        let mut changed = false;
        for (action, outcome) in sent.iter().zip(outcomes) {
            if let Some(attempt) = Attempt::of(&action.want) {
                let undone = self.seen.take_in(&action.want, &attempt, &outcome);
                self.surprised |= undone;
                let times = self.tried.entry(attempt).or_default();
                *times += 1;
                // What was never tried in this pass teaches something, whatever came of it.
                changed |= *times == 1;
                let again = *times <= SAME_WRITE_MAX;
                match outcome.effect() {
                    Effect::Happened => changed |= again && !undone && is_change(&action.want),
                    Effect::Moved
                    | Effect::Taken
                    | Effect::Gone
                    | Effect::NamespaceGoing
                    | Effect::Refused
                    | Effect::Later
                    | Effect::Unsure
                    | Effect::NotSent => self.surprised = true,
                }
            }
            self.outcomes.push(outcome);
        }
        self.width = if self.surprised { 1 } else { (self.width * 2).min(WIDTH_MAX) };
        self.idle = if changed { 0 } else { self.idle };
        self.wave = 0;
    }

    /// What is seen now, answers included.
    pub fn seen(&self) -> &O {
        &self.seen
    }
    /// The decision in force.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
    /// The turns that are over, oldest first. The last decision is not among them.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }
    /// What came of those of its actions that were carried out, in order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
    /// Gives back what was seen, for what outlives the pass.
    pub fn into_seen(self) -> O {
        self.seen
    }

    fn turn_over(&mut self) {
        let decision = std::mem::take(&mut self.decision);
        let outcomes = std::mem::take(&mut self.outcomes);
        self.turns.push(Turn { decision, outcomes });
        self.idle += 1;
        self.decide();
    }

    fn decide(&mut self) {
        self.decision = explain(&self.seen);
        self.broken = self.seen.broken_law(&self.decision);
        self.surprised = false;
        self.width = 1;
    }
}

fn is_change(want: &Want) -> bool {
    match want {
        Want::Change(change) => !change.is_dry_run(),
        Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => false,
    }
}

/// The first actions that may travel side by side. Only creates start slowly: each may meet the same refusal.
fn first_wave(left: &[Action], width: usize) -> Vec<Action> {
    let Some(first) = left.first() else { return Vec::new() };
    let width = match &first.want {
        Want::Wait(_) => return Vec::new(),
        Want::Change(Change::CreatePod { .. }) => width,
        Want::Change(_) | Want::Ask(_) => WIDTH_MAX,
        Want::Announce(_) => 1,
    };
    let mut wave: Vec<Action> = Vec::new();
    for action in left.iter().take(width) {
        if wave.iter().all(|other| independent(&other.want, &action.want)) {
            wave.push(action.clone());
        } else {
            break;
        }
    }
    wave
}
