//! What the shell says of its passes, as happenings: the same that a pass in memory leaves behind.

use crate::core::action::{Action, Subject};
use crate::core::control::election::Told;
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::decision::Decision;
use crate::core::outcome::Outcome;
use crate::scenario::happenings::{Happening, PassEnd, PassStory};
use crate::scenario::standing;
use crate::shell::telling::{Heard, Witness};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Keeps the stories of one operator's passes.
#[derive(Debug)]
pub struct Recorder {
    operator: String,
    /// When the story began.
    origin: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    running: BTreeMap<Key, Running>,
    over: Vec<PassStory>,
    /// What happened to the lease, and when.
    lease: Vec<(Duration, Told)>,
    /// The operator is dead: what it still says is not heard.
    deaf: bool,
}

/// A pass under way.
#[derive(Debug)]
struct Running {
    at: Duration,
    subject: Subject,
    turns: Vec<Turn>,
    decision: Decision,
    /// What came of the actions of the decision in force.
    answers: Vec<(Action, Outcome)>,
}

impl Recorder {
    /// For the operator of this name, in a story that began then.
    pub fn new(operator: &str, origin: Instant) -> Self {
        Self { operator: operator.to_owned(), origin, inner: Mutex::default() }
    }

    /// The passes that are over since the last call.
    pub fn take(&self) -> Vec<PassStory> {
        std::mem::take(&mut self.lock().over)
    }

    /// True while a pass is under way.
    #[cfg(feature = "live")]
    pub fn is_running(&self) -> bool {
        !self.lock().running.is_empty()
    }

    /// What happened to the lease since the last call, as a story tells it.
    pub fn take_told(&self) -> Vec<Happening> {
        let lease = std::mem::take(&mut self.lock().lease);
        lease.into_iter().map(|(at, told)| standing::told(at, &self.operator, &told)).collect()
    }

    /// The operator dies now: its passes end here, and nothing more is heard of it.
    pub fn dies(&self) {
        let mut inner = self.lock();
        inner.deaf = true;
        for (key, running) in std::mem::take(&mut inner.running) {
            let story = self.story(key, running, None, PassEnd::Crashed, None);
            inner.over.push(story);
        }
    }

    fn story(
        &self,
        key: Key,
        running: Running,
        decision: Option<&Decision>,
        end: PassEnd,
        error: Option<&str>,
    ) -> PassStory {
        let decision = decision.cloned().unwrap_or(running.decision);
        let answered = |action: &Action| running.answers.iter().find(|(other, _)| other == action);
        let outcomes = decision.actions.iter().map_while(|action| answered(action).map(|(_, outcome)| outcome.clone()));
        let outcomes = outcomes.collect();
        PassStory {
            at: running.at,
            operator: self.operator.clone(),
            key,
            subject: running.subject,
            turns: running.turns,
            last: Turn { decision, outcomes },
            end,
            error: error.map(str::to_owned),
        }
    }

    fn begin(&self, subject: &Subject) -> Running {
        Running {
            at: self.origin.elapsed(),
            subject: subject.clone(),
            turns: Vec::new(),
            decision: Decision::default(),
            answers: Vec::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Recorder {
    fn hears_of_the_lease(&self, told: &Told) {
        let at = self.origin.elapsed();
        let mut inner = self.lock();
        if !inner.deaf {
            inner.lease.push((at, told.clone()));
        }
    }
    fn hears(&self, key: &Key, heard: Heard<'_>) {
        let mut inner = self.lock();
        if inner.deaf {
            return;
        }
        if let Heard::Begins(subject) = heard {
            inner.running.insert(key.clone(), self.begin(subject));
            return;
        }
        let Some(mut running) = inner.running.remove(key) else { return };
        match heard {
            Heard::Begins(_) => {}
            Heard::Wave(decision) => running.decision = decision.clone(),
            Heard::Answered(action, outcome) => running.answers.push((action.clone(), outcome.clone())),
            Heard::Turn(turn) => {
                running.turns.push(turn.clone());
                running.answers.clear();
            }
            Heard::Rested { decision, after, error } => {
                let story = self.story(key.clone(), running, Some(decision), PassEnd::Rest(after), error);
                inner.over.push(story);
                return;
            }
            Heard::GaveUp { decision, because, error } => {
                let end = PassEnd::GaveUp(because.to_owned().into());
                let story = self.story(key.clone(), running, decision, end, error.then_some("Bug"));
                inner.over.push(story);
                return;
            }
        }
        inner.running.insert(key.clone(), running);
    }
}
