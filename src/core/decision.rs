//! What was decided and why: findings, verdicts, and the trace that everything else prints.

use super::action::{Action, Announcement, Change, Question, Related, Subject, Wait, Want};
use super::announcement::NOTE_MOST;
use super::api::condition::Condition;
use super::oddity::excerpt;
use super::pod::facts::PodFacts;
use super::rule::{Because, Rule, RuleId};
use std::borrow::Cow;
use std::time::Duration;

/// One rule that spoke: about what, why, and what it wants done.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its name.
    pub rule: RuleId,
    /// Why it spoke.
    pub because: Because,
    /// What it wants, in the order owed: where one of these is held back, those behind it are not sent either.
    pub wants: Vec<Want>,
    /// What of it people should know: a reason of the Degraded condition, perhaps an error.
    pub trouble: Option<Trouble>,
}

/// Something that people should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// Reason of condition Degraded, an API word.
    pub reason: Cow<'static, str>,
    /// What is wrong, about what, and what to do.
    pub message: String,
    /// True where it needs a person (decision R4): the reconcile counts as an error when the object enters it.
    pub error: bool,
}

impl Finding {
    /// A rule that speaks without wanting anything yet.
    pub fn of(rule: &Rule, because: impl Into<Because>) -> Self {
        Self { rule: rule.id(), because: because.into(), wants: Vec::new(), trouble: None }
    }
    /// … and wants this changed.
    #[must_use]
    pub fn change(mut self, change: Change) -> Self {
        self.wants.push(Want::Change(change));
        self
    }
    /// … and wants to know this.
    #[must_use]
    pub fn ask(mut self, question: Question) -> Self {
        self.wants.push(Want::Ask(question));
        self
    }
    /// … and tells people.
    #[must_use]
    pub fn announce(mut self, warning: bool, reason: &str, message: impl Into<String>) -> Self {
        let message = excerpt(&message.into(), NOTE_MOST.saturating_sub('…'.len_utf8()));
        let reason = reason.to_owned();
        self.wants.push(Want::Announce(Announcement { warning, reason, message, related: None }));
        self
    }
    /// … of this pod as well.
    #[must_use]
    pub fn about(mut self, pod: &PodFacts) -> Self {
        if let Some(Want::Announce(told)) = self.wants.last_mut() {
            told.related = Some(Related { pod: pod.name.to_string(), uid: pod.uid.to_string() });
        }
        self
    }
    /// … and waits for this.
    #[must_use]
    pub fn wait(mut self, what: impl Into<String>, recheck_after: Option<Duration>) -> Self {
        self.wants.push(Want::Wait(Wait::Await { what: what.into(), recheck_after }));
        self
    }
    /// … and wants nothing more until something changes.
    #[must_use]
    pub fn stop(mut self) -> Self {
        self.wants.push(Want::Wait(Wait::Stop));
        self
    }
    /// … and this is what people should know of it.
    #[must_use]
    pub fn trouble(mut self, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        self.trouble = Some(Trouble { reason: reason.into(), message: message.into(), error: false });
        self
    }
    /// … which needs a person if `error` (decision R4).
    #[must_use]
    pub fn error_if(mut self, error: bool) -> Self {
        if let Some(trouble) = &mut self.trouble {
            trouble.error = error;
        }
        self
    }
}

/// What the status should say after this turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report<P> {
    /// Nothing is written (decision R7).
    Silent,
    /// Phase, entries, counts and observedGeneration stay; only conditions move.
    Keep,
    /// Nothing moves but this condition (decision R30).
    Only(Box<Condition>),
    /// This phase, declared by the rule that rests.
    Phase(P),
    /// The phase that follows from what is seen.
    Derived,
}

/// One concern's opinion.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<P> {
    /// Nothing to do here, and why not.
    Pass(Because),
    /// Do this, and let the next concern speak.
    Act(Vec<Finding>),
    /// Do this, and ask nobody else this turn.
    Rest {
        /// What was found.
        findings: Vec<Finding>,
        /// What the status says meanwhile.
        report: Report<P>,
    },
}

impl<P> Verdict<P> {
    /// Nothing to do here, and why not.
    pub fn pass(because: impl Into<Because>) -> Self {
        Self::Pass(because.into())
    }
    /// One finding, and nobody else is asked.
    pub fn rest(finding: Finding, report: Report<P>) -> Self {
        Self::Rest { findings: vec![finding], report }
    }
}

/// One line of the trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A concern that had nothing to say.
    Passed {
        /// Its name.
        concern: &'static str,
        /// Why.
        because: Because,
    },
    /// A rule that spoke.
    Spoke(Finding),
    /// A concern that was not asked, since another rests.
    NotAsked {
        /// Its name.
        concern: &'static str,
    },
}

/// What should happen, and the whole reasoning behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What the core wants, in order; waits stand last.
    pub actions: Vec<Action>,
    /// Every concern and what it said, in the order asked.
    pub trace: Vec<Entry>,
    /// What people should know.
    pub troubles: Vec<Trouble>,
}

impl Decision {
    /// The first trouble that needs a person, if there is one (decision R4).
    pub fn error(&self) -> Option<&Trouble> {
        self.troubles.iter().find(|trouble| trouble.error)
    }
    /// True where nothing is left to send.
    pub fn is_at_rest(&self) -> bool {
        self.actions.iter().all(|action| match &action.want {
            Want::Wait(_) => true,
            Want::Ask(_) | Want::Change(_) | Want::Announce(_) => false,
        })
    }
    /// When to look again if nothing is seen to happen: the shortest of its waits.
    pub fn recheck_after(&self) -> Option<Duration> {
        let timer = |action: &Action| match &action.want {
            Want::Wait(Wait::Await { recheck_after, .. }) => *recheck_after,
            Want::Wait(Wait::Stop) | Want::Ask(_) | Want::Change(_) | Want::Announce(_) => None,
        };
        self.actions.iter().filter_map(timer).min()
    }
    /// Every rule that stands behind an action or a finding, once, in order of the trace.
    pub fn rules(&self) -> Vec<RuleId> {
        let mut seen = Vec::new();
        for entry in &self.trace {
            if let Entry::Spoke(finding) = entry
                && !seen.contains(&finding.rule)
            {
                seen.push(finding.rule.clone());
            }
        }
        seen
    }
    /// The actions as `explain -o json` prints them.
    pub fn actions_json(&self, subject: &Subject) -> Vec<serde_json::Value> {
        self.actions.iter().map(|action| action.to_json(subject)).collect()
    }
}
