//! The one place that reads the time.

use crate::core::cocoonset::observed::Lease;
use crate::core::control::view::Clocks;
use jiff::{SignedDuration, Timestamp};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Wall clock, time since the start, and what spreads timers. The time since the start is the runtime's, so that it
/// stands still where the runtime's is paused.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    wall: Wall,
    /// By how many milliseconds the wall clock was moved; every clone is moved.
    moved: Arc<AtomicI64>,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Wall {
    Real,
    /// This at the start, and as much later as time has passed.
    From(Timestamp),
}

impl Clock {
    /// The machine's clock, and a seed of its own.
    pub fn real() -> Self {
        // The standard library's hasher is the one source of chance that needs no crate.
        let seed = RandomState::new().build_hasher().finish().max(1);
        Self { start: Instant::now(), wall: Wall::Real, moved: Arc::default(), seed }
    }
    /// A clock that shows `wall` now and moves with the runtime's; seed 0 spreads nothing.
    pub fn starting_at(wall: Timestamp, seed: u64) -> Self {
        Self { start: Instant::now(), wall: Wall::From(wall), moved: Arc::default(), seed }
    }
    /// Time since the start: for what is waited for (D-48).
    pub fn since_start(&self) -> Duration {
        self.start.elapsed()
    }
    /// Wall clock: for what is written down.
    pub fn wall(&self) -> Timestamp {
        let now = match self.wall {
            Wall::Real => Timestamp::now(),
            Wall::From(start) => {
                let elapsed = SignedDuration::try_from(self.since_start()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(elapsed).unwrap_or(start)
            }
        };
        now.saturating_add(SignedDuration::from_millis(self.moved.load(Ordering::Relaxed))).unwrap_or(now)
    }
    /// The wall clock jumps, as when somebody sets it.
    pub fn jump(&self, by: SignedDuration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or_default();
        self.moved.fetch_add(millis, Ordering::Relaxed);
    }
    /// The runtime's instant at this time since the start; `None` where it is too far to be ever reached.
    pub fn instant(&self, since_start: Duration) -> Option<Instant> {
        self.start.checked_add(since_start)
    }
    /// What spreads timers.
    pub const fn seed(&self) -> u64 {
        self.seed
    }
    /// All that a decision is told of it, under this right to write.
    pub fn clocks(&self, lease: Lease) -> Clocks {
        Clocks { now: self.wall(), mono: self.since_start(), seed: self.seed, lease }
    }
}
