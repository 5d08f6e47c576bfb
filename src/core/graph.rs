//! The phases of both custom resources and how they follow one another, as data: derived from what the status is derived
//! from, so that a picture of it cannot say anything else.

use super::api::words::{HibernationPhase, SetPhase};
use super::cocoonset::standing::{Standing, is_kept};
use super::contract::keys;

/// The phases of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The custom resource.
    pub kind: &'static str,
    /// Every phase of its schema.
    pub states: Vec<State>,
    /// Every step from one to another.
    pub edges: Vec<Edge>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// As it stands in the status.
    pub name: String,
    /// What is seen where it is written; nothing for one that this version only finds, and keeps.
    pub when: Vec<&'static str>,
}

impl State {
    /// True for a phase that this version writes.
    pub fn is_written(&self) -> bool {
        !self.when.is_empty()
    }
}

/// From a phase, or from an object without one, to another phase, or to the end of the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// None for an object whose status has no phase yet.
    pub from: Option<String>,
    /// None for an object that goes.
    pub to: Option<String>,
}

/// Both kinds.
pub fn machines() -> [Machine; 2] {
    [cocoonset(), hibernation()]
}

/// A phase follows from what is seen and from nothing else: from every phase that is not kept, each of the others can
/// follow. Every object may be deleted, whatever its phase.
fn cocoonset() -> Machine {
    let states: Vec<State> = SetPhase::ALL
        .iter()
        .map(|phase| {
            let says = |standing: &&Standing| standing.phase() == *phase;
            let when = Standing::ALL.iter().filter(says).map(|standing| standing.words()).collect();
            State { name: phase.as_str().to_owned(), when }
        })
        .collect();
    let phases = SetPhase::ALL.iter();
    let mut from: Vec<Option<String>> = vec![None];
    from.extend(phases.filter(|phase| !is_kept(phase)).map(|phase| Some(phase.as_str().to_owned())));
    let mut edges = Vec::new();
    for from in from {
        let others = states.iter().filter(|state| state.is_written() && from.as_ref() != Some(&state.name));
        edges.extend(others.map(|to| Edge { from: from.clone(), to: Some(to.name.clone()) }));
    }
    edges.extend(states.iter().map(|state| Edge { from: Some(state.name.clone()), to: None }));
    Machine { kind: keys::SET_KIND, states, edges }
}

/// Not reconciled by this version: its phases are read and none is written.
fn hibernation() -> Machine {
    let states =
        HibernationPhase::ALL.iter().map(|phase| State { name: phase.as_str().to_owned(), when: Vec::new() }).collect();
    Machine { kind: keys::HIBERNATION_KIND, states, edges: Vec::new() }
}
