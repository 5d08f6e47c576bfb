//! What each watch was last heard of: readiness, and whether anything is worth starting.

use super::clock::Clock;
use crate::core::control::kinds::Kind;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a start waits for kinds that it could do without.
const OPTIONAL_WAIT: Duration = Duration::from_secs(10);

/// How all watches are. Its opening counts as a sign of life: a server whose objects of a kind never change has no
/// bookmarks to send, and an open answer to a new watch shows that it is there.
#[derive(Debug)]
pub struct Health {
    kinds: Mutex<BTreeMap<Kind, Watched>>,
    changed: Notify,
    clock: Clock,
    /// A watch that was not heard of for this long has gone silent.
    silence: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Watched {
    /// Listed once; last heard of then.
    Heard(Duration),
    /// We may not watch it.
    Refused,
    /// Listing it fails.
    Failing,
}

impl Health {
    /// Nothing heard yet. A watch is silent after twice its time-out: it ends, and so is heard of, once in each.
    pub fn new(clock: Clock, watch_timeout: Duration) -> Self {
        Self { kinds: Mutex::default(), changed: Notify::new(), clock, silence: watch_timeout.saturating_mul(2) }
    }

    /// The watch of this kind gave a sign of life: a list, an event, a bookmark, or its opening.
    pub fn heard(&self, kind: Kind) {
        self.set(kind, Watched::Heard(self.clock.since_start()));
    }
    /// This kind may not be watched.
    pub fn refused(&self, kind: Kind) {
        self.set(kind, Watched::Refused);
    }
    /// This kind cannot be listed. What was heard before keeps its time.
    pub fn failing(&self, kind: Kind) {
        self.lock().entry(kind).or_insert(Watched::Failing);
        self.changed.notify_waiters();
    }

    /// Waits until every kind that is needed was listed, and for a while for the others: what is decided without them is
    /// right, and better with them.
    pub async fn settled(&self) {
        self.until(|kinds, kind| kind.is_optional() || matches!(kinds.get(&kind), Some(Watched::Heard(_)))).await;
        let known = |kinds: &BTreeMap<Kind, Watched>, kind| {
            matches!(kinds.get(&kind), Some(Watched::Heard(_) | Watched::Refused))
        };
        let _ = tokio::time::timeout(OPTIONAL_WAIT, self.until(known)).await;
    }

    /// Why the operator is not ready; nothing where it is.
    pub fn unready(&self) -> Vec<String> {
        let now = self.clock.since_start();
        let kinds = self.lock().clone();
        let why = |kind: Kind| match kinds.get(&kind) {
            Some(Watched::Heard(last)) if now.saturating_sub(*last) > self.silence => Some(format!(
                "the watch of {} was silent for {}s",
                kind.resource(),
                now.saturating_sub(*last).as_secs()
            )),
            Some(Watched::Heard(_)) => None,
            Some(Watched::Refused | Watched::Failing) if kind.is_optional() => None,
            Some(Watched::Refused) => Some(format!("{} may not be watched", kind.resource())),
            Some(Watched::Failing) | None => Some(format!("{} were not listed yet", kind.resource())),
        };
        Kind::ALL.into_iter().filter_map(why).collect()
    }

    async fn until(&self, holds: impl Fn(&BTreeMap<Kind, Watched>, Kind) -> bool) {
        loop {
            let changed = self.changed.notified();
            let kinds = self.lock().clone();
            if Kind::ALL.into_iter().all(|kind| holds(&kinds, kind)) {
                return;
            }
            changed.await;
        }
    }

    fn set(&self, kind: Kind, watched: Watched) {
        self.lock().insert(kind, watched);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, Watched>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ready_is_listed_and_heard_of() {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0);
        let health = Health::new(clock, Duration::from_secs(60));
        assert_eq!(health.unready().len(), 5);
        health.refused(Kind::Nodes);
        health.failing(Kind::Namespaces);
        for kind in [Kind::CocoonHibernations, Kind::Pods] {
            health.heard(kind);
        }
        health.failing(Kind::CocoonSets);
        assert_eq!(health.unready(), ["cocoonsets were not listed yet"]);
        health.heard(Kind::CocoonSets);
        let began = tokio::time::Instant::now();
        health.settled().await;
        assert_eq!(began.elapsed(), OPTIONAL_WAIT, "namespaces may still come");
        assert_eq!(health.unready(), [""; 0]);
        tokio::time::advance(Duration::from_secs(111)).await;
        health.heard(Kind::CocoonSets);
        health.heard(Kind::CocoonHibernations);
        assert_eq!(health.unready(), ["the watch of pods was silent for 121s"]);
    }
}
