//! The control plane is away for a while, in the middle of stories that know nothing of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Controllers open their watches again after pauses of up to half a minute, and meanwhile take silent nodes for lost.
const AFTERMATH: Duration = Duration::from_secs(60);

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
