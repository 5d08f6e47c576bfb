//! What a pass said, to the log, the metrics and whoever listens. Nothing is added: every line has its rule and reason.

use super::Shell;
use super::metrics::CONTROLLER;
use crate::core::action::{Attempt, Want};
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::decision::{Decision, Entry, Finding, Trouble};
use crate::core::outcome::{Class, Outcome};
use std::time::Duration;
use tracing::{debug, error, info};

/// Listens to passes as they go: a transcript, a recorder.
pub trait Witness: Send + Sync {
    /// One decision is over, and what came of its actions.
    fn turn(&self, key: &Key, turn: &Turn);
    /// A pass is at rest on this decision; the next look is after this long.
    fn rested(&self, key: &Key, decision: &Decision, after: Option<Duration>);
    /// A pass was a bug.
    fn gave_up(&self, key: &Key, because: &str);
}

/// Tells the turns that were not told yet; how many are told then.
pub fn turns(shell: &Shell, key: &Key, turns: &[Turn], told: usize) -> usize {
    for turn in turns.iter().skip(told) {
        count(shell, &turn.decision);
        for finding in spoken(&turn.decision) {
            if acts(finding) {
                info!(
                    controller = CONTROLLER, namespace = key.namespace, name = key.name, rule = %finding.rule,
                    because = %finding.because, actions = actions(finding, turn), "decided"
                );
            }
        }
        if let Some(witness) = &shell.witness {
            witness.turn(key, turn);
        }
    }
    turns.len()
}

/// Tells where a pass came to rest. A trouble that counts as an error is one, once; any other is an outcome.
pub fn rested(shell: &Shell, key: &Key, decision: &Decision, after: Option<Duration>, counted: bool) {
    count(shell, decision);
    for Trouble { reason, message, .. } in decision.troubles.iter().filter(|trouble| trouble.error && counted) {
        error!(controller = CONTROLLER, namespace = key.namespace, name = key.name, %reason, "{message}");
    }
    let rules = decision.rules().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    debug!(controller = CONTROLLER, namespace = key.namespace, name = key.name, rules, ?after, "at rest");
    if let Some(witness) = &shell.witness {
        witness.rested(key, decision, after);
    }
}

/// Tells of a bug: an error when it is entered and once an hour.
pub fn gave_up(shell: &Shell, key: &Key, because: &str, counted: bool) {
    if counted {
        error!(controller = CONTROLLER, namespace = key.namespace, name = key.name, "a bug, backing off: {because}");
    } else {
        info!(controller = CONTROLLER, namespace = key.namespace, name = key.name, "still a bug: {because}");
    }
    if let Some(witness) = &shell.witness {
        witness.gave_up(key, because);
    }
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
