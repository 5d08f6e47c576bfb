//! The main agent has failed: rebuilt within its budget, left to its work, or given up. The others go on meanwhile.

use super::main_agent;
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::{costs, rebuild, sitting};
use crate::core::decision::Verdict;
use crate::core::pod::drift::drift_of;

/// Its name in the trace.
pub const NAME: &str = "failure";

/// The rules it speaks with are those of `rebuild/…`, shared with sub-agents and toolboxes.  (CS-F, D-67)
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let (Some(seat), Some(main)) = (main_agent::seat(seen), seen.main()) else {
        return Verdict::pass("there is no main agent");
    };
    if main.deleting || !rebuild::is_due(seen, &seat, main) || sitting::is_misnamed(main) {
        return Verdict::pass("the main agent has not failed");
    }
    let wanted = main_agent::wanted(seen);
    Verdict::Act(costs::settle(seen, vec![rebuild::failed(seen, &seat, main, &wanted, &drift_of(&wanted, main))]))
}
