//! What counts as a reconcile error (decision R4): an object that *enters* a state in which it needs a person, and then
//! once an hour while it stays. Everything else is an outcome.

use crate::core::decision::{Decision, Trouble};
use crate::core::memory::Memory;
use std::collections::BTreeSet;
use std::time::Duration;

/// An object that stays in error is counted again after this long.
pub const COUNTED_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

/// What a pass came to: the label `result` of `controller_runtime_reconcile_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassResult {
    /// At rest until something changes.
    Success,
    /// A bug that was counted within the last hour: again after a backoff.
    Requeue,
    /// At rest, with another look after a delay that the core named.
    RequeueAfter,
    /// Counted as an error.
    Error,
}

impl PassResult {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Success, Self::Requeue, Self::RequeueAfter, Self::Error];
    /// As the label reads.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At rest, perhaps with a timer.
    Rested(Option<Duration>),
    /// Given up or caught in a panic: a bug.
    Bug,
}

/// The error that an object is in, and when it was last counted: reasons in order, joined by commas.
pub type Standing = Option<(String, Duration)>;

/// The reasons among these troubles that need a person.
pub fn reasons(troubles: &[Trouble]) -> BTreeSet<&str> {
    troubles.iter().filter(|trouble| trouble.error).map(|trouble| trouble.reason.as_ref()).collect()
}

/// The reasons that count as an error now: those that the object has entered, or all of them once an hour. A reason that
/// was told is not told again because another joins it.
pub type Counted = BTreeSet<String>;

/// Where the object stands after a pass that found these reasons, and which of them count now.
pub fn standing(before: &Standing, reasons: &BTreeSet<&str>, now: Duration) -> (Standing, Counted) {
    if reasons.is_empty() {
        return (None, Counted::new());
    }
    let owned = |reasons: BTreeSet<&str>| reasons.into_iter().map(str::to_owned).collect::<Counted>();
    let joined = reasons.iter().copied().collect::<Vec<_>>().join(",");
    let Some((known, counted)) = before else { return (Some((joined, now)), owned(reasons.clone())) };
    if now.saturating_sub(*counted) >= COUNTED_AGAIN_AFTER {
        return (Some((joined, now)), owned(reasons.clone()));
    }
    let known: BTreeSet<&str> = known.split(',').collect();
    let entered: Counted = owned(reasons.difference(&known).copied().collect());
    (Some((joined, if entered.is_empty() { *counted } else { now })), entered)
}

/// Takes the end of a pass at rest into memory, and says what of it counts as an error. A pass that waits for its own
/// writes to show has not looked at what else is wrong: an error that stood stands.
pub fn rested(memory: &mut Memory, decision: &Decision, behind: bool, now: Duration) -> Counted {
    let found = reasons(&decision.troubles);
    if behind && found.is_empty() {
        return Counted::new();
    }
    let (after, counts) = standing(&memory.error, &found, now);
    memory.error = after;
    counts
}

/// The troubles that count as an error now.
pub fn counting<'a>(decision: &'a Decision, counted: &'a Counted) -> impl Iterator<Item = &'a Trouble> {
    decision.troubles.iter().filter(|trouble| trouble.error && counted.contains(trouble.reason.as_ref()))
}

/// What the pass came to.
pub const fn result(ending: Ending, counted: bool) -> PassResult {
    match (counted, ending) {
        (true, Ending::Rested(_) | Ending::Bug) => PassResult::Error,
        (false, Ending::Bug) => PassResult::Requeue,
        (false, Ending::Rested(Some(_))) => PassResult::RequeueAfter,
        (false, Ending::Rested(None)) => PassResult::Success,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn walk(passes: &[(u32, &[&'static str])]) -> Vec<bool> {
        told(passes).iter().map(|told| !told.is_empty()).collect()
    }

    fn told(passes: &[(u32, &[&'static str])]) -> Vec<String> {
        let mut at = None;
        let mut counted = Vec::new();
        for (minute, reasons) in passes {
            let (next, counts) = standing(&at, &reasons.iter().copied().collect(), MINUTE * *minute);
            at = next;
            counted.push(counts.into_iter().collect::<Vec<_>>().join(","));
        }
        counted
    }

    #[test]
    fn a_reason_is_not_told_again_because_another_joins_it() {
        let passes: [(u32, &[&'static str]); 3] =
            [(0, &["Corrupt"]), (1, &["Corrupt", "NameConflict"]), (61, &["Corrupt", "NameConflict"])];
        assert_eq!(told(&passes), ["Corrupt", "NameConflict", "Corrupt,NameConflict"]);
    }

    #[test]
    fn entering_counts_and_staying_does_once_an_hour() {
        let stays: Vec<(u32, &[&'static str])> =
            [0, 1, 30, 59, 60, 61, 119, 120].map(|m| (m, &["RbacDenied"][..])).to_vec();
        assert_eq!(walk(&stays), [true, false, false, false, true, false, false, true]);
    }

    #[test]
    fn leaving_and_entering_again_counts() {
        assert_eq!(walk(&[(0, &["Invalid"]), (1, &[]), (2, &["Invalid"])]), [true, false, true]);
    }

    #[test]
    fn another_reason_counts_and_one_fewer_does_not() {
        let passes: [(u32, &[&'static str]); 4] =
            [(0, &["Invalid"]), (1, &["Invalid", "NameConflict"]), (2, &["NameConflict"]), (3, &["Invalid"])];
        assert_eq!(walk(&passes), [true, true, false, true]);
    }

    #[test]
    fn a_look_that_was_behind_leaves_no_error() {
        let trouble = Trouble { reason: "Invalid".into(), message: String::new(), error: true };
        let bad = Decision { troubles: vec![trouble], ..Decision::default() };
        let mut memory = Memory::default();
        let mut counts =
            |decision: &Decision, behind, at| !rested(&mut memory, decision, behind, MINUTE * at).is_empty();
        assert!(counts(&bad, false, 1));
        assert!(!counts(&Decision::default(), true, 2));
        assert!(!counts(&bad, false, 3));
        assert!(!counts(&Decision::default(), false, 4));
        assert!(counts(&bad, false, 5));
    }

    #[test]
    fn only_troubles_that_need_a_person_are_reasons() {
        let trouble = |reason: &'static str, error| Trouble { reason: reason.into(), message: String::new(), error };
        assert_eq!(reasons(&[trouble("A", false), trouble("B", true)]), BTreeSet::from(["B"]));
    }

    #[test]
    fn results_have_the_names_that_dashboards_know() {
        assert_eq!(PassResult::ALL.map(PassResult::label), ["success", "requeue", "requeue_after", "error"]);
        assert_eq!(result(Ending::Rested(None), false), PassResult::Success);
        assert_eq!(result(Ending::Rested(Some(MINUTE)), false), PassResult::RequeueAfter);
        assert_eq!(result(Ending::Rested(Some(MINUTE)), true), PassResult::Error);
        assert_eq!(result(Ending::Bug, false), PassResult::Requeue);
        assert_eq!(result(Ending::Bug, true), PassResult::Error);
    }
}
