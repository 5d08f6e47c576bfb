//! Toolboxes, by name: extra, missing, failed, drifted.

use super::{main_agent, sub_agents};
use crate::core::api::cocoonset::Toolbox;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::seat::{self, Occupant, Seat};
use crate::core::cocoonset::{rebuild, rollout, sitting};
use crate::core::contract::names::Role;
use crate::core::decision::{Finding, Verdict};
use crate::core::pod::drift::{FieldDrift, drift_of, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::{Boot, PodTemplate, wanted_toolbox};
use crate::rules;

rules! {
    /// Delete toolboxes that the spec no longer lists, after their names are written down.  (CS-B5, D-07)
    REMOVE = "toolboxes/remove";
    /// Create a missing toolbox. It does not depend on the main agent.  (CS-B4, D-67)
    CREATE = "toolboxes/create";
    /// Wait for a toolbox to be Ready.
    AWAIT_READY = "toolboxes/await-ready";
}

/// A toolbox that is there, and how it differs.
struct Sitting<'a> {
    seat: Seat,
    pod: &'a PodFacts,
    wanted: PodTemplate,
    drifts: Vec<FieldDrift>,
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let mut findings: Vec<Finding> = remove(seen);
    let mut sitting = Vec::new();
    for toolbox in seen.set.spec.creatable_toolboxes() {
        let Some(seat) = seat(seen, toolbox) else { continue };
        let wanted = wanted(seen, toolbox);
        match Occupant::of(seen, &seat) {
            Occupant::Here(pod) => {
                let drifts = drift_of(&wanted, pod);
                sitting.push(Sitting { seat, pod, wanted, drifts });
            }
            Occupant::Nobody(step) => findings.push(seat::fill(seen, &seat, step, &wanted, &CREATE)),
        }
    }
    findings.extend(sitting.iter().flat_map(|at| tend(seen, at)));
    findings.extend(replace_one(seen, &sitting));
    if findings.is_empty() {
        return Verdict::pass(format!("{} toolboxes are wanted, and there", seen.set.spec.toolboxes.len()));
    }
    Verdict::Act(findings)
}

/// The seat of a toolbox.
pub fn seat(seen: &Observed, toolbox: &Toolbox) -> Option<Seat> {
    Seat::of(seen, Role::Toolbox(toolbox.name.clone()), toolbox.is_managed())
}

fn wanted(seen: &Observed, toolbox: &Toolbox) -> PodTemplate {
    wanted_toolbox(&seen.set.spec, &seen.identity(), toolbox, Boot::Fresh)
}

fn remove(seen: &Observed) -> Vec<Finding> {
    let surplus = |pod: &&PodFacts| matches!(seen.role_of(pod), Role::Toolbox(_)) && seen.is_surplus(pod);
    let extra: Vec<&PodFacts> = seen.pods.values().filter(|pod| !pod.deleting).filter(surplus).collect();
    let because = format!("{} toolboxes are not in the spec", extra.len());
    sub_agents::delete_after_remembering(seen, &REMOVE, &because, &extra)
}

fn tend(seen: &Observed, at: &Sitting<'_>) -> Vec<Finding> {
    let mut findings = rollout::in_place(at.pod, &at.wanted, &at.drifts);
    findings.extend(sitting::troubles(seen, at.pod, &at.wanted));
    if sitting::is_misnamed(at.pod) {
        return findings;
    }
    if rebuild::is_due(seen, &at.seat, at.pod) {
        findings.push(rebuild::failed(seen, &at.seat, at.pod, &at.wanted, &at.drifts));
    } else if !at.pod.ready && !must_recreate(&at.drifts) {
        findings.push(rebuild::await_ready(seen, &at.seat, at.pod, &AWAIT_READY));
    }
    findings
}

/// Decision R20: toolboxes last, one at a time.
fn replace_one(seen: &Observed, sitting: &[Sitting<'_>]) -> Option<Finding> {
    let drifted = |at: &&Sitting<'_>| {
        must_recreate(&at.drifts) && !rebuild::is_due(seen, &at.seat, at.pod) && !sitting::is_misnamed(at.pod)
    };
    let next = sitting.iter().find(drifted)?;
    let others_ready = sitting.iter().filter(|at| !must_recreate(&at.drifts)).all(|at| at.pod.ready);
    let complete = sitting.len() >= seen.set.spec.creatable_toolboxes().count();
    if main_agent::settled(seen).is_none() || sub_agents::are_unsettled(seen) {
        return Some(rollout::await_turn(next.pod, &next.drifts, "the agents have to be Ready and as wanted"));
    }
    if !others_ready || !complete {
        return Some(rollout::await_turn(next.pod, &next.drifts, "the other toolboxes have to be Ready"));
    }
    Some(rollout::replace(seen, &next.seat, next.pod, &next.wanted, &next.drifts))
}
