//! The CocoonHibernation controller, as far as this version has one: requests are seen, and left alone.

use super::action::{Action, Wait, Want};
use super::decision::{Decision, Entry, Finding};
use crate::rules;

rules! {
    /// Leave a CocoonHibernation alone: this version does not carry out such requests, and the set of its pod is left
    /// alone for as long as the request is there. Without it a request would look as if somebody was at work on it.
    /// (D-81)
    UNSUPPORTED = "hibernation/unsupported";
}

/// What is decided about any CocoonHibernation.
pub fn explain() -> Decision {
    let finding = Finding::of(&UNSUPPORTED, "this version does not carry out CocoonHibernations").stop();
    let action = Action {
        want: Want::Wait(Wait::Stop),
        rule: finding.rule.clone(),
        because: finding.because.clone(),
        also: Vec::new(),
    };
    Decision { actions: vec![action], trace: vec![Entry::Spoke(finding)], troubles: Vec::new() }
}
