//! What the store answers, before a transport gives it bytes.

use crate::core::wire::Reply;
use serde_json::Value;
use std::time::Duration;

/// The body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyBody {
    /// `application/json`: an object, a list or a Status.
    Json(Value),
    /// `text/plain`: what the real server's outer layers say (429 of flow control, unknown paths).
    Text(String),
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreReply {
    /// HTTP status code.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// The body, which also decides the content type.
    pub body: ReplyBody,
    /// Texts of the `Warning` headers, without code and agent.
    pub warnings: Vec<String>,
}

impl StoreReply {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: Value) -> Self {
        Self { status, retry_after: None, body: ReplyBody::Json(body), warnings: Vec::new() }
    }
    /// An answer in plain text.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, retry_after: None, body: ReplyBody::Text(body.to_owned()), warnings: Vec::new() }
    }
    /// The `Content-Type` header.
    pub fn content_type(&self) -> &'static str {
        match self.body {
            ReplyBody::Json(_) => "application/json",
            ReplyBody::Text(_) => "text/plain; charset=utf-8",
        }
    }
    /// The JSON body; `Value::Null` where the answer is text.
    pub fn value(&self) -> &Value {
        match &self.body {
            ReplyBody::Json(value) => value,
            ReplyBody::Text(_) => &Value::Null,
        }
    }
    /// The body as it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.body {
            ReplyBody::Json(value) => value.to_string().into_bytes(),
            ReplyBody::Text(text) => text.clone().into_bytes(),
        }
    }
    /// The warnings as `Warning` headers carry them.
    pub fn warning_headers(&self) -> Vec<String> {
        self.warnings.iter().map(|text| format!("299 - {}", quoted(text))).collect()
    }
    /// True for 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A text as Go's `%q` writes it.
pub(super) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

impl From<StoreReply> for Reply {
    fn from(reply: StoreReply) -> Self {
        Self::Http { status: reply.status, retry_after: reply.retry_after, body: reply.bytes(), digest: None }
    }
}
