//! A Kubernetes Status, read without trust: a field of the wrong type is a field that is not there.

use serde_json::Value;
use std::time::Duration;

/// A JSON object whose kind is `Status`.
#[derive(Clone, Copy)]
pub(super) struct Status<'a>(&'a Value);

/// One entry of `details.causes`.
#[derive(Clone, Copy)]
pub(super) struct Cause<'a>(&'a Value);

impl<'a> Status<'a> {
    /// The value as a Status, if it says that it is one. The kind is enough: people write these by hand, too.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        (text(value, "kind") == "Status").then_some(Self(value))
    }
    /// `Success` or `Failure`.
    pub(super) fn status(self) -> &'a str {
        text(self.0, "status")
    }
    /// The HTTP status that the body itself claims.
    pub(super) fn code(self) -> Option<u16> {
        self.0.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok())
    }
    /// The machine-readable word, e.g. `AlreadyExists`.
    pub(super) fn reason(self) -> &'a str {
        text(self.0, "reason")
    }
    /// The sentence for people.
    pub(super) fn message(self) -> &'a str {
        text(self.0, "message")
    }
    /// The message, else the reason, else what the caller has.
    pub(super) fn words(self, otherwise: &str) -> String {
        [self.message(), self.reason()].into_iter().find(|w| !w.trim().is_empty()).unwrap_or(otherwise).to_owned()
    }
    /// `details.name`: what the answer is about.
    pub(super) fn name(self) -> &'a str {
        self.detail("name").and_then(Value::as_str).unwrap_or_default()
    }
    /// `details.kind`: a Kind or a resource, depending on who refused.
    pub(super) fn kind(self) -> &'a str {
        self.detail("kind").and_then(Value::as_str).unwrap_or_default()
    }
    /// `details.retryAfterSeconds`, if it is a whole number.
    pub(super) fn retry_after(self) -> Option<Duration> {
        self.detail("retryAfterSeconds").and_then(Value::as_u64).map(Duration::from_secs)
    }
    /// True where `details` says nothing at all.
    pub(super) fn lacks_details(self) -> bool {
        match self.0.get("details") {
            None | Some(Value::Null) => true,
            Some(details) => details.as_object().is_some_and(serde_json::Map::is_empty),
        }
    }
    /// Every cause that is an object.
    pub(super) fn causes(self) -> impl Iterator<Item = Cause<'a>> {
        let causes = self.detail("causes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        causes.iter().filter(|cause| cause.is_object()).map(Cause)
    }
    /// What follows `… is forbidden: ` in the message, where a refusal gives its ground.
    pub(super) fn ground(self) -> &'a str {
        let message = self.message();
        match message.split_once(" is forbidden: ") {
            Some((_, ground)) => ground,
            None => message.strip_prefix("forbidden: ").unwrap_or(message),
        }
    }
    fn detail(self, key: &str) -> Option<&'a Value> {
        self.0.get("details").and_then(|details| details.get(key))
    }
}

impl<'a> Cause<'a> {
    /// E.g. `FieldValueForbidden`.
    pub(super) fn reason(self) -> &'a str {
        text(self.0, "reason")
    }
    /// The field it is about, e.g. `metadata.uid`.
    pub(super) fn field(self) -> &'a str {
        text(self.0, "field")
    }
    /// The sentence for people.
    pub(super) fn message(self) -> &'a str {
        text(self.0, "message")
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
