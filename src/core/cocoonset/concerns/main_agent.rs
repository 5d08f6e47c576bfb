//! The main agent: missing, drifted, failed, or on its way.

use super::failure;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::costs::{self, Costed};
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::seat::{self, Occupant, Seat};
use crate::core::cocoonset::{rebuild, rollout, sitting};
use crate::core::contract::names::Role;
use crate::core::decision::Verdict;
use crate::core::pod::drift::{drift_of, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::{Boot, PodTemplate, wanted_main};
use crate::rules;

rules! {
    /// Create the main agent when there is none.  (CS-M2)
    CREATE = "main/create";
    /// Wait for the main agent to be Ready: sub-agents fork from a live one.  (CS-M3)
    AWAIT_READY = "main/await-ready";
}

/// The seat of the main agent.
pub fn seat(seen: &Observed) -> Option<Seat> {
    Seat::of(seen, Role::Main, true)
}

/// The pod that the spec wants there.
pub fn wanted(seen: &Observed) -> PodTemplate {
    wanted_main(&seen.set.spec, &seen.identity(), Boot::Fresh, None)
}

/// The main agent's pod, if it is there, Ready, and as wanted: then others may follow it.
pub fn settled(seen: &Observed) -> Option<&PodFacts> {
    let main = ready(seen)?;
    (!must_recreate(&drift_of(&wanted(seen), main))).then_some(main)
}

/// The main agent's pod, if it is there and Ready: then others may fork from it.
pub fn ready(seen: &Observed) -> Option<&PodFacts> {
    seen.main().filter(|main| !main.deleting && main.ready && !main.is_terminal())
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let Some(seat) = seat(seen) else { return Verdict::pass("it has no name") };
    let wanted = wanted(seen);
    match Occupant::of(seen, &seat) {
        Occupant::Here(pod) => here(seen, &seat, pod, &wanted),
        Occupant::Nobody(step) => {
            Verdict::Act(costs::settle(seen, vec![seat::fill(seen, &seat, step, &wanted, &CREATE)]))
        }
    }
}

fn here(seen: &Observed, seat: &Seat, pod: &PodFacts, wanted: &PodTemplate) -> Verdict<SetPhase> {
    let drifts = drift_of(wanted, pod);
    let mut findings: Vec<Costed> = rollout::in_place(pod, wanted, &drifts).into_iter().map(Costed::from).collect();
    findings.extend(sitting::troubles(seen, pod, wanted).into_iter().map(Costed::from));
    findings.extend(rebuild::recovered(pod).map(Costed::from));
    if sitting::is_misnamed(pod) {
        return Verdict::Act(costs::settle(seen, findings));
    }
    if rollout::is_misplaced(pod, wanted) {
        return Verdict::Act(vec![rollout::follow(pod, wanted)]);
    }
    if rebuild::is_due(seen, seat, pod) {
        return if findings.is_empty() {
            Verdict::pass(format!("{} failed; see {}", pod.name, failure::NAME))
        } else {
            Verdict::Act(costs::settle(seen, findings))
        };
    }
    if must_recreate(&drifts) {
        findings.push(rollout::replace(seen, seat, pod, wanted, &drifts));
    } else if !pod.ready {
        findings.push(rebuild::await_ready(seen, seat, pod, &AWAIT_READY).into());
    } else {
        findings.extend(rebuild::forgive(seen, seat, pod));
    }
    if findings.is_empty() {
        Verdict::pass(format!("{} is Ready and as wanted", pod.name))
    } else {
        Verdict::Act(costs::settle(seen, findings))
    }
}
