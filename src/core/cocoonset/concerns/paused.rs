//! Hands off (decision R30).

use crate::core::api::condition::Condition;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::{Observed, SetFacts};
use crate::core::contract::keys;
use crate::core::decision::{Finding, Report, Verdict};
use crate::core::oddity::Oddity;
use crate::rules;

rules! {
    /// Touch nothing of a set that a person has paused: no pod, no tag, no finalizer, no question; only the condition
    /// Progressing says so. Before everything else that would act, deletion included: whoever pauses a set wants to look
    /// at it as it is.  (R30)
    HANDS_OFF = "paused/hands-off";
    /// Say that a deletion waits until the pause is over: the finalizer holds the set meanwhile.  (R30)
    DELETION_WAITS = "paused/deletion-waits";
}

/// Reason of Progressing=False.
pub const REASON: &str = "Paused";

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    if !is_paused(&seen.set) {
        return Verdict::pass("not paused");
    }
    let held = seen.set.deleting.is_some() && seen.set.claims() > 0;
    let (rule, message) = if held {
        (&DELETION_WAITS, format!("it is being deleted, and waits: annotation {} is \"true\"", keys::PAUSED))
    } else {
        (&HANDS_OFF, format!("annotation {} is \"true\": nothing is done", keys::PAUSED))
    };
    // What is being deleted and not held is as good as gone, and a namespace that goes takes no news of it (R7).
    let silent = !held && (seen.set.deleting.is_some() || seen.namespace_is_going());
    let report = if silent {
        Report::Silent
    } else {
        Report::Only(Box::new(Condition::new("Progressing", false, REASON, &message, seen.set.generation)))
    };
    Verdict::rest(Finding::of(rule, message).stop(), report)
}

/// Only `true` pauses.
pub fn is_paused(set: &SetFacts) -> bool {
    set.annotation(keys::PAUSED) == Some("true")
}

/// A value that is neither yes nor no: somebody may believe the set to be paused.
pub fn garbled(set: &SetFacts) -> Option<Oddity> {
    let value = set.annotation(keys::PAUSED).filter(|value| !["true", "false"].contains(value))?;
    let shown = crate::core::oddity::excerpt(value, 40);
    Some(Oddity::corrupt(keys::PAUSED, format!("reads {shown:?}, and only \"true\" pauses: the set is not paused")))
}
