//! Whom facts are played to: the simulated API server, or (in the live suite) a real one.

use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::sim::store::{ReplyBody, Store, StoreReply, WatchKind};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::time::Duration;

/// An answer, as far as it is compared.
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub retry_after: Option<Duration>,
    /// Whole headers.
    pub warnings: Vec<String>,
    /// JSON, or a text that is none.
    pub body: Value,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A server that facts can be played to.
pub trait Server {
    /// Its answer to what this user asks.
    fn ask(&mut self, user: &str, request: &Request) -> Answer;
    /// What this watch shows until it ends, or why it is not opened.
    fn watch(&mut self, user: &str, request: &Request) -> Result<Vec<Value>, Answer>;
    /// Lets time pass, in which controllers work.
    fn pass(&mut self, time: Duration);
    /// The simulated one, for what no request can bring about.
    fn store(&mut self) -> Option<&mut Store>;
}

impl From<StoreReply> for Answer {
    fn from(reply: StoreReply) -> Self {
        Self {
            status: reply.status,
            content_type: reply.content_type().to_owned(),
            retry_after: reply.retry_after,
            warnings: reply.warning_headers(),
            body: match reply.body {
                ReplyBody::Json(body) => body,
                ReplyBody::Text(text) => json!(text),
            },
        }
    }
}

impl Server for Store {
    fn ask(&mut self, user: &str, request: &Request) -> Answer {
        self.handle_as(user, request).into()
    }

    fn watch(&mut self, user: &str, request: &Request) -> Result<Vec<Value>, Answer> {
        let mut watch = self.open_watch_as(user, request)?;
        Ok(self.poll_watch(&mut watch).iter().map(|event| event.frame()).collect())
    }

    fn pass(&mut self, time: Duration) {
        let then = self.now() + SignedDuration::try_from(time).expect("a time to wait");
        self.advance_to(then);
    }

    fn store(&mut self) -> Option<&mut Store> {
        Some(self)
    }
}

/// Whether this was the end of a watch.
pub fn is_error(frame: &Value) -> bool {
    frame["type"] == WatchKind::Error.as_str()
}

/// A read of this path.
pub fn read(path: &str) -> Request {
    Request::new(Method::Get, path)
}
