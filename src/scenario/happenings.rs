//! What happened in a story, stage by stage alike: the words of the cluster, and the passes of the operator. Everything
//! that is told, counted or claimed of an operator is read off these.

use crate::core::action::{Action, ActionKind, Change, Subject, Want};
use crate::core::call::call;
use crate::core::control::flow::HELD_BACK;
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::decision::{Decision, Entry};
use crate::core::outcome::{Class, Effect, Outcome};
use crate::core::rule::{Because, RuleId};
use std::collections::BTreeSet;
use std::time::Duration;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A new part of the story begins.
    Step(String),
    /// The cluster did something by itself.
    World {
        /// When, since the story's start.
        at: Duration,
        /// Who: a node, a controller.
        actor: String,
        /// What.
        text: String,
    },
    /// The operator looked at an object.
    Pass(Box<PassStory>),
    /// The operator died, started, or a step did not settle.
    Note {
        /// When.
        at: Duration,
        /// What.
        text: String,
    },
}

/// One pass of one operator over one object.
#[derive(Clone, Debug)]
pub struct PassStory {
    /// When, since the story's start.
    pub at: Duration,
    /// Which operator; empty for the first.
    pub operator: String,
    /// The object.
    pub key: Key,
    /// Who the actions are about.
    pub subject: Subject,
    /// The turns that are over.
    pub turns: Vec<Turn>,
    /// The decision in force at the end, and what came of those of its actions that were carried out.
    pub last: Turn,
    /// How it ended.
    pub end: PassEnd,
    /// The error that was counted at its end (decision R4).
    pub error: Option<String>,
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq)]
pub enum PassEnd {
    /// At rest.
    Rest(Option<Duration>),
    /// Given up: a bug.
    GaveUp(Because),
    /// The operator died in it.
    Crashed,
}

/// One action that was carried out.
#[derive(Clone, Debug)]
pub struct Deed<'a> {
    /// The action.
    pub action: &'a Action,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// The label of its verb, and the resource; empty for announcements, and for what never left (decisions R11, R29).
    pub verb: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// Whether it wrote something, or tried to.
    pub writes: bool,
}

impl PassStory {
    /// Everything that was carried out, in order.
    pub fn deeds(&self) -> impl Iterator<Item = Deed<'_>> {
        self.all_turns().flat_map(|turn| turn.decision.actions.iter().zip(&turn.outcomes)).map(|(action, outcome)| {
            let call = call(&self.subject, action).filter(|_| !never_left(outcome));
            let (verb, resource, writes) = call.map_or(("", "", false), |call| {
                (call.verb().label(), call.resource(), call.verb().writes() && !is_dry_run(&action.want))
            });
            // As faults name it: a write of the status is none of the set.
            let resource = if action.kind() == ActionKind::PatchStatus { "cocoonsets/status" } else { resource };
            Deed { action, outcome, verb, resource, writes }
        })
    }
    /// Every turn, the last one included.
    pub fn all_turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().chain(std::iter::once(&self.last))
    }
    /// Every rule that spoke in it.
    pub fn rules(&self) -> BTreeSet<RuleId> {
        let of = |turn: &Turn| turn.decision.rules();
        self.all_turns().flat_map(of).collect()
    }
}

/// Reads off what was counted.
pub struct Counts<'a>(pub &'a [Happening]);

