//! Where a decision is another than the one that was recorded. Words may change; deeds may not.

use super::{End, Step};
use serde_json::Value;
use std::fmt;

/// One place at which a replay left the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The decision of the pass, from 1.
    pub turn: usize,
    /// As recorded; empty where nothing was.
    pub recorded: Vec<String>,
    /// As decided; empty where nothing is.
    pub decided: Vec<String>,
    /// Only reasons and messages differ.
    pub words_only: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  decision {}", self.turn)?;
        for (mark, lines) in [('-', &self.recorded), ('+', &self.decided)] {
            for line in lines {
                writeln!(f, "  {mark} {line}")?;
            }
        }
        Ok(())
    }
}

/// How the actions of one decision differ from those recorded.
pub(super) fn actions(turn: usize, recorded: Option<&Step>, decided: &[Value]) -> Option<Difference> {
    let before = recorded.map(|step| step.actions.as_slice()).unwrap_or_default();
    let decided = &as_read_back(decided);
    if recorded.is_some() && before == decided {
        return None;
    }
    let deeds = |actions: &[Value]| actions.iter().map(without_words).collect::<Vec<_>>();
    let words_only = recorded.is_some() && deeds(before) == deeds(decided);
    // What both want need not be told, unless only the order differs.
    let only = |all: &[Value], other: &[Value]| all.iter().filter(|one| !other.contains(one)).cloned().collect();
    let (mut was, mut is): (Vec<Value>, Vec<Value>) = (only(before, decided), only(decided, before));
    if was.is_empty() && is.is_empty() {
        (was, is) = (before.to_vec(), decided.clone());
    }
    let told = |all: &[Value], other: &[Value]| -> Vec<String> {
        all.iter().enumerate().map(|(at, action)| told(action, other.get(at))).collect()
    };
    Some(Difference { turn, recorded: told(&was, &is), decided: told(&is, &was), words_only })
}

/// A fraction that was written and read may differ in its last bit from the one that was not.
fn as_read_back(actions: &[Value]) -> Vec<Value> {
    let read = serde_json::to_string(actions).and_then(|text| serde_json::from_str(&text));
    read.unwrap_or_else(|_| actions.to_vec())
}

/// How the end differs.
pub(super) fn end(turn: usize, recorded: &End, decided: &End) -> Option<Difference> {
    let told = |end: &End| vec![super::story::end(end)];
    let same = match (recorded, decided) {
        (End::GaveUp { .. }, End::GaveUp { .. }) => true,
        (recorded, decided) => recorded == decided,
    };
    (!same).then(|| Difference { turn, recorded: told(recorded), decided: told(decided), words_only: false })
}

/// An action on one line: its name, rule and reason, and those of its fields that differ from the other's.
fn told(action: &Value, other: Option<&Value>) -> String {
    let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut line = format!("{} by {}: {}", text("action"), text("rule"), text("because"));
    let common = other.filter(|other| other.get("action") == action.get("action"));
    for (key, value) in action.as_object().into_iter().flatten() {
        if ["action", "rule", "because"].contains(&key.as_str()) {
            continue;
        }
        match common.and_then(|other| other.get(key)) {
            Some(before) if before == value => {}
            Some(before) => inner(&mut line, key, value, before),
            None if value.is_object() => {}
            None => line.push_str(&format!(", {key} {}", short(value))),
        }
    }
    line
}

/// Where within a field it differs.
fn inner(line: &mut String, path: &str, value: &Value, other: &Value) {
    match (value, other) {
        (Value::Object(mine), Value::Object(theirs)) => {
            for (key, value) in mine {
                let other = theirs.get(key).unwrap_or(&Value::Null);
                if value != other {
                    inner(line, &format!("{path}.{key}"), value, other);
                }
            }
            for key in theirs.keys().filter(|key| !mine.contains_key(*key)) {
                line.push_str(&format!(", {path}.{key} absent"));
            }
        }
        (value, _) => line.push_str(&format!(", {path} {}", short(value))),
    }
}

fn short(value: &Value) -> String {
    crate::core::oddity::excerpt(&value.to_string(), 200)
}

/// Reasons, messages and what is waited for are told to people and decide nothing.
fn without_words(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !["because", "message", "for"].contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_words(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_words).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
