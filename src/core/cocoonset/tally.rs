//! What is counted about a set, whoever counts it.

use super::observed::Observed;
use crate::core::api::words::SetPhase;
use crate::core::contract::lifecycle::State;

/// The phase that the set says it is in, where its main agent is newly found to have failed: once for each incarnation
/// until it is Ready again, whether the failure is told in the status or its pod replaced before (D-52).
pub fn new_failure(seen: &mut Observed) -> Option<SetPhase> {
    let phase = seen.set.status.phase.clone().unwrap_or(SetPhase::Pending);
    let main = seen.main().filter(|main| !main.deleting && seen.set.deleting.is_none())?;
    let (uid, ready) = (main.uid.to_string(), main.ready);
    if main.lifecycle.state == State::Failed {
        // The first look of a process at a set that is Failed already finds what another has counted.
        let counted = seen.memory.failed.replace(uid.clone());
        return counted.map_or(phase != SetPhase::Failed, |counted| counted != uid).then_some(phase);
    }
    if ready {
        seen.memory.failed = Some(String::new());
    }
    None
}
