//! A recorded pass, decided again: the same things are seen, the same answers come back.

use super::compare::{self, Difference};
use super::{End, Line, Step, story};
use crate::core::cocoonset::observed::Observed;
use crate::core::control::kinds::{Event, Kind};
use crate::core::control::mirror::Held;
use crate::core::control::pass::{Next, Pass};
use crate::core::control::view::{Clocks, View};
use crate::core::control::wake::Key;
use crate::core::decision::Decision;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a replay came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Where it left the recording; with what follows, nothing is comparable.
    pub difference: Option<Difference>,
    /// Passages that are said in other words, and decided alike.
    pub words: Vec<Difference>,
    /// All of it, for people.
    pub story: Vec<String>,
}

/// What the operator saw at the start of this pass; `None` where the object is not among it.
pub fn observe(line: &Line, held: &[Held]) -> Option<Observed> {
    let mut objects: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
    for (kind, _, object) in held {
        objects.entry(*kind).or_default().push(object.as_ref().clone());
    }
    let mut view = View::new();
    for kind in Kind::ALL {
        let Some(version) = line.watched.get(kind.resource()) else { continue };
        let items = objects.remove(&kind).unwrap_or_default();
        view.apply(kind, Event::Listed { items, version: version.clone() });
    }
    view.remember(&line.uid, line.memory.clone());
    let clocks = Clocks { now: line.now, mono: line.mono, seed: line.seed, lease: line.lease };
    let mut seen = view.observe(&Key::new(&line.namespace, &line.name), clocks)?;
    seen.unseen = line.unseen.clone();
    seen.rivals = line.rivals.clone();
    Some(seen)
}

/// Decides this pass again, and compares decision by decision. An `Err` says what of the line does not read.
pub fn replay(line: &Line, held: &[Held]) -> Result<Replayed, String> {
    let seen =
        observe(line, held).ok_or_else(|| format!("{} {} is not among what was seen", line.kind, line.object()))?;
    let mut run = Run { line, sent: 0, turn: 0, told: None, words: Vec::new(), story: Vec::new() };
    let mut pass = Pass::begin(seen);
    let difference = loop {
        let next = pass.next_step();
        run.catch_up(&pass);
        if let Some(difference) = run.compare(pass.decision()) {
            break Some(difference);
        }
        let end = match next {
            Next::Do(wave) => {
                let given = line.turns.get(run.turn).map(|step| step.outcomes.as_slice()).unwrap_or_default();
                let outcomes = given.get(run.sent..run.sent.saturating_add(wave.len())).map(<[_]>::to_vec);
                let Some(outcomes) = outcomes else { break run.runs_out() };
                run.sent = run.sent.saturating_add(outcomes.len());
                pass.answer(outcomes);
                continue;
            }
            Next::Rest(after) => {
                let error = pass.decision().error().map(|trouble| trouble.reason.to_string());
                End::Rest { after, error }
            }
            Next::GiveUp(because) => End::GaveUp { because: because.into_owned() },
        };
        break run.ends(&pass, &end);
    };
    Ok(Replayed { difference, words: run.words, story: run.story })
}

struct Run<'a> {
    line: &'a Line,
    /// Answers given in this turn.
    sent: usize,
    turn: usize,
    /// The turn that was compared last.
    told: Option<usize>,
    words: Vec<Difference>,
    story: Vec<String>,
}

impl Run<'_> {
    /// A new decision has its answers before it.
    fn catch_up(&mut self, pass: &Pass<Observed>) {
        let turns = pass.turns();
        if turns.len() > self.turn {
            for turn in turns.get(self.turn..).unwrap_or_default() {
                self.story.extend(story::deeds(&turn.decision, &turn.outcomes));
            }
            (self.turn, self.sent) = (turns.len(), 0);
        }
    }

    fn compare(&mut self, decision: &Decision) -> Option<Difference> {
        if self.told.replace(self.turn) == Some(self.turn) {
            return None;
        }
        let recorded = self.line.turns.get(self.turn);
        if recorded.is_none() && self.panicked() {
            return None;
        }
        let decided = decision.actions_json(&self.line.subject());
        let difference = compare::actions(self.turn.saturating_add(1), recorded, &decided)?;
        if difference.words_only {
            self.words.push(difference);
            return None;
        }
        Some(difference)
    }

    /// The recorded pass sent nothing more here: a bug ended it, or it went on to another decision.
    fn runs_out(&self) -> Option<Difference> {
        let recorded = match &self.line.end {
            End::Panicked { .. } => return None,
            end @ (End::Rest { .. } | End::GaveUp { .. }) if self.is_last() => story::end(end),
            End::Rest { .. } | End::GaveUp { .. } => "the plan was dropped".to_owned(),
        };
        let decided = vec!["the plan goes on".to_owned()];
        Some(Difference { turn: self.turn.saturating_add(1), recorded: vec![recorded], decided, words_only: false })
    }

    fn ends(&mut self, pass: &Pass<Observed>, end: &End) -> Option<Difference> {
        self.story.extend(story::deeds(pass.decision(), pass.outcomes()));
        self.story.extend(story::standing(pass.decision()));
        self.story.push(story::end(end));
        if self.panicked() {
            return compare::end(self.turn.saturating_add(1), &self.line.end, end);
        }
        if !self.is_last() {
            let next = self.line.turns.get(self.turn.saturating_add(1));
            return compare::actions(self.turn.saturating_add(2), Some(next.unwrap_or(&Step::default())), &[]);
        }
        compare::end(self.turn.saturating_add(1), &self.line.end, end)
    }

    fn panicked(&self) -> bool {
        match self.line.end {
            End::Panicked { .. } => true,
            End::Rest { .. } | End::GaveUp { .. } => false,
        }
    }

    fn is_last(&self) -> bool {
        self.turn.saturating_add(1) >= self.line.turns.len()
    }
}
