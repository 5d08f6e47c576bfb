//! A pass as it happened, one line of JSON each: what was seen, what came back, what was decided, and the story told.
//!
//! A line holds API objects and answers, and of our own types only what outlives a pass (`Memory`), so that recordings
//! survive a change of everything in between. Objects are written where they changed since the file last showed them;
//! a file is read from its beginning. docs/recording.md describes the fields.

mod compare;
mod replay;
mod shelf;
mod story;

pub use compare::Difference;
pub use replay::{Replayed, observe, replay};
pub use shelf::Shelf;

use super::action::Subject;
use super::cocoonset::observed::{Lease, Observed, Rival};
use super::control::kinds::Kind;
use super::control::mirror::{Held, without_secrets};
use super::control::pass::Turn;
use super::control::view::View;
use super::decision::Decision;
use super::memory::Memory;
use super::outcome::{Answer, Outcome};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of the format: a line of a later one is refused.
pub const VERSION: u32 = 1;

/// One pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Of the format.
    pub version: u32,
    /// Kind of the object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Wall clock at the start of the pass.
    pub now: Timestamp,
    /// Time since the process started.
    pub mono: Duration,
    /// What spread timers.
    pub seed: u64,
    /// The right to write.
    pub lease: Lease,
    /// Kinds that were listed, each with the version that its watch had reached.
    pub watched: BTreeMap<String, String>,
    /// It was a rehearsal, which sends no write (decision R30).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Own writes that the watches had not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Objects that changed since the file last showed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Value>,
    /// Every object that was seen: names by resource.
    pub seen: BTreeMap<String, Vec<String>>,
    /// Other sets with a claim to a VM name of this one, by VM name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rivals: BTreeMap<String, Rival>,
    /// What the operator had kept about the object.
    #[serde(default)]
    pub memory: Memory,
    /// Each decision, and what came of it. The last one is the one the pass ended on.
    pub turns: Vec<Step>,
    /// How it ended.
    pub end: End,
    /// All of it, for people.
    #[serde(default)]
    pub story: Vec<String>,
}

/// One decision, and what came of those of its actions that were carried out, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// As `explain -o json` prints them.
    pub actions: Vec<Value>,
    /// As they were understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<Outcome>,
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// At rest.
    Rest {
        /// The next look, if nothing changes before.
        after: Option<Duration>,
        /// The reason of what needs a person (decision R4).
        error: Option<String>,
    },
    /// A bug.
    GaveUp {
        /// Why.
        because: String,
    },
    /// It panicked: the decision that was being made is not known.
    Panicked {
        /// Its words.
        because: String,
    },
}

/// A pass that has begun.
#[derive(Clone, Debug)]
pub struct Taken {
    line: Line,
    held: Vec<Held>,
}

impl View {
    /// All that this observation was read out of, where objects are kept.
    pub fn take(&self, seen: &Observed) -> Option<Taken> {
        if !self.keeps_objects() {
            return None;
        }
        let Subject { kind, namespace, name, uid } = seen.subject();
        let synced = Kind::ALL.into_iter().filter(|kind| self.is_synced(*kind));
        let version = |kind: Kind| seen.versions.get(kind.resource()).cloned().unwrap_or_default();
        let line = Line {
            version: VERSION,
            kind: kind.to_owned(),
            namespace,
            name,
            uid,
            now: seen.now,
            mono: seen.mono,
            seed: seen.seed,
            lease: seen.lease,
            watched: synced.map(|kind| (kind.resource().to_owned(), version(kind))).collect(),
            dry_run: false,
            unseen: seen.unseen.clone(),
            objects: Vec::new(),
            seen: BTreeMap::new(),
            rivals: seen.rivals.clone(),
            memory: seen.memory.clone(),
            turns: Vec::new(),
            end: End::Panicked { because: String::new() },
            story: Vec::new(),
        };
        Some(Taken { line, held: self.behind(seen) })
    }
}

impl Taken {
    /// The same; whether its pass is a rehearsal.
    #[must_use]
    pub fn rehearsed(mut self, dry_run: bool) -> Self {
        self.line.dry_run = dry_run;
        self
    }

    /// A decision is over.
    pub fn turn(&mut self, turn: &Turn) {
        let Turn { decision, outcomes } = turn;
        self.step(decision, outcomes);
    }

    /// The pass is over: on this decision, with these of its actions carried out.
    pub fn ends(&mut self, last: Option<(&Decision, &[Outcome])>, end: End) {
        if let Some((decision, outcomes)) = last {
            self.step(decision, outcomes);
            self.line.story.extend(story::standing(decision));
        }
        self.line.story.push(story::end(&end));
        self.line.end = end;
    }

    fn step(&mut self, decision: &Decision, outcomes: &[Outcome]) {
        let subject = self.line.subject();
        self.line.story.extend(story::deeds(decision, outcomes));
        let outcomes = outcomes.iter().map(without_what_is_secret).collect();
        self.line.turns.push(Step { actions: decision.actions_json(&subject), outcomes });
    }
}

impl Line {
    /// Who it is about; of a kind that this version does not know, a CocoonSet.
    pub fn subject(&self) -> Subject {
        use super::contract::keys::{HIBERNATION_KIND, SET_KIND};
        let kind = if self.kind == HIBERNATION_KIND { HIBERNATION_KIND } else { SET_KIND };
        let (namespace, name, uid) = (self.namespace.clone(), self.name.clone(), self.uid.clone());
        Subject { kind, namespace, name, uid }
    }
    /// NAMESPACE/NAME.
    pub fn object(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn without_what_is_secret(outcome: &Outcome) -> Outcome {
    let answer = match &outcome.answer {
        Answer::Object(object) => Answer::Object(without_secrets(object)),
        Answer::List { items, version, continue_token } => Answer::List {
            items: items.iter().map(without_secrets).collect(),
            version: version.clone(),
            continue_token: continue_token.clone(),
        },
        Answer::Snapshot { .. } | Answer::Nothing | Answer::NotThere => outcome.answer.clone(),
    };
    Outcome { answer, ..outcome.clone() }
}
