//! What a pass said, to the log, the metrics and whoever listens. Nothing is added: every line has its rule and reason.

use super::Shell;
use super::metrics::CONTROLLER;
use crate::core::action::{Action, Attempt, Subject, Want};
use crate::core::control::election::Told;
use crate::core::control::errors::{Counted, counting};
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::decision::{Decision, Entry, Finding, Trouble};
use crate::core::outcome::{Class, Outcome};
use futures::future::BoxFuture;
use std::time::Duration;
use tracing::{debug, error, info};

/// Listens to passes as they go: a transcript, a recorder. What it is told is over, or about to be sent.
pub trait Witness: Send + Sync {
    /// Something happened in the pass over this object.
    fn hears(&self, key: &Key, heard: Heard<'_>);
    /// Something happened to the lease.
    fn hears_of_the_lease(&self, _told: &Told) {}
}

/// What happens in a pass, in this order.
#[derive(Debug)]
pub enum Heard<'a> {
    /// It begins; its actions will be about this.
    Begins(&'a Subject),
    /// The first actions of this decision, or its next, are about to be carried out.
    Wave(&'a Decision),
    /// One of them was answered. Those of one wave are answered in any order.
    Answered(&'a Action, &'a Outcome),
    /// One decision is over, and what came of its actions.
    Turn(&'a Turn),
    /// The pass is at rest.
    Rested {
        /// On this decision.
        decision: &'a Decision,
        /// The next look is after this long.
        after: Option<Duration>,
        /// The reason under which it counts as an error, if it does.
        error: Option<&'a str>,
    },
    /// The pass was a bug.
    GaveUp {
        /// The decision that it broke on; none where it panicked.
        decision: Option<&'a Decision>,
        /// Why.
        because: &'a str,
        /// Whether it counts as an error.
        error: bool,
    },
}

/// Says when a worker may take the next key: a stage that goes from moment to moment holds its workers here.
pub trait Pace: Send + Sync {
    /// Comes back when the next pass may begin.
    fn next_pass(&self) -> BoxFuture<'_, ()>;
    /// Comes back when the election may go on; `due` does when it has something to do.
    fn next_election<'a>(&'a self, due: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        due
    }
}

/// Tells whoever listens.
pub fn hears(shell: &Shell, key: &Key, heard: Heard<'_>) {
    if let Some(witness) = &shell.witness {
        witness.hears(key, heard);
    }
}

/// The text with control characters spelled out: words of other people must not make lines of their own.
pub fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    let spelled = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(spelled).collect::<String>().into()
}

/// Tells the turns that were not told yet; how many are told then.
pub fn turns(shell: &Shell, key: &Key, turns: &[Turn], told: usize) -> usize {
    for turn in turns.iter().skip(told) {
        count(shell, &turn.decision);
        for finding in spoken(&turn.decision) {
            if acts(finding) {
                info!(
                    controller = CONTROLLER, namespace = key.namespace, name = key.name, rule = %finding.rule,
                    because = %plain(&finding.because), actions = actions(finding, turn), "decided"
                );
            }
        }
        hears(shell, key, Heard::Turn(turn));
        if let Some(recorder) = &shell.recorder {
            recorder.turn(key, turn);
        }
    }
    turns.len()
}

/// Tells where a pass came to rest. A trouble that counts as an error is one, once; any other is an outcome.
pub fn rested(shell: &Shell, key: &Key, decision: &Decision, after: Option<Duration>, counted: &Counted) {
    count(shell, decision);
    for Trouble { reason, message, .. } in counting(decision, counted) {
        error!(controller = CONTROLLER, namespace = key.namespace, name = key.name, %reason, "{}", plain(message));
    }
    let rules = decision.rules().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    debug!(controller = CONTROLLER, namespace = key.namespace, name = key.name, rules, ?after, "at rest");
    let error = counting(decision, counted).next().map(|trouble| trouble.reason.as_ref());
    hears(shell, key, Heard::Rested { decision, after, error });
}

/// Tells of a bug: an error when it is entered and once an hour.
pub fn gave_up(shell: &Shell, key: &Key, decision: Option<&Decision>, because: &str, counted: bool) {
    if counted {
        error!(controller = CONTROLLER, namespace = key.namespace, name = key.name, "a bug, backing off: {because}");
    } else {
        info!(controller = CONTROLLER, namespace = key.namespace, name = key.name, "still a bug: {because}");
    }
    hears(shell, key, Heard::GaveUp { decision, because, error: counted });
}

fn count(shell: &Shell, decision: &Decision) {
    for rule in decision.rules() {
        shell.metrics.decided(&rule.0);
    }
}

fn spoken(decision: &Decision) -> impl Iterator<Item = &Finding> {
    decision.trace.iter().filter_map(|entry| match entry {
        Entry::Spoke(finding) => Some(finding),
        Entry::Passed { .. } | Entry::NotAsked { .. } => None,
    })
}

fn acts(finding: &Finding) -> bool {
    finding.wants.iter().any(|want| match want {
        Want::Ask(_) | Want::Change(_) | Want::Announce(_) => true,
        Want::Wait(_) => false,
    })
}

/// What the finding wanted and what came of it, where that is not plain success.
fn actions(finding: &Finding, turn: &Turn) -> String {
    let attempts = finding.wants.iter().filter_map(Attempt::of);
    let told = attempts.map(|attempt| match outcome_of(turn, &attempt) {
        Some(Outcome { class: Class::Done, .. }) => attempt.to_string(),
        Some(outcome) => format!("{attempt} -> {}", outcome.class),
        None => format!("{attempt} (dropped)"),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn outcome_of<'a>(turn: &'a Turn, attempt: &Attempt) -> Option<&'a Outcome> {
    let sent = turn.decision.actions.iter().zip(&turn.outcomes);
    sent.filter(|(action, _)| Attempt::of(&action.want).as_ref() == Some(attempt)).map(|(_, outcome)| outcome).next()
}