impl<'a> Counts<'a> {
    /// Every pass.
    pub fn passes(&self) -> impl Iterator<Item = &'a PassStory> {
        self.0.iter().filter_map(|happening| match happening {
            Happening::Pass(pass) => Some(pass.as_ref()),
            Happening::Step(_) | Happening::World { .. } | Happening::Note { .. } => None,
        })
    }
    /// Everything that was carried out.
    pub fn deeds(&self) -> impl Iterator<Item = Deed<'a>> {
        self.passes().flat_map(PassStory::deeds)
    }
    /// Calls of this verb and resource; `write` and `any` stand for all.
    pub fn calls(&self, verb: &str, resource: &str) -> usize {
        self.deeds().filter(|deed| fits(deed, verb, resource)).count()
    }
    /// Creates of pods that were refused.
    pub fn refused_creates(&self) -> usize {
        self.deeds().filter(|deed| deed.action.kind() == ActionKind::CreatePod && is_refusal(deed.outcome)).count()
    }
    /// Calls that came to this class.
    pub fn answers(&self, class: &str) -> usize {
        self.deeds().filter(|deed| !deed.verb.is_empty() && deed.outcome.class.name() == class).count()
    }
    /// Reconcile errors.
    pub fn errors(&self) -> Vec<&'a str> {
        self.passes().filter_map(|pass| pass.error.as_deref()).collect()
    }
    /// Reasons of the events that were announced.
    pub fn events(&self) -> BTreeSet<&'a str> {
        self.announced().collect()
    }
    /// How often an event with this reason was announced.
    pub fn told(&self, reason: &str) -> usize {
        self.announced().filter(|told| *told == reason).count()
    }
    fn announced(&self) -> impl Iterator<Item = &'a str> {
        self.deeds().filter_map(|deed| match &deed.action.want {
            Want::Announce(announcement) => Some(announcement.reason.as_str()),
            Want::Ask(_) | Want::Change(_) | Want::Wait(_) => None,
        })
    }
    /// What was told of the operators' starts, ends and lease.
    pub fn notes(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|happening| match happening {
            Happening::Note { text, .. } => Some(text.as_str()),
            Happening::Step(_) | Happening::World { .. } | Happening::Pass(_) => None,
        })
    }
    /// In how many passes this rule spoke.
    pub fn fired(&self, rule: &str) -> usize {
        self.passes().filter(|pass| pass.rules().iter().any(|id| id.0 == rule)).count()
    }
    /// What happened after the last step began.
    pub fn last_step(&self) -> Counts<'a> {
        let from = self.0.iter().rposition(|happening| matches!(happening, Happening::Step(_))).unwrap_or(0);
        Counts(self.0.get(from..).unwrap_or_default())
    }
}

/// Whether this call is of this verb and resource; `write` and `any` stand for all.
pub fn fits(deed: &Deed<'_>, verb: &str, resource: &str) -> bool {
    let verb_fits = if verb == "write" { deed.writes } else { deed.verb == verb };
    verb_fits && !deed.verb.is_empty() && (resource == "any" || deed.resource == resource)
}

fn is_refusal(outcome: &Outcome) -> bool {
    match outcome.class.effect() {
        Effect::Refused | Effect::NamespaceGoing => true,
        Effect::Happened
        | Effect::Moved
        | Effect::Taken
        | Effect::Gone
        | Effect::Later
        | Effect::Unsure
        | Effect::NotSent => false,
    }
}

fn never_left(outcome: &Outcome) -> bool {
    outcome.class == Class::Fenced || outcome.class == Class::Throttled && outcome.message.starts_with(HELD_BACK)
}

fn is_dry_run(want: &Want) -> bool {
    match want {
        Want::Change(Change::CreatePod { dry_run, .. }) => *dry_run,
        Want::Change(_) | Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => false,
    }
}

/// What a decision says without sending anything: waits, and things that people should know. Each once.
pub fn standing(decision: &Decision) -> Vec<(RuleId, Because, Option<Duration>)> {
    let mut told: Vec<(RuleId, Because, Option<Duration>)> = Vec::new();
    for entry in &decision.trace {
        let Entry::Spoke(finding) = entry else { continue };
        let waits_only = finding.wants.iter().all(|want| match want {
            Want::Wait(_) => true,
            Want::Ask(_) | Want::Change(_) | Want::Announce(_) => false,
        });
        if waits_only && !told.iter().any(|(rule, because, _)| *rule == finding.rule && *because == finding.because) {
            let timer = finding.wants.iter().filter_map(timer_of).min();
            told.push((finding.rule.clone(), finding.because.clone(), timer));
        }
    }
    told
}

fn timer_of(want: &Want) -> Option<Duration> {
    use crate::core::action::Wait;
    match want {
        Want::Wait(Wait::Await { recheck_after, .. }) => *recheck_after,
        Want::Wait(Wait::Stop) | Want::Ask(_) | Want::Change(_) | Want::Announce(_) => None,
    }
}

/// Whether the answer is worth a word: not where it is simply what was wanted.
pub fn is_plain(outcome: &Outcome) -> bool {
    outcome.class == Class::Done
}
