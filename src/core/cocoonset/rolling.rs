//! Whether pods are being replaced for an edit, and where that is written down before the first of them goes: in the
//! status, with the write that is made anyway. A process that finds a pod gone which nobody saw go knows by it whether an
//! earlier one may have deleted it; else it disappeared, and is charged (D-46).

use super::concerns::{main_agent, sub_agents, toolboxes};
use super::observed::Observed;
use super::status::desired_seats;
use crate::core::action::ActionKind;
use crate::core::api::condition::{self, Condition};
use crate::core::api::set_status::SetStatus;
use crate::core::contract::names::Role;
use crate::core::decision::Finding;
use crate::core::pod::drift::{drift_of, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::PodTemplate;
use crate::rules;
use std::collections::BTreeSet;
use std::time::Duration;

rules! {
    /// Say in the status that pods are being replaced before the first of them is deleted. An edit says so itself; without
    /// it an operator that starts anew would charge the rebuild budget for a pod that the one before had deleted. It is
    /// tried once, and holds nothing up.  (D-46, R8)
    TELL_FIRST = "rollout/tell-first";
}

/// The reason of Progressing meanwhile.
const REASON: &str = "RollingOut";

/// The condition that says so, where it is so.
pub fn condition(seen: &Observed, phase: &str) -> Option<Condition> {
    is_under_way(seen).then(|| Condition::new("Progressing", true, REASON, phase, seen.set.generation))
}

/// A pod has to make room for another; or one may have, and its seat is empty yet.
fn is_under_way(seen: &Observed) -> bool {
    let may_have = says_so(&seen.set.status) || is_edited(seen);
    // One template does for all sub-agents: what differs between them is no drift.
    let (main, sub) = (main_agent::wanted(seen), sub_agents::wanted(seen, &Role::SubAgent(1)));
    seen.pods.values().any(|pod| is_outdated(seen, pod, &main, &sub)) || (may_have && is_one_missing(seen))
}

fn is_outdated(seen: &Observed, pod: &PodFacts, main: &PodTemplate, sub: &PodTemplate) -> bool {
    let differs = |wanted: &PodTemplate| must_recreate(&drift_of(wanted, pod));
    match seen.role_of(pod) {
        Role::Main => differs(main),
        Role::SubAgent(_) => !seen.is_surplus(pod) && differs(sub),
        Role::Toolbox(name) => {
            let mut listed = seen.set.spec.creatable_toolboxes();
            listed
                .find(|toolbox| toolbox.name == name)
                .is_some_and(|toolbox| differs(&toolboxes::wanted(seen, toolbox)))
        }
        Role::Unknown => false,
    }
}

/// One that this process saw go by itself makes room for nobody.
fn is_one_missing(seen: &Observed) -> bool {
    let listed: BTreeSet<&str> = seen.set.status.pods_with_a_vm().collect();
    let disappeared = |pod: &str| seen.memory.vanished.get(pod).is_some_and(|gone| !gone.by_us);
    let is_missing = |pod: &str| listed.contains(pod) && !seen.pods.contains_key(pod) && !disappeared(pod);
    desired_seats(seen).iter().any(|seat| is_missing(&seat.pod))
}

fn is_edited(seen: &Observed) -> bool {
    seen.set.status.observed_generation != seen.set.generation
}

fn says_so(status: &SetStatus) -> bool {
    condition::find(&status.conditions, "Progressing").is_some_and(|condition| condition.reason == REASON)
}

/// Whether an earlier process of this operator may have deleted a pod that is gone: it says so, or cannot have said. Who
/// wrote a status without the condition Suspended was no such operator; and a pause hides what was said before.
pub fn may_have_deleted(seen: &Observed) -> bool {
    let conditions = &seen.set.status.conditions;
    let is_known = condition::find(conditions, "Suspended").is_some()
        && condition::find(conditions, "Progressing")
            .is_some_and(|said| said.reason != super::concerns::paused::REASON);
    !is_known || is_edited(seen) || says_so(&seen.set.status)
}

/// What a replacement waits for where the status does not say yet that there are any.
pub fn tell_first(seen: &Observed, because: &str) -> Option<Finding> {
    let mut attempts = seen.tried.iter().map(|(attempt, _)| attempt).chain(seen.memory.attempts.keys());
    if may_have_deleted(seen) || attempts.any(|attempt| attempt.action == ActionKind::PatchStatus) {
        return None;
    }
    let told = Finding::of(&TELL_FIRST, because.to_owned());
    Some(told.wait("the status to say that pods are replaced", Some(Duration::from_secs(1))))
}
