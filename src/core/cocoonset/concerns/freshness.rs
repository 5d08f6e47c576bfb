//! The cache has not shown our own writes yet.

use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::{answers, undone};
use crate::core::decision::{Finding, Report, Verdict};
use crate::rules;
use std::time::Duration;

rules! {
    /// Do nothing more about a set that a live answer says is gone. Without it a stale cache brings back what a user
    /// has deleted.
    GONE = "freshness/gone";
    /// Wait until the watches have shown our own writes. Without it a stale cache leads to second creates, second
    /// deletes, and rebuilds that are counted twice.  (D-11, D-18b, D-52)
    AWAIT_OWN_WRITES = "freshness/await-own-writes";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    if seen.live.object_gone {
        return Verdict::rest(Finding::of(&GONE, "a live answer says that it is gone").stop(), Report::Silent);
    }
    if seen.unseen.is_empty() {
        let told: Vec<Finding> = answers::unreadable(seen).into_iter().chain(undone::told(seen)).collect();
        return if told.is_empty() { Verdict::pass("nothing of ours is unseen") } else { Verdict::Act(told) };
    }
    let what = seen.unseen.join(", ");
    let finding = Finding::of(&AWAIT_OWN_WRITES, format!("the watch has not shown {what} yet"))
        .wait("the watch to show our own writes", Some(Duration::from_secs(30)));
    Verdict::rest(finding, Report::Silent)
}
