//! What the creation of a set costs in calls, until it is quiet and for an hour after.

use super::{SECOND, Sent, create_set, last_deed, run_for, sent, stage, world, wrongs};
use cocoon_operator::core::action::ActionKind;
use cocoon_operator::scenario::stage::Stage;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
/// Every creation is over by then.
const LONG: Duration = Duration::from_secs(300);

/// The calls of one creation, by what they are for.
#[derive(Clone, Debug, Default)]
pub struct Creation {
    pub creates: usize,
    pub finalizers: usize,
    pub patches: usize,
    pub probes: usize,
    pub reads: usize,
    /// Anything that a creation has no need of: deletes, dry runs, annotations of the set.
    pub others: usize,
    /// When the status was written.
    pub statuses: Vec<Duration>,
    /// How long it took until nobody did anything any more.
    pub took: Duration,
    /// Writes in the hour after that, and reads.
    pub writes_after: usize,
    pub reads_after: usize,
    /// Passes given up, and errors.
    pub wrongs: Vec<String>,
}

impl Creation {
    /// Every write.
    pub fn writes(&self) -> usize {
        self.creates + self.finalizers + self.patches + self.others + self.statuses.len()
    }

    fn count(&mut self, call: &Sent, start: Duration) {
        match call.action {
            ActionKind::CreatePod if !call.attempt.dry_run => self.creates += 1,
            ActionKind::AddFinalizer => self.finalizers += 1,
            ActionKind::PatchPod => self.patches += 1,
            ActionKind::PatchStatus => self.statuses.push(call.at - start),
            ActionKind::ProbeSnapshot => self.probes += 1,
            ActionKind::ReadLive => self.reads += 1,
            ActionKind::CreatePod
            | ActionKind::RemoveFinalizer
            | ActionKind::DeletePod
            | ActionKind::PatchObject
            | ActionKind::DeleteSnapshot
            | ActionKind::EmitEvent
            | ActionKind::Await
            | ActionKind::Stop => self.others += 1,
        }
    }
}

/// Creates a set of 1 + `replicas` + `toolboxes` pods, and lets an hour pass after it is quiet.
pub fn creation(replicas: u32, toolboxes: usize) -> Creation {
    let mut stage = stage(world());
    let start = stage.now();
    let names: Vec<String> = (1..=toolboxes).map(|at| format!("tools-{at}")).collect();
    create_set(&mut stage.world, replicas, &names.iter().map(String::as_str).collect::<Vec<_>>(), "main-only");
    run_for(&mut stage, LONG);
    let mut happenings = stage.take_happenings();
    let mut counted = Creation { took: last_deed(&happenings) - start, ..Creation::default() };
    for call in sent(&happenings) {
        counted.count(&call, start);
    }
    stage.run_until(start + counted.took.max(LONG) + HOUR);
    let after = stage.take_happenings();
    let late = sent(&after);
    counted.writes_after = late.iter().filter(|call| call.writes).count();
    counted.reads_after = late.len() - counted.writes_after;
    happenings.extend(after);
    counted.wrongs = wrongs(&happenings);
    counted
}

/// The most status writes that so much time is good for: one a second, and one at the end.
pub fn most_statuses(took: Duration) -> usize {
    usize::try_from(took.as_millis().div_ceil(SECOND.as_millis())).unwrap_or(usize::MAX) + 1
}
