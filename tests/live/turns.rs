//! Who has something when: tests that share it have it in the order in which they are listed, whoever wakes first.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The turns that are not over.
#[derive(Clone, Default)]
pub struct Turns(Arc<(Mutex<BTreeSet<usize>>, Condvar)>);

/// One turn. It is over when it is dropped: also where its test panicked, was filtered out or ignored.
pub struct Turn(Turns, usize);

impl Turns {
    /// The turn after all that were given.
    pub fn next(&self) -> Turn {
        let mut open = self.open();
        let number = open.last().map_or(0, |last| last + 1);
        open.insert(number);
        Turn(self.clone(), number)
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Comes back when all earlier turns are over.
    pub fn wait(&self) {
        let earlier = |open: &mut BTreeSet<usize>| open.first().is_some_and(|first| *first < self.1);
        drop(self.0.0.1.wait_while(self.0.open(), earlier).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.open().remove(&self.1);
        self.0.0.1.notify_all();
    }
}
