//! Toolboxes, by name: extra, missing, failed, drifted.

use super::{main_agent, sub_agents};
use crate::core::api::cocoonset::Toolbox;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::costs::{self, Costed};
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::recorded;
use crate::core::cocoonset::seat::{self, Occupant, Seat};
use crate::core::cocoonset::sitting::{self, Sitting};
use crate::core::contract::names::Role;
use crate::core::decision::{Finding, Verdict};
use crate::core::oddity::many;
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::{Boot, PodTemplate, wanted_toolbox};
use crate::rules;

rules! {
    /// Delete toolboxes that the spec no longer lists, after their names are written down; where the pod is gone already,
    /// the name alone: its tags are owed still.  (CS-B5, D-07, R7)
    REMOVE = "toolboxes/remove";
    /// Create a missing toolbox. It does not depend on the main agent.  (CS-B4, D-67)
    CREATE = "toolboxes/create";
    /// Wait for a toolbox to be Ready.
    AWAIT_READY = "toolboxes/await-ready";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let mut findings: Vec<Costed> = remove(seen).into_iter().map(Costed::from).collect();
    let mut sitting = Vec::new();
    for toolbox in seen.set.spec.creatable_toolboxes() {
        let Some(seat) = seat(seen, toolbox) else { continue };
        let wanted = wanted(seen, toolbox);
        match Occupant::of(seen, &seat) {
            Occupant::Here(pod) => {
                sitting.push(Sitting::of(seat, pod, wanted));
            }
            Occupant::Nobody(step) => findings.push(seat::fill(seen, &seat, step, &wanted, &CREATE)),
        }
    }
    findings.extend(sitting.iter().flat_map(|at| at.tend(seen, &AWAIT_READY)));
    findings.extend(replace_one(seen, &sitting));
    // The last of all, and nothing that a set on its way up should wait for.
    if main_agent::settled(seen).is_some() {
        findings.extend(recorded::settle(seen).into_iter().map(Costed::from));
    }
    if findings.is_empty() {
        return Verdict::pass(many(
            seen.set.spec.toolboxes.len(),
            "toolbox is wanted, and there",
            "toolboxes are wanted, and there",
        ));
    }
    Verdict::Act(costs::settle(seen, findings))
}

/// The seat of a toolbox.
pub fn seat(seen: &Observed, toolbox: &Toolbox) -> Option<Seat> {
    Seat::of(seen, Role::Toolbox(toolbox.name.clone()), toolbox.is_managed())
}

/// The pod that the spec wants there.
pub fn wanted(seen: &Observed, toolbox: &Toolbox) -> PodTemplate {
    wanted_toolbox(&seen.set.spec, &seen.identity(), toolbox, Boot::Fresh)
}

fn remove(seen: &Observed) -> Vec<Finding> {
    let surplus = |pod: &&PodFacts| matches!(seen.role_of(pod), Role::Toolbox(_)) && seen.is_surplus(pod);
    let extra: Vec<&PodFacts> = seen.pods.values().filter(|pod| !pod.deleting).filter(surplus).collect();
    let because = many(extra.len(), "toolbox is not in the spec", "toolboxes are not in the spec");
    let gone = "a toolbox that the spec no longer lists is gone";
    let strays = sub_agents::remember_strays(seen, &REMOVE, gone, |vm| sub_agents::was_toolbox(seen, vm));
    let mut findings: Vec<Finding> = strays.into_iter().collect();
    findings.extend(sub_agents::delete_after_remembering(seen, &REMOVE, &because, &extra));
    findings
}

/// Decision R20: toolboxes last, one at a time.
fn replace_one(seen: &Observed, sitting: &[Sitting<'_>]) -> Option<Costed> {
    let next = sitting.iter().find(|at| at.is_outdated(seen))?;
    let complete = sitting.len() >= seen.set.spec.creatable_toolboxes().count();
    if main_agent::settled(seen).is_none() || sub_agents::are_unsettled(seen) {
        return Some(next.await_turn("the agents have to be Ready and as wanted").into());
    }
    if !sitting::others_are_ready(sitting) || !complete {
        return Some(next.await_turn("the other toolboxes have to be Ready").into());
    }
    Some(next.replace(seen))
}
