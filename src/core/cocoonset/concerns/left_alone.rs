//! In a state that this version does not know: touch nothing.

use super::oddities;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::standing::is_kept;
use crate::core::contract::keys;
use crate::core::contract::lifecycle::State;
use crate::core::decision::{Finding, Report, Verdict};
use crate::core::pod::facts::PodFacts;
use crate::rules;

rules! {
    /// Leave a set alone that is suspended, released, waking or migrating, or was, or has a CocoonHibernation on one of
    /// its pods: to this version "no pod" would mean a fresh boot over a snapshot. Only finalizer, stamp and deletion
    /// are done to it.  (D-81)
    UNSUPPORTED = "left-alone/unsupported";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let Some(why) = reason(seen) else { return Verdict::pass("no state that this version does not know") };
    let message = format!("{why}, which this version does not handle: the set is left alone");
    let mut findings = vec![Finding::of(&UNSUPPORTED, why).trouble("Unsupported", message).stop()];
    findings.extend(oddities::corrupt(seen));
    Verdict::Rest { findings, report: Report::Keep }
}

/// The mark of a restore stays for as long as the pod; its wake is over once the VM was up. From then on a probe that
/// fails is no wake, and what the node agent calls `ready` it has brought up, whatever its probe says (contract 2.2).
fn is_waking(seen: &Observed, pod: &PodFacts) -> bool {
    let was_up = pod.ready || pod.lifecycle.state == State::Ready || seen.memory.woken.contains(pod.uid.as_str());
    pod.restore && !was_up
}

fn reason(seen: &Observed) -> Option<String> {
    let set = &seen.set;
    if set.spec.suspend {
        return Some("spec.suspend is true".to_owned());
    }
    if let Some(phase) = set.status.phase.as_ref().filter(|phase| is_kept(phase)) {
        return Some(format!("status.phase is {phase}"));
    }
    if let Some(pod) = seen.pods.values().find(|pod| pod.hibernate) {
        return Some(format!("{} is marked to hibernate", pod.name));
    }
    if let Some(pod) = seen.pods.values().find(|pod| is_waking(seen, pod)) {
        return Some(format!("{} is being restored from a snapshot", pod.name));
    }
    if let Some(key) = set.hint() {
        return Some(format!("annotation {key} is set"));
    }
    if set.records().is_unreadable() {
        return Some(format!("annotation {} cannot be read, and may say that VM state is saved", keys::VM_RECORDS));
    }
    if !set.records().is_empty() {
        return Some(format!("annotation {} says that VM state lives in the registry", keys::VM_RECORDS));
    }
    seen.hibernations.iter().next().map(|pod| format!("a CocoonHibernation targets {pod}"))
}
