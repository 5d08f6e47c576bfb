//! The CocoonSet controller: one main agent, its sub-agents, its toolboxes.

pub mod absorb;
mod absorb_live;
pub mod answers;
pub mod budget;
pub mod concerns;
pub mod costs;
pub mod ended;
mod entries;
pub mod laws;
pub mod leaving;
pub mod left_behind;
pub mod names;
pub mod node;
pub mod observed;
mod quota;
pub mod rebuild;
pub mod recorded;
pub mod rolling;
pub mod rollout;
pub mod seat;
pub mod sitting;
pub mod standing;
pub mod status;
pub mod tags;
pub mod tally;
mod undone;

pub use absorb_live::is_terminating;

use super::action::{Attempt, Subject, Want};
use super::api::words::SetPhase;
use super::decide::{Concern, Gate, Observation};
use super::decision::{Decision, Finding, Report, Trouble};
use super::outcome::Outcome;
use super::pod::template::Identity;
use super::rule::{Because, Rule};
use concerns::{
    claim, failure, freshness, left_alone, main_agent, namespace, oddities, paused, stamp, sub_agents, teardown,
    toolboxes,
};
use observed::Observed;

impl Observation for Observed {
    type Phase = SetPhase;

    /// In the order an operator would think of them. Later capabilities have their place: what the user wants asleep or
    /// awake (suspend, release, migrate, wake, unsuspend) comes between `left_alone`, which it will replace, and
    /// `failure`, so that it is judged before failure is (D-01, D-02).
    const CONCERNS: &'static [Concern<Self>] = &[
        Concern { name: "freshness", judge: freshness::judge },
        Concern { name: "paused", judge: paused::judge },
        Concern { name: "teardown", judge: teardown::judge },
        Concern { name: "namespace", judge: namespace::judge },
        Concern { name: "claim", judge: claim::judge },
        Concern { name: "stamp", judge: stamp::judge },
        Concern { name: "left-alone", judge: left_alone::judge },
        Concern { name: "oddities", judge: oddities::judge },
        Concern { name: failure::NAME, judge: failure::judge },
        Concern { name: "main", judge: main_agent::judge },
        Concern { name: "sub-agents", judge: sub_agents::judge },
        Concern { name: "toolboxes", judge: toolboxes::judge },
    ];

    fn subject(&self) -> Subject {
        Self::subject(self)
    }
    fn gate(&self, want: &Want) -> Gate {
        answers::gate(self, want)
    }
    fn publish(&self, report: Report<SetPhase>, troubles: &[Trouble]) -> Option<Finding> {
        status::publish(self, report, troubles)
    }
    fn absorb(&mut self, attempt: &Attempt, outcome: &Outcome) {
        absorb::absorb(self, attempt, outcome);
    }
    fn is_muted(&self) -> bool {
        self.namespace_is_going()
    }
    fn take_in(&mut self, want: &Want, attempt: &Attempt, outcome: &Outcome) -> bool {
        if let Want::Change(change) = want {
            let undone = undone::take_in(self, change, attempt, outcome);
            absorb::note_pruned(self, change, outcome);
            return undone;
        }
        absorb::absorb(self, attempt, outcome);
        false
    }
    fn suppose(&mut self, want: &Want) -> bool {
        absorb::suppose(self, want)
    }
    fn broken_law(&self, decision: &Decision) -> Option<Because> {
        laws::broken(self, decision)
    }
}

impl Observed {
    /// Whose pods these are.
    pub fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: &self.set.namespace,
            set: &self.set.name,
            uid: &self.set.uid,
            generation: self.set.generation,
        }
    }
}

/// Every rule of this controller, file by file in the order of the concerns.
pub const RULES: &[&[&Rule]] = &[
    freshness::RULES,
    paused::RULES,
    teardown::RULES,
    left_behind::RULES,
    namespace::RULES,
    claim::RULES,
    stamp::RULES,
    left_alone::RULES,
    oddities::RULES,
    rebuild::RULES,
    recorded::RULES,
    main_agent::RULES,
    sub_agents::RULES,
    toolboxes::RULES,
    seat::RULES,
    rollout::RULES,
    rolling::RULES,
    sitting::RULES,
    answers::RULES,
    status::RULES,
];
