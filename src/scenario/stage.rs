//! What a story is played on: a cluster that steps change and claims read, and an operator that somebody drives.

use super::happenings::Happening;
use super::realm::Realm;
use crate::core::control::kinds::Kind;
use jiff::SignedDuration;
use std::time::Duration;

/// Something that happens to the operator rather than to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorEvent {
    /// It starts with empty memory.
    Start,
    /// It stops.
    Stop,
    /// It is killed, and gives nothing back.
    Kill,
    /// It does not reach the API server, or does again.
    CutOff(bool),
    /// It dies after so many further calls, and starts again after this long.
    DieAfter(u32, Duration),
    /// What it sees of a kind stands still, or goes on.
    Lag(Kind, bool),
    /// Its watch of a kind is broken, or is back.
    Gap(Kind, bool),
    /// A second operator starts or stops.
    Second(bool),
    /// Its wall clock jumps.
    Jump(SignedDuration),
}

/// Settled: nothing is due for this long.
pub const QUIET: Duration = Duration::from_secs(600);
/// A story that has not settled after this long is told so, and goes on.
const LONGEST: Duration = Duration::from_secs(1_800);

/// A place where stories are played. Time is counted since the story's start.
pub trait Stage {
    /// Its cluster.
    type Realm: Realm;
    /// Looks at the cluster, or changes it as a person or a fault would.
    fn with<R>(&mut self, act: impl FnOnce(&mut Self::Realm) -> R) -> R;
    /// Something happens to the operator.
    fn operator(&mut self, event: OperatorEvent);
    /// What time it is.
    fn now(&self) -> Duration;
    /// When something is due next, by anybody.
    fn next_due(&mut self) -> Option<Duration>;
    /// The same but for the lease, which is renewed for ever.
    fn next_work(&mut self) -> Option<Duration>;
    /// Lets everything happen that is due up to this time. Steps themselves take no time.
    fn run_until(&mut self, at: Duration);
    /// Lets everything happen that is due, until nothing is for long.
    fn settle(&mut self) {
        let start = self.now();
        self.run_until(start);
        while let Some(due) = self.next_work() {
            if due > self.now().saturating_add(QUIET) || due > start.saturating_add(LONGEST) {
                return;
            }
            self.run_until(due.max(self.now().saturating_add(Duration::from_millis(1))));
        }
    }
    /// This step was a wait, or settling, and is over. A stage whose time is real may let more of it pass, until all that the
    /// next step builds on has happened.
    fn waited(&mut self, _step: usize, _settled: bool) {}
    /// What happened since the last call.
    fn take_happenings(&mut self) -> Vec<Happening>;
}
