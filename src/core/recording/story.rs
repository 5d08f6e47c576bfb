//! A pass in words: each rule that spoke and why, and what was done about it.

use super::End;
use crate::core::action::{Action, Attempt, Want};
use crate::core::decision::{Decision, Entry};
use crate::core::outcome::{Class, Outcome};

/// What was carried out.
pub(super) fn deeds(decision: &Decision, outcomes: &[Outcome]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut head = String::new();
    for (action, outcome) in decision.actions.iter().zip(outcomes) {
        let said = format!("{}  {}", action.rule, action.because);
        if said != head {
            lines.push(said.clone());
            head = said;
        }
        lines.push(format!("  {}{}", deed(action), answer(outcome)));
    }
    lines
}

/// What is said without doing anything.
pub(super) fn standing(decision: &Decision) -> Vec<String> {
    let waits = |want: &Want| match want {
        Want::Wait(_) => true,
        Want::Ask(_) | Want::Change(_) | Want::Announce(_) => false,
    };
    let mut lines = Vec::new();
    for entry in &decision.trace {
        let Entry::Spoke(finding) = entry else { continue };
        let said = format!("{}  {}", finding.rule, finding.because);
        if finding.wants.iter().all(waits) && !lines.contains(&said) {
            lines.push(said);
        }
    }
    lines
}

/// How it ended.
pub(super) fn end(end: &End) -> String {
    let error = |error: &Option<String>| error.as_ref().map(|error| format!("; ERROR {error}")).unwrap_or_default();
    match end {
        End::Rest { after: None, error: found } => format!("rests{}", error(found)),
        End::Rest { after: Some(after), error: found } => {
            format!("rests, looks again in {} s{}", after.as_secs_f64(), error(found))
        }
        End::GaveUp { because } => format!("gave up: {because}"),
        End::Panicked { because } => format!("panicked: {because}"),
    }
}

fn deed(action: &Action) -> String {
    match &action.want {
        Want::Announce(told) => format!("EmitEvent {}: {}", told.reason, told.message),
        Want::Ask(_) | Want::Change(_) | Want::Wait(_) => {
            Attempt::of(&action.want).map(|attempt| attempt.to_string()).unwrap_or_default()
        }
    }
}

fn answer(outcome: &Outcome) -> String {
    let class = outcome.class;
    if class == Class::Done {
        String::new()
    } else if outcome.message.is_empty() {
        format!(" -> {class}")
    } else {
        format!(" -> {class} ({})", outcome.message)
    }
}
