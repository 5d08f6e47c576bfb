//! Delays of what has no object behind it: a watch that failed, a pass that is a bug. Everything that has one names its
//! delays in its own decisions (decision R3).

use std::time::Duration;

/// The first delay after a watch or its list failed.
pub const WATCH_FIRST: Duration = Duration::from_millis(800);
/// The longest one.
pub const WATCH_MOST: Duration = Duration::from_secs(30);
/// The first delay after a pass that is a bug.
pub const BUG_FIRST: Duration = Duration::from_secs(1);
/// The longest one.
pub const BUG_MOST: Duration = Duration::from_secs(300);

/// The delay before the next try after `failures` in a row: doubling from `first` up to `most`, and up to a fifth more,
/// so that many who failed together do not come back together. Seed 0 spreads nothing.
pub fn delay(first: Duration, most: Duration, failures: u32, seed: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let delay = first.saturating_mul(1 << doublings).min(most);
    let fifth = u64::try_from(delay.as_millis() / 5).unwrap_or(u64::MAX);
    delay.saturating_add(Duration::from_millis(draw(seed, failures) % fifth.saturating_add(1)))
}

/// A number that looks drawn: the same for the same seed and count, 0 for seed 0.
fn draw(seed: u64, count: u32) -> u64 {
    if seed == 0 {
        return 0;
    }
    let mut x = seed ^ u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_most() {
        let seconds = |failures| delay(BUG_FIRST, BUG_MOST, failures, 0).as_secs();
        assert_eq!([1, 2, 3, 4, 9, 10, 200].map(seconds), [1, 2, 4, 8, 256, 300, 300]);
        assert_eq!(delay(BUG_FIRST, BUG_MOST, 0, 0), BUG_FIRST);
    }

    #[test]
    fn it_spreads_by_a_fifth_at_most() {
        let all: std::collections::BTreeSet<Duration> =
            (1..100).map(|seed| delay(WATCH_FIRST, WATCH_MOST, 20, seed)).collect();
        assert!(all.len() > 50, "hardly spread: {all:?}");
        assert!(all.iter().all(|d| (WATCH_MOST..=WATCH_MOST.mul_f64(1.2)).contains(d)));
    }
}
