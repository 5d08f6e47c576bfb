//! The faults of the campaign: what can become of one call.

use crate::life_common::state::TOUCHED;
use crate::life_common::{Sent, pod_path, set_path};
use cocoon_operator::core::action::ActionKind;
use cocoon_operator::core::wire::{MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::{OperatorEvent, Stage};
use cocoon_operator::sim::faults::{Fault as WireFault, Pattern, What, answer};
use cocoon_operator::sim::world::OPERATOR;
use serde_json::json;
use std::time::Duration;

/// How long an operator that died is away, where it is.
const AWAY: Duration = Duration::from_secs(10);

/// Calls more than without a fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Writes of all but the status.
    pub changes: isize,
    /// Writes of the status: another one wherever pods now become ready at different times.
    pub statuses: isize,
    pub reads: isize,
}

impl Cost {
    /// What these calls cost.
    pub fn of(calls: &[Sent]) -> Self {
        let mut cost = Self::default();
        for call in calls {
            match (call.writes, call.action == ActionKind::PatchStatus) {
                (false, _) => cost.reads += 1,
                (true, true) => cost.statuses += 1,
                (true, false) => cost.changes += 1,
            }
        }
        cost
    }
    /// How much more that is than this.
    pub fn beyond(self, other: Self) -> Self {
        Self {
            changes: self.changes - other.changes,
            statuses: self.statuses - other.statuses,
            reads: self.reads - other.reads,
        }
    }
    /// Each of the larger ones.
    pub fn max(self, other: Self) -> Self {
        Self {
            changes: self.changes.max(other.changes),
            statuses: self.statuses.max(other.statuses),
            reads: self.reads.max(other.reads),
        }
    }
    pub fn is_within(self, bound: Self) -> bool {
        self.changes <= bound.changes && self.statuses <= bound.statuses && self.reads <= bound.reads
    }
    /// Every write.
    pub fn writes(self) -> isize {
        self.changes + self.statuses
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:+} changes {:+} statuses {:+} reads", self.changes, self.statuses, self.reads)
    }
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    CrashBefore,
    CrashAfter,
    /// The same, and it is away for a while: it misses what happens meanwhile.
    CrashAndStay,
    Conflict,
    /// Another writer is faster: what is written to moves on right before.
    Overtaken,
    TimeoutBefore,
    TimeoutAfter,
    ServerError,
    Throttled,
}

impl Fault {
    pub const ALL: [Self; 9] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::CrashAndStay,
        Self::Conflict,
        Self::Overtaken,
        Self::TimeoutBefore,
        Self::TimeoutAfter,
        Self::ServerError,
        Self::Throttled,
    ];

    /// How many calls more than without it. What rests on a fresh look looks again, and in a teardown that is a look at
    /// all pods and at every tag.
    pub fn may_cost(self, call: &Sent) -> Cost {
        match self {
            // It has forgotten when it last wrote the status, what it had asked, and that it saw VMs end: each node is read.
            Self::CrashBefore | Self::CrashAfter | Self::CrashAndStay => Cost { changes: 0, statuses: 2, reads: 10 },
            Self::Conflict | Self::Overtaken => Cost { changes: 1, statuses: 1, reads: 1 },
            Self::TimeoutBefore | Self::TimeoutAfter | Self::ServerError | Self::Throttled => {
                let looks = call.verb.is_registry() || call.action == ActionKind::RemoveFinalizer;
                Cost { changes: 1, statuses: 2, reads: if looks { 16 } else { 2 } }
            }
        }
    }

    /// Arranges for it to happen to this call, the `nth` from now; false where this call cannot meet it.
    pub fn arrange(self, stage: &mut InMemory, nth: usize, call: &Sent) -> bool {
        let what = match self {
            Self::CrashBefore => return dies(stage, nth - 1, Duration::ZERO),
            Self::CrashAfter => return dies(stage, nth, Duration::ZERO),
            Self::CrashAndStay => return dies(stage, nth, AWAY),
            Self::Conflict => conflict(call).map(What::Answer),
            Self::Overtaken => overtaken(call),
            Self::TimeoutBefore => Some(What::TimeoutBefore),
            Self::TimeoutAfter => Some(What::TimeoutAfter),
            Self::ServerError => said("500", call).map(What::Answer),
            Self::Throttled => said("429", call).map(What::Answer),
        };
        let Some(what) = what else { return false };
        let any = Pattern { user: Some(OPERATOR.to_owned()), ..Pattern::default() };
        stage.world.faults.add(WireFault::new(any, what).nth(nth as u64));
        true
    }
}

fn dies(stage: &mut InMemory, calls: usize, down: Duration) -> bool {
    let calls = u32::try_from(calls).expect("few calls");
    stage.operator(OperatorEvent::DieAfter(calls, down));
    true
}

/// Somebody annotates what this write is about.
fn overtaken(call: &Sent) -> Option<What> {
    let path = match call.action {
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus => {
            set_path()
        }
        ActionKind::PatchPod | ActionKind::DeletePod => pod_path(&call.attempt.target),
        ActionKind::CreatePod
        | ActionKind::DeleteSnapshot
        | ActionKind::ProbeSnapshot
        | ActionKind::ReadLive
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => return None,
    };
    let touch = json!({ "metadata": { "annotations": { TOUCHED: "yes" } } });
    Some(What::Overtaken(Box::new(Request::new(Method::Patch, path).with_body(MERGE_PATCH, touch))))
}

fn said(name: &str, call: &Sent) -> Option<Reply> {
    answer(name, call.verb, call.resource, &call.object())
}

/// What this write is answered where somebody else was faster.
pub fn conflict(call: &Sent) -> Option<Reply> {
    let name = match call.action {
        ActionKind::CreatePod => "AlreadyExists",
        ActionKind::DeletePod => "PreconditionFailed",
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer => "JsonPatchTest",
        ActionKind::PatchPod | ActionKind::PatchObject | ActionKind::PatchStatus => "Conflict",
        ActionKind::DeleteSnapshot
        | ActionKind::ProbeSnapshot
        | ActionKind::ReadLive
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => return None,
    };
    said(name, call)
}
