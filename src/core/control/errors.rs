//! When a reconcile counts as an error: on entering what needs a person, and once an hour while it stays (decision R4).

use crate::core::decision::Decision;
use crate::core::memory::Memory;
use std::time::Duration;

/// While it stays, it counts again after this long.
const AGAIN: Duration = Duration::from_secs(3_600);

/// How a pass ended, for its error.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// It came to rest on this decision.
    Rest(&'a Decision),
    /// It came to rest, but on a view that lacks our own writes: what else is wrong was not looked at.
    Behind,
    /// It was given up: a bug.
    GaveUp,
}

/// The reason of a pass that was given up.
pub const GAVE_UP: &str = "GaveUp";

/// Takes the end of a pass into memory. The reason, if it counts as an error now.
pub fn count(memory: &mut Memory, end: End<'_>, now: Duration) -> Option<String> {
    let reason = match end {
        End::Rest(decision) => decision.error().map(|trouble| trouble.reason.to_string()),
        End::Behind => return None,
        End::GaveUp => Some(GAVE_UP.to_owned()),
    };
    let Some(reason) = reason else {
        memory.error = None;
        return None;
    };
    let counted = memory.error.as_ref().filter(|(known, _)| *known == reason).map(|(_, at)| *at);
    if counted.is_some_and(|at| now.saturating_sub(at) < AGAIN) {
        return None;
    }
    memory.error = Some((reason.clone(), now));
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decision::Trouble;

    fn needing_a_person(reason: &'static str) -> Decision {
        let trouble = Trouble { reason: reason.into(), message: String::new(), error: true };
        Decision { troubles: vec![trouble], ..Decision::default() }
    }

    #[test]
    fn an_error_counts_on_entering_and_once_an_hour() {
        let mut memory = Memory::default();
        let decision = needing_a_person("RbacDenied");
        let mut counted = Vec::new();
        for minute in 0..150 {
            if count(&mut memory, End::Rest(&decision), Duration::from_secs(60 * minute)).is_some() {
                counted.push(minute);
            }
        }
        assert_eq!(counted, [0, 60, 120]);
    }

    #[test]
    fn it_counts_again_after_it_was_left_but_not_after_a_look_that_saw_nothing() {
        let mut memory = Memory::default();
        let decision = needing_a_person("RbacDenied");
        assert!(count(&mut memory, End::Rest(&decision), Duration::ZERO).is_some());
        assert!(count(&mut memory, End::Behind, Duration::from_secs(1)).is_none());
        assert!(count(&mut memory, End::Rest(&decision), Duration::from_secs(2)).is_none());
        assert!(count(&mut memory, End::Rest(&Decision::default()), Duration::from_secs(3)).is_none());
        assert!(count(&mut memory, End::Rest(&decision), Duration::from_secs(4)).is_some());
    }

    #[test]
    fn another_reason_counts_at_once() {
        let mut memory = Memory::default();
        assert!(count(&mut memory, End::Rest(&needing_a_person("RbacDenied")), Duration::ZERO).is_some());
        assert!(count(&mut memory, End::Rest(&needing_a_person("Invalid")), Duration::from_secs(1)).is_some());
        assert_eq!(count(&mut memory, End::GaveUp, Duration::from_secs(2)).as_deref(), Some(GAVE_UP));
    }
}
