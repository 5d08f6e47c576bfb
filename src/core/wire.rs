//! One request and its reply as data, before anybody has judged the reply.

use serde_json::Value;
use std::time::Duration;

/// What a request wants of the server. Together with the reply it is all that the classifier looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// POST of a new object.
    Create,
    /// PUT of a whole object.
    Update,
    /// Any PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// Registry: does this manifest exist, and under which digest?
    RegistryHead,
    /// Registry: the manifest itself.
    RegistryGet,
    /// Registry: let this tag go.
    RegistryDelete,
}

impl Verb {
    /// The label under which metrics and transcripts speak of it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::RegistryHead => "head",
            Self::RegistryGet => "get-manifest",
            Self::RegistryDelete => "delete-tag",
        }
    }
    /// True where a request that got no answer may have changed something.
    pub const fn writes(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::RegistryDelete => true,
            Self::Get | Self::List | Self::Watch | Self::RegistryHead | Self::RegistryGet => false,
        }
    }
    /// True where the other side is the snapshot registry and not the API server.
    pub const fn is_registry(self) -> bool {
        match self {
            Self::RegistryHead | Self::RegistryGet | Self::RegistryDelete => true,
            Self::Get | Self::List | Self::Watch | Self::Create | Self::Update | Self::Patch | Self::Delete => false,
        }
    }
}

/// The HTTP method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As it stands on the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// RFC 7386.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// RFC 6902.
pub const JSON_PATCH: &str = "application/json-patch+json";
/// Kubernetes' own; only built-in kinds take it.
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// Plain JSON.
pub const JSON: &str = "application/json";

/// One request to the API server, complete but for host and credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// Absolute path without query, e.g. `/api/v1/namespaces/ns/pods/demo-0`.
    pub path: String,
    /// Query parameters, not yet encoded.
    pub query: Vec<(String, String)>,
    /// Content type of the body, where there is one.
    pub content_type: Option<String>,
    /// The body; `Value::Null` for none.
    pub body: Value,
}

impl Request {
    /// A request without query and body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: Vec::new(), content_type: None, body: Value::Null }
    }
    /// The same with a body of this content type.
    #[must_use]
    pub fn with_body(mut self, content_type: &str, body: Value) -> Self {
        self.content_type = Some(content_type.to_owned());
        self.body = body;
        self
    }
    /// The same with one more query parameter.
    #[must_use]
    pub fn with_query(mut self, key: &str, value: &str) -> Self {
        self.query.push((key.to_owned(), value.to_owned()));
        self
    }
}

/// What came back for one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An HTTP answer.
    Http {
        /// Status code.
        status: u16,
        /// The `Retry-After` header, as [`retry_after`] reads it.
        retry_after: Option<Duration>,
        /// The body as received.
        body: Vec<u8>,
        /// The digest a registry names (`Docker-Content-Digest`), if it did.
        digest: Option<String>,
    },
    /// No answer within the deadline.
    TimedOut,
    /// The connection broke or could not be made. `sent` is false only where no byte of the request left.
    Reset {
        /// Whether the request may have reached the server.
        sent: bool,
    },
    /// Not sent: the lease was not held, or not long enough (decision R11).
    Fenced,
}

impl Reply {
    /// An HTTP answer with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Http { status, retry_after: None, body: body.to_string().into_bytes(), digest: None }
    }
}

/// Reads a `Retry-After` header: a whole number of seconds. Anything else, a date included (reading it would need a
/// clock), says nothing.
pub fn retry_after(header: &str) -> Option<Duration> {
    let digits = header.trim();
    // Rust's parser takes a leading plus; HTTP does not.
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number too large for 64 bits is still a number, and means "very long".
    Some(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}
