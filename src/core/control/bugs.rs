//! Objects whose last pass was a bug (decision R5): each waits longer from one to the next, unless somebody edits it.

use super::backoff;
use super::errors::{self, Standing};
use super::queue::Priority;
use super::wake::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The objects, until a pass over them comes to rest.
#[derive(Clone, Debug, Default)]
pub struct Bugs {
    known: BTreeMap<Key, Bug>,
}

#[derive(Clone, Debug, Default)]
struct Bug {
    count: u32,
    until: Duration,
    standing: Standing,
}

impl Bugs {
    /// Another pass over this object was a bug: the next look comes after this long, and whether it counts as an error
    /// (decision R4).
    pub fn another(&mut self, key: &Key, reason: &str, now: Duration, seed: u64) -> (Duration, bool) {
        let bug = self.known.entry(key.clone()).or_default();
        bug.count = bug.count.saturating_add(1);
        let delay = backoff::delay(backoff::BUG_FIRST, backoff::BUG_MOST, bug.count, seed);
        bug.until = now.saturating_add(delay);
        let (standing, counted) = errors::standing(&bug.standing, &BTreeSet::from([reason]), now);
        bug.standing = standing;
        (delay, !counted.is_empty())
    }

    /// A pass came to rest, or the object is gone.
    pub fn over(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// How long a look of this urgency still waits. An edit does not: it may be what mends it.
    pub fn delays(&self, key: &Key, priority: Priority, now: Duration) -> Option<Duration> {
        match priority {
            Priority::Edit => None,
            Priority::Resync | Priority::Event => {
                let left = self.known.get(key).and_then(|bug| bug.until.checked_sub(now));
                left.filter(|left| !left.is_zero())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_longer_each_time_and_counts_once() {
        let (mut bugs, key) = (Bugs::default(), Key::new("ns", "demo"));
        let second = Duration::from_secs(1);
        assert_eq!(bugs.another(&key, "Bug", second, 0), (second, true));
        assert_eq!(bugs.another(&key, "Bug", 2 * second, 0), (2 * second, false));
        assert_eq!(bugs.delays(&key, Priority::Event, 3 * second), Some(second));
        assert_eq!(bugs.delays(&key, Priority::Edit, 3 * second), None);
        assert_eq!(bugs.delays(&key, Priority::Event, 4 * second), None);
        bugs.over(&key);
        assert_eq!(bugs.another(&key, "Bug", 5 * second, 0), (second, true));
    }
}
