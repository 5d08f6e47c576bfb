//! An answer with a content type of its own, and a mark by which it is recognised when it is asked for again.

use crate::sim::store::{ReplyBody, StoreReply};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What is sent.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Page {
    /// HTTP status code.
    pub status: u16,
    /// The `Content-Type` header; empty for none.
    pub content_type: String,
    /// The `ETag` header, quotes included.
    pub etag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
}

impl Page {
    /// A document that has a mark.
    pub fn marked(content_type: &str, body: Vec<u8>) -> Self {
        let etag = Some(format!("\"{}\"", mark(&body)));
        Self { status: 200, content_type: content_type.to_owned(), etag, body, warnings: Vec::new() }
    }

    /// The same, in JSON.
    pub fn document(content_type: &str, body: &Value) -> Self {
        Self::marked(content_type, body.to_string().into_bytes())
    }

    /// The answer for a client that has a copy with these marks (`If-None-Match`): nothing, where it is as good as new.
    pub fn unless_known(self, known: Option<&str>) -> Self {
        let same = self.etag.as_deref().is_some_and(|mark| known.is_some_and(|known| known.contains(mark)));
        if same { Self { status: 304, body: Vec::new(), ..self } } else { self }
    }
}

/// A digest in the letters that API servers use.
pub(super) fn mark(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}

impl From<StoreReply> for Page {
    fn from(reply: StoreReply) -> Self {
        let nothing = reply.body == ReplyBody::Text(String::new());
        Self {
            status: reply.status,
            content_type: if nothing { String::new() } else { reply.content_type().to_owned() },
            etag: None,
            body: reply.bytes(),
            warnings: reply.warning_headers(),
        }
    }
}
