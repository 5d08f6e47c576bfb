//! Input that does not read as it should: kept beside the facts, explained, never fatal (architecture 13).

use serde::Serialize;

/// A value outside its schema or its meaning: nothing can be made of it as it stands (D-24, D-58).
pub const INVALID_SPEC: &str = "InvalidSpec";
/// A name that comes out longer than what has to carry it (D-33).
pub const NAME_TOO_LONG: &str = "NameTooLong";
/// A number or list beyond what one set may create (D-34).
pub const CLAMPED: &str = "Clamped";
/// An annotation of ours that cannot be read back (R21).
pub const CORRUPT_ANNOTATION: &str = "CorruptAnnotation";
/// A pod's VM name that is neither of the two its own name allows (R22).
pub const NAME_MISMATCH: &str = "NameMismatch";

/// One value that did not read, and what was made of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Oddity {
    /// One word for conditions and metrics.
    pub reason: &'static str,
    /// Where it stands: a JSON path, or an annotation key.
    pub field: String,
    /// What is wrong with it, for people.
    pub message: String,
    /// Nobody can tell what was meant: what is made of it instead must cost no VM.
    #[serde(skip)]
    pub unreadable: bool,
}

impl Oddity {
    /// An oddity under any reason.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, field: field.into(), message: message.into(), unreadable: false }
    }
    /// A value that breaks its schema.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(INVALID_SPEC, field, message)
    }
    /// A value of which nobody can tell what was meant.
    pub fn unreadable(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { unreadable: true, ..Self::invalid(field, message) }
    }
    /// An annotation that cannot be read.
    pub fn corrupt(key: &str, message: impl Into<String>) -> Self {
        Self::new(CORRUPT_ANNOTATION, key, message)
    }
}

/// So many of something, in the form that the number asks for: `1 pod is`, `2 pods are`.
pub fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// At most `limit` bytes of a text, cut where a character ends: outside data is quoted, never copied whole.
pub fn excerpt(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}
