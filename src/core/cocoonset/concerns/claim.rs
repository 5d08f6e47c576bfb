//! Finalizer first.

use crate::core::action::Change;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::decision::{Finding, Report, Verdict};
use crate::rules;

rules! {
    /// Add our finalizer before anything else exists. Without it a set that is deleted early takes its pods along and
    /// leaves their tags behind.  (CS-N1, D-23, R9)
    ADD_FINALIZER = "claim/add-finalizer";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    if seen.set.claims() > 0 {
        return Verdict::pass("our finalizer is on it");
    }
    let mut finalizers = seen.set.finalizers.clone().unwrap_or_default();
    finalizers.push(keys::SET_FINALIZER.to_owned());
    let finding = Finding::of(&ADD_FINALIZER, "our finalizer is not on it")
        .change(Change::AddFinalizer { tested: seen.set.finalizers.clone(), finalizers });
    Verdict::rest(finding, Report::Keep)
}
