//! The gate that every request passes: at most so many under way, none into a closed flow (decision R29).

use super::clock::Clock;
use crate::core::control::flow::{End, Flow, HELD_BACK, Leave};
use crate::core::wire::Reply;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The gate before one server.
#[derive(Debug)]
pub struct Limits {
    flow: Mutex<Flow>,
    ended: Notify,
    clock: Clock,
}

/// Leave for one request. Dropped without an end, it counts as answered, so that an abandoned request gives its place
/// back.
#[derive(Debug)]
pub struct Permit<'a> {
    limits: &'a Limits,
    flow: &'a str,
    end: End,
}

impl Limits {
    /// An open gate.
    pub fn new(clock: Clock) -> Self {
        Self { flow: Mutex::default(), ended: Notify::new(), clock }
    }

    /// Waits for a place. `Err` says for how long the flow is closed: whoever asks is answered at once, since a worker
    /// that slept here would keep others from their work.
    pub async fn leave<'a>(&'a self, flow: &'a str) -> Result<Permit<'a>, Duration> {
        loop {
            let ended = self.ended.notified();
            let leave = self.lock().leave(flow, self.clock.since_start());
            match leave {
                Leave::Granted => return Ok(Permit { limits: self, flow, end: End::Answered }),
                Leave::Closed(left) => return Err(left),
                Leave::Full => ended.await,
            }
        }
    }

    /// How many may be under way now.
    pub fn width(&self) -> usize {
        self.lock().width()
    }

    fn lock(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Notes how the request was answered.
    pub fn answered(mut self, reply: &Reply) {
        if let Reply::Http { status: 429, retry_after, .. } = reply {
            self.end = End::Throttled(*retry_after);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.limits.lock().ended(self.flow, self.end, self.limits.clock.since_start());
        self.limits.ended.notify_waiters();
    }
}

/// What a request into a closed flow is answered with: what the server would say, without asking it.
pub fn held_back(left: Duration) -> Reply {
    let message = format!("{HELD_BACK}: the server asked for no more such requests for {}s", left.as_secs_f32().ceil());
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests",
        "code": 429, "message": message});
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    Reply::Http {
        status: 429,
        retry_after: Some(Duration::from_secs(seconds)),
        body: body.to_string().into_bytes(),
        digest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn limits() -> Arc<Limits> {
        Arc::new(Limits::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0)))
    }

    #[tokio::test(start_paused = true)]
    async fn sixty_four_are_under_way_and_all_get_their_turn() {
        let (limits, now, most) = (limits(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let one = |_| {
            let (limits, now, most) = (Arc::clone(&limits), Arc::clone(&now), Arc::clone(&most));
            async move {
                let permit = limits.leave("pods").await.expect("an open flow");
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
            }
        };
        let began = tokio::time::Instant::now();
        futures::future::join_all((0..200).map(one)).await;
        assert_eq!((most.load(Ordering::Relaxed), began.elapsed().as_secs()), (64, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_flow_answers_at_once_and_says_for_how_long() {
        let limits = limits();
        let reply = held_back(Duration::from_millis(6_500));
        limits.leave("pods").await.expect("open").answered(&reply);
        assert_eq!(limits.leave("pods").await.expect_err("closed"), Duration::from_secs(7));
        assert!(limits.leave("nodes").await.is_ok());
        assert_eq!(limits.width(), 32);
        tokio::time::advance(Duration::from_secs(7)).await;
        assert!(limits.leave("pods").await.is_ok());
    }
}
