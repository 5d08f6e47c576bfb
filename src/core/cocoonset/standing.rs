//! Where a set stands, recognised afresh from what is seen: what is not declared by a rule is derived from this, and so
//! is the picture of its phases.

use super::observed::Observed;
use super::status::is_complete;
use crate::core::api::words::SetPhase;
use crate::core::pod::facts::PodFacts;

macro_rules! standings {
    ($( $(#[doc = $doc:literal])+ $name:ident: $words:literal => $phase:ident, )+) => {
        /// What is seen of a set, as far as its phase goes (CS-P4, and Failed where the main agent is at its end).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Standing { $( $(#[doc = $doc])+ $name, )+ }

        impl Standing {
            /// Every one there is, in the order in which they are tried.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The phase that says it.
            pub const fn phase(self) -> SetPhase {
                match self { $(Self::$name => SetPhase::$phase),+ }
            }
            /// In words.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words),+ }
            }
        }
    };
}

standings! {
    /// There is none, or it is on its way out.
    NoMain: "there is no main agent" => Pending,
    /// Its pod is Failed or Succeeded, or its node agent has said that it failed.
    MainAtItsEnd: "the main agent is at its end" => Failed,
    /// Its node agent goes on trying: a phase that came and went with each try would be an event each time.
    MainFailing: "the main agent has failed and is tried again" => Failed,
    /// It is coming up.
    MainNotReady: "the main agent is not Ready" => Pending,
    /// Everything that is desired is Ready.
    Complete: "all desired agents and toolboxes are Ready" => Running,
    /// The main agent is Ready, and something else is not.
    Incomplete: "the main agent is Ready, something else is not" => Scaling,
}

impl Standing {
    /// What is seen.
    pub fn of(seen: &Observed) -> Self {
        match seen.main().filter(|main| !main.deleting) {
            None => Self::NoMain,
            Some(main) if main.is_terminal() => Self::MainAtItsEnd,
            Some(main) if !main.ready && is_failing(seen, main) => Self::MainFailing,
            Some(main) if !main.ready => Self::MainNotReady,
            Some(_) if is_complete(seen) => Self::Complete,
            Some(_) => Self::Incomplete,
        }
    }
}

/// It failed and was not Ready since. Of a pod that this process did not see from the start, the phase of the set says so
/// itself: it would come and go with a restart of the operator otherwise.
fn is_failing(seen: &Observed, pod: &PodFacts) -> bool {
    let said = seen.set.status.phase == Some(SetPhase::Failed);
    seen.memory.watched.get(pod.uid.as_str()).map_or(said, |watched| watched.failing)
}

/// True for a phase that this version does not act on: it is kept, whatever is seen (D-81).
pub const fn is_kept(phase: &SetPhase) -> bool {
    match phase {
        SetPhase::Suspending | SetPhase::Suspended | SetPhase::Waking | SetPhase::Migrating | SetPhase::Unknown(_) => {
            true
        }
        SetPhase::Pending | SetPhase::Running | SetPhase::Scaling | SetPhase::Failed => false,
    }
}
