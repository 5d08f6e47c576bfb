//! What findings spend of the rebuild budgets, or give back: all of one concern in one write of the set, on which each
//! of them waits. A write for each seat would state the whole history once for every seat of it.

use super::budget::{self, Lost};
use super::observed::Observed;
use super::seat::Seat;
use crate::core::action::{Change, Want};
use crate::core::contract::keys;
use crate::core::contract::rebuilds::{Charged, Histories, Rebuild, Rebuilds, role_key};
use crate::core::decision::Finding;
use std::collections::BTreeMap;

/// A finding, and what the history is to say before anything that it wants is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Costed {
    /// What was found.
    pub finding: Finding,
    cost: Option<Cost>,
}

#[derive(Clone, Debug, PartialEq)]
struct Cost {
    annotation: &'static str,
    key: String,
    /// The entry as it will read; none for a fresh budget.
    entry: Option<Rebuild>,
}

impl From<Finding> for Costed {
    fn from(finding: Finding) -> Self {
        Self { finding, cost: None }
    }
}

impl Costed {
    /// The same with another finding.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Finding) -> Finding) -> Self {
        Self { finding: change(self.finding), cost: self.cost }
    }
    /// … and one more rebuild of the seat is charged, for the pod with this uid.
    #[must_use]
    pub fn charge(self, seen: &Observed, seat: &Seat, uid: &str) -> Self {
        let vm = seen.set.status.vm_id_of(&seat.pod).unwrap_or_default();
        self.charge_lost(seen, seat, &Lost { uid: uid.to_owned(), vm: vm.to_owned(), given_up: false })
    }
    /// … and one more rebuild of the seat is charged, for its last pod.
    #[must_use]
    pub fn charge_lost(self, seen: &Observed, seat: &Seat, lost: &Lost) -> Self {
        let count = budget::count(seen, &seat.role).saturating_add(1).min(budget::MOST);
        let entry = Rebuild {
            count,
            last_deleted: Some(seen.now),
            uid: lost.uid.clone(),
            generation: Some(seen.set.generation),
            vm: lost.vm.clone(),
            given_up: false,
        };
        self.costs(seat, Some(entry))
    }
    /// … and the seat has a fresh budget, because an edit replaces its pod. Nothing is written where the edit itself says
    /// so; an older operator's entry does not say under which generation it was charged (CS-A4).
    #[must_use]
    pub fn fresh(self, seen: &Observed, seat: &Seat) -> Self {
        if budget::count(seen, &seat.role) > 0 { self.costs(seat, None) } else { self }
    }
    /// … and whatever was charged for the seat is over (D-18a, D-47).
    #[must_use]
    pub fn forgive(self, seen: &Observed, seat: &Seat) -> Self {
        if budget::rebuild(seen, &seat.role).is_some() { self.costs(seat, None) } else { self }
    }
    /// … and its pod is given up, which outlives pod and operator.
    #[must_use]
    pub fn give_up(self, seen: &Observed, seat: &Seat) -> Self {
        match budget::rebuild(seen, &seat.role).filter(|rebuild| !rebuild.given_up) {
            Some(rebuild) => self.costs(seat, Some(Rebuild { given_up: true, ..rebuild.clone() })),
            None => self,
        }
    }
    fn costs(mut self, seat: &Seat, entry: Option<Rebuild>) -> Self {
        self.cost = role_key(&seat.role).map(|(annotation, key)| Cost { annotation, key, entry });
        self
    }
}

/// The findings with what they cost: the first that costs anything wants the whole write, the others want the same one,
/// so that none of them is sent without it.
pub fn settle(seen: &Observed, all: Vec<Costed>) -> Vec<Finding> {
    let mut left = written(seen, all.iter().filter_map(|costed| costed.cost.as_ref()));
    let pay = |Costed { mut finding, cost }: Costed| {
        if cost.is_some() {
            let write = Change::PatchObject {
                annotations: std::mem::take(&mut left),
                resource_version: seen.set.resource_version.clone(),
            };
            finding.wants.insert(0, Want::Change(write));
        }
        finding
    };
    all.into_iter().map(pay).collect()
}

fn written<'a>(seen: &Observed, costs: impl Iterator<Item = &'a Cost>) -> BTreeMap<String, Option<String>> {
    let mut histories: BTreeMap<&str, Rebuilds> = BTreeMap::new();
    for cost in costs {
        let read: &Histories = &seen.set.rebuilds;
        let history = histories.entry(cost.annotation).or_insert_with(|| read.of(cost.annotation).clone());
        match &cost.entry {
            Some(rebuild) => {
                give_up_unreadable(history, &cost.key);
                history.put(&cost.key, rebuild.clone());
            }
            None => history.forget(&cost.key),
        }
    }
    let texts = histories.into_iter().filter_map(|(annotation, mut history)| {
        if annotation == keys::REBUILD_HISTORY {
            history.prune_slots(seen.set.spec.agent.replicas);
        } else {
            history.prune(|key| key == "main" || is_listed(seen, key));
        }
        Some((annotation.to_owned(), Some(history.write()?)))
    });
    texts.collect()
}

/// Only a history that an edit has forgiven comes to be charged (decision R21).
fn give_up_unreadable(history: &mut Rebuilds, key: &str) {
    if history.is_unreadable() {
        history.start_over();
    } else if history.of(key) == Charged::Unreadable {
        history.forget(key);
    }
}

fn is_listed(seen: &Observed, key: &str) -> bool {
    key.strip_prefix("toolbox/").is_some_and(|name| seen.set.spec.lists_toolbox(name))
}
