//! How many requests may be under way, and which must wait (decision R29): there is no rate limit of our own, and the
//! other side's wish to be left in peace is kept.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most requests that are ever under way.
pub const WIDEST: usize = 64;
/// How the answer begins that a request into a closed flow gets from us, in the server's place.
pub const HELD_BACK: &str = "held back";

/// Requests under way to one server, and the flows that it closed. A flow is a resource: a 429 on pods says nothing of
/// status writes.
#[derive(Clone, Debug)]
pub struct Flow {
    width: usize,
    under_way: usize,
    /// Answers since the width last changed.
    calm: usize,
    closed: BTreeMap<String, Duration>,
}

/// Whether a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It is under way; [`Flow::ended`] must follow.
    Granted,
    /// Too many are under way: ask again when one has ended.
    Full,
    /// The server asked not to be asked for this long yet.
    Closed(Duration),
}

/// How a request ended, as far as the flow is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Answered, or lost.
    Answered,
    /// 429, and for how long the server wants no more, if it said so.
    Throttled(Option<Duration>),
}

impl Default for Flow {
    fn default() -> Self {
        Self { width: WIDEST, under_way: 0, calm: 0, closed: BTreeMap::new() }
    }
}

impl Flow {
    /// Asks for leave to send one request of this flow.
    pub fn leave(&mut self, flow: &str, now: Duration) -> Leave {
        if let Some(until) = self.closed.get(flow) {
            if let Some(left) = until.checked_sub(now).filter(|left| !left.is_zero()) {
                return Leave::Closed(left);
            }
            self.closed.remove(flow);
        }
        if self.under_way >= self.width {
            return Leave::Full;
        }
        self.under_way += 1;
        Leave::Granted
    }

    /// A request that was granted has ended. The width halves once per closing, however many requests met it, and grows
    /// by one for every width of answers without a 429.
    pub fn ended(&mut self, flow: &str, end: End, now: Duration) {
        self.under_way = self.under_way.saturating_sub(1);
        match end {
            End::Answered => {
                self.calm += 1;
                if self.calm >= self.width && self.width < WIDEST {
                    self.width += 1;
                    self.calm = 0;
                }
            }
            End::Throttled(wait) => {
                let closed = self.closed.get(flow).is_some_and(|until| *until > now);
                if !closed {
                    self.width = (self.width / 2).max(1);
                    self.calm = 0;
                }
                if let Some(wait) = wait {
                    let until = self.closed.entry(flow.to_owned()).or_default();
                    *until = (*until).max(now.saturating_add(wait));
                }
            }
        }
    }

    /// How many may be under way now.
    pub const fn width(&self) -> usize {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn granted(flow: &mut Flow, wanted: usize) -> usize {
        (0..wanted).filter(|_| flow.leave("pods", Duration::ZERO) == Leave::Granted).count()
    }

    #[test]
    fn no_more_than_the_width_are_under_way() {
        let mut flow = Flow::default();
        assert_eq!(granted(&mut flow, 100), 64);
        assert_eq!(flow.leave("pods", SECOND), Leave::Full);
        flow.ended("pods", End::Answered, SECOND);
        assert_eq!(flow.leave("pods", SECOND), Leave::Granted);
    }

    #[test]
    fn a_closed_flow_opens_when_the_server_said() {
        let mut flow = Flow::default();
        granted(&mut flow, 1);
        flow.ended("pods", End::Throttled(Some(SECOND * 7)), SECOND);
        assert_eq!(flow.leave("pods", SECOND * 3), Leave::Closed(SECOND * 5));
        assert_eq!(flow.leave("nodes", SECOND * 3), Leave::Granted);
        assert_eq!(flow.leave("pods", SECOND * 8), Leave::Granted);
    }

    #[test]
    fn one_closing_halves_the_width_once() {
        let mut flow = Flow::default();
        granted(&mut flow, 10);
        for _ in 0..10 {
            flow.ended("pods", End::Throttled(Some(SECOND)), SECOND);
        }
        assert_eq!(flow.width(), 32);
    }

    #[test]
    fn calm_widens_again_and_one_always_fits() {
        let mut flow = Flow::default();
        for _ in 0..20 {
            granted(&mut flow, 1);
            flow.ended("pods", End::Throttled(None), SECOND);
        }
        assert_eq!(flow.width(), 1);
        for _ in 0..100_000 {
            granted(&mut flow, 1);
            flow.ended("pods", End::Answered, SECOND);
        }
        assert_eq!(flow.width(), WIDEST);
    }
}
