//! Reading documents that people write: every misfit is one message that says where, which field, and what is expected.

use super::Failure;
use super::nearest::hint;
use crate::core::oddity::excerpt;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// 1970 and 2200, in seconds.
const EARLIEST: i64 = 0;
const LATEST: i64 = 7_258_118_400;

/// Where a value stands: the file, the document in it, the line at which that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// As given on the command line; `-` for stdin.
    pub file: String,
    /// From 1.
    pub document: usize,
    /// From 1; 0 where it is not known.
    pub line: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file == "-" { "stdin" } else { &self.file };
        write!(f, "{file}, document {}", self.document)?;
        if self.line > 0 { write!(f, " (line {})", self.line) } else { Ok(()) }
    }
}

/// One value of a document, which knows where it stands.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    value: &'a Value,
    path: String,
    origin: &'a Origin,
}

impl<'a> Field<'a> {
    /// The whole document, or an item of it.
    pub(super) fn root(value: &'a Value, path: impl Into<String>, origin: &'a Origin) -> Self {
        Self { value, path: path.into(), origin }
    }
    /// As it stands in the document.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }
    /// Where it stands.
    pub(super) fn place(&self) -> String {
        if self.path.is_empty() { self.origin.to_string() } else { format!("{}: {}", self.origin, self.path) }
    }
    /// A misfit of this field.
    pub(super) fn fault(&self, said: impl fmt::Display) -> Failure {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        Failure::Usage(format!("{}: {path}: {said}", self.origin))
    }
    fn expected(&self, what: impl fmt::Display) -> Failure {
        let found = match self.value {
            Value::Null => "nothing".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            other => excerpt(&other.to_string(), 60),
        };
        self.fault(format_args!("expected {what}, found {found}"))
    }
    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
    /// A field of this mapping; absent and `null` are the same.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self { value, path: self.join(key), origin: self.origin })
    }
    /// The same, where it has to be there.
    pub(super) fn need(&self, key: &str, what: &str) -> Result<Self, Failure> {
        let missing = || Self { value: &Value::Null, path: self.join(key), origin: self.origin }.expected(what);
        self.get(key).ok_or_else(missing)
    }
    /// The entries of a mapping, in the order of their keys.
    pub(super) fn entries(&self, what: &str) -> Result<Vec<(&'a str, Self)>, Failure> {
        let map = self.value.as_object().ok_or_else(|| self.expected(format_args!("a mapping of {what}")))?;
        let entry = |(key, value): (&'a String, &'a Value)| {
            (key.as_str(), Self { value, path: self.join(key), origin: self.origin })
        };
        Ok(map.iter().map(entry).collect())
    }
    /// The items of a list.
    pub(super) fn items(&self, what: &str) -> Result<Vec<Self>, Failure> {
        let list = self.value.as_array().ok_or_else(|| self.expected(format_args!("a list of {what}")))?;
        let item = |(at, value)| Self { value, path: format!("{}[{at}]", self.path), origin: self.origin };
        Ok(list.iter().enumerate().map(item).collect())
    }
    /// Refuses keys that mean nothing here: a slip of the finger must not be passed over.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Failure> {
        for (key, field) in self.entries("fields")? {
            if !known.contains(&key) {
                let near = hint(key, known.iter().copied());
                return Err(field.fault(format_args!("unknown field; expected one of {}{near}", known.join(", "))));
            }
        }
        Ok(())
    }
    /// Text that is not empty.
    pub(super) fn text(&self, what: &str) -> Result<&'a str, Failure> {
        self.value.as_str().filter(|text| !text.is_empty()).ok_or_else(|| self.expected(what))
    }
    /// Text, also empty.
    pub(super) fn string(&self, what: &str) -> Result<&'a str, Failure> {
        self.value.as_str().ok_or_else(|| self.expected(what))
    }
    /// true or false.
    pub(super) fn flag(&self) -> Result<bool, Failure> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }
    /// A whole number within bounds.
    pub(super) fn whole(&self, least: u64, most: u64) -> Result<u64, Failure> {
        let number = self.value.as_u64().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.expected(format_args!("a whole number from {least} to {most}")))
    }
    /// A number of seconds, fractions allowed.
    pub(super) fn seconds(&self) -> Result<Duration, Failure> {
        let seconds = self.value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let bounded = seconds.filter(|seconds| *seconds <= super::stream::OLDEST);
        let most = super::stream::OLDEST.as_secs();
        bounded.ok_or_else(|| self.expected(format_args!("a number of seconds from 0 to {most}")))
    }
    /// A time as Kubernetes writes them, in an age that it may be of: what is waited for can be reckoned from it.
    pub(super) fn time(&self) -> Result<jiff::Timestamp, Failure> {
        let text = self.value.as_str().unwrap_or_default();
        if let Ok(time) = text.parse::<jiff::Timestamp>()
            && (EARLIEST..LATEST).contains(&time.as_second())
        {
            return Ok(time);
        }
        let is_far_out = text.len() > 4 && text.as_bytes().first().is_some_and(|c| c.is_ascii_digit() || *c == b'-');
        let within = if is_far_out { ", from the year 1970 to 2199" } else { "" };
        Err(self.expected(format_args!("a time such as 2026-08-03T12:03:00Z{within}")))
    }
    /// One of a closed list of words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Failure> {
        let text = self.value.as_str().unwrap_or_default();
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*meant);
        }
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let near = if text.is_empty() { String::new() } else { hint(text, all.iter().copied()) };
        Err(self.expected(format_args!("one of {}{near}", all.join(", "))))
    }
}
