//! What watches feed and workers draw from: the view and the queue, behind one lock.

use super::clock::Clock;
use crate::core::action::{Attempt, Subject};
use crate::core::cocoonset::observed::{Lease, Observed};
use crate::core::control::bugs::Bugs;
use crate::core::control::kinds::{Event, Kind};
use crate::core::control::queue::{Priority, Queue, Rest, Spans, Stats};
use crate::core::control::view::View;
use crate::core::control::wake::{Key, Wake};
use crate::core::outcome::Outcome;
use crate::core::recording::Taken;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// View and queue.
#[derive(Debug)]
pub struct State {
    inner: Mutex<Inner>,
    /// Something may have become ready.
    changed: Notify,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Inner {
    view: View,
    /// A set is its own lane: work on its VMs is serialised by it (decision R28).
    queue: Queue<Key, Key>,
    bugs: Bugs,
}

impl State {
    /// Nothing seen, nothing to do.
    pub fn new(clock: Clock) -> Self {
        Self { inner: Mutex::default(), changed: Notify::new(), clock }
    }

    /// Takes in what a watch says, and queues whom it wakes.
    pub fn apply(&self, kind: Kind, event: Event) {
        let now = self.clock.since_start();
        let mut inner = self.lock();
        for Wake { key, priority } in inner.view.apply(kind, event) {
            inner.wake(key, priority, now);
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// The next key to work on, as soon as there is one.
    pub async fn next(&self) -> Key {
        loop {
            let changed = self.changed.notified();
            let (key, due) = {
                let mut inner = self.lock();
                (inner.queue.next(self.clock.since_start()), inner.queue.next_due())
            };
            if let Some(key) = key {
                return key;
            }
            match due.and_then(|due| self.clock.instant(due)) {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// From now on passes can be recorded.
    pub fn keep_objects(&self) {
        self.lock().view.keep_objects();
    }

    /// All that a decision about this set may depend on, now, under this right to write; and what a recorder writes of it, where there is one.
    pub fn observe(&self, key: &Key, lease: Lease) -> Option<(Observed, Option<Taken>)> {
        let clocks = self.clock.clocks(lease);
        let inner = self.lock();
        let seen = inner.view.observe(key, clocks)?;
        let taken = inner.view.take(&seen);
        Some((seen, taken))
    }

    /// Takes in the answer to one action, at once.
    pub fn answered(&self, subject: &Subject, attempt: &Attempt, outcome: &Outcome) {
        self.lock().view.answered(subject, attempt, outcome);
    }

    /// A pass is at rest: keeps what outlives it, and says when to look again.
    pub fn rest(&self, key: &Key, seen: Observed, after: Option<Duration>) {
        let mut inner = self.lock();
        inner.rest(seen, self.clock.since_start());
        inner.bugs.over(key);
        self.done(inner, key, after.map_or(Rest::OnChange, Rest::After));
    }

    /// A pass found nothing to look at.
    pub fn gone(&self, key: &Key) {
        let mut inner = self.lock();
        inner.bugs.over(key);
        self.done(inner, key, Rest::OnChange);
    }

    /// A pass was a bug: keeps what it learned, if anything is left of it, and backs off. True if this counts as an
    /// error (decision R4).
    pub fn bug(&self, key: &Key, seen: Option<Observed>, reason: &str) -> bool {
        let now = self.clock.since_start();
        let mut inner = self.lock();
        if let Some(seen) = seen {
            inner.rest(seen, now);
        }
        let (delay, counted) = inner.bugs.another(key, reason, now, self.clock.seed());
        self.done(inner, key, Rest::After(delay));
        counted
    }

    /// True once this kind has been listed.
    pub fn is_synced(&self, kind: Kind) -> bool {
        self.lock().view.is_synced(kind)
    }
    /// Every set in the cache.
    pub fn keys(&self) -> Vec<Key> {
        self.lock().view.keys().cloned().collect()
    }
    /// Counters and gauges at this moment.
    pub fn stats(&self) -> Stats {
        self.lock().queue.stats(self.clock.since_start())
    }
    /// The spans since the last call.
    pub fn take_spans(&self) -> Spans {
        self.lock().queue.take_spans()
    }
    /// When the next delay is over, since the start.
    pub fn next_due(&self) -> Option<Duration> {
        self.lock().queue.next_due()
    }
    /// Looks at the view, for a dump or a test.
    pub fn with_view<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.lock().view)
    }

    fn done(&self, mut inner: MutexGuard<'_, Inner>, key: &Key, rest: Rest) {
        inner.queue.done(key, self.clock.since_start(), rest);
        drop(inner);
        self.changed.notify_waiters();
    }

    /// A panic in a pass leaves the lock poisoned and the data whole: each method above changes it in steps that leave
    /// nothing half done that the next list would not mend.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Keeps what outlives a pass, and queues whom it concerns.
    fn rest(&mut self, seen: Observed, now: Duration) {
        for Wake { key, priority } in self.view.rest(seen) {
            self.wake(key, priority, now);
        }
    }

    /// An object whose last pass was a bug waits its delay out, unless somebody edited it.
    fn wake(&mut self, key: Key, priority: Priority, now: Duration) {
        match self.bugs.delays(&key, priority, now) {
            Some(left) => self.queue.add_after(key.clone(), key, priority, now, left),
            None => self.queue.add(key.clone(), key, priority, now),
        }
    }
}
