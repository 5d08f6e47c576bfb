//! The control plane is away for a while, in the middle of stories that know nothing of it.

use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Controllers start, list everything and hear of every node's lease.
const AFTERMATH: Duration = Duration::from_secs(30);

/// An API server has read everything this long after it is ready.
const COLD: Duration = Duration::from_secs(5);

/// When the control plane of some stories was away.
#[derive(Debug, Default)]
pub struct Outage(Mutex<Option<Span>>);

#[derive(Clone, Copy, Debug)]
struct Span {
    begun: Instant,
    /// None while it is away.
    ended: Option<Instant>,
}

impl Outage {
    /// It is away from now on.
    pub fn begin(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Span { begun: Instant::now(), ended: None });
    }
    /// It is back.
    pub fn end(&self) {
        if let Some(span) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            span.ended = Some(Instant::now());
        }
    }

    fn span(&self) -> Option<Span> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether it was away at this time, or had only just come back: an API server refuses whose rights it has not read yet.
    pub fn is_cold_at(&self, at: Timestamp) -> bool {
        let ago = |moment: Instant| Timestamp::now().checked_sub(moment.elapsed()).unwrap_or(Timestamp::MIN);
        self.span().is_some_and(|span| {
            let end = span.ended.and_then(|ended| ago(ended).checked_add(COLD).ok());
            ago(span.begun) <= at && end.is_none_or(|end| at <= end)
        })
    }
    /// True while it is away, or has just come back.
    pub fn is_felt(&self) -> bool {
        self.span().is_some_and(|span| span.ended.is_none_or(|ended| ended.elapsed() < AFTERMATH))
    }
    /// Whether a story that began then has felt it.
    pub fn felt_since(&self, begun: Instant) -> bool {
        self.span().is_some_and(|span| span.ended.is_none_or(|ended| begun < ended + AFTERMATH))
    }
    /// How much longer a story may take that began then.
    pub fn allowance(&self, begun: Instant) -> Duration {
        match self.span().filter(|_| self.felt_since(begun)) {
            Some(span) => span.ended.unwrap_or_else(Instant::now).duration_since(span.begun) + AFTERMATH,
            None => Duration::ZERO,
        }
    }
}
