//! What the API server asks of events: strictly of those that come as `events.k8s.io/v1`, and little of the others.
//! Objects are looked at as they are stored, under the names of `v1`.

use super::events::is_new_face;
use super::objects::{meta, text};
use super::path::Call;
use super::status_error::FieldError;
use serde_json::{Value, json};

/// The most characters of action, reason and reporting instance.
const WORD_MOST: usize = 128;
/// The most characters of a note.
const NOTE_MOST: usize = 1_024;

/// True for events, under either face.
pub(super) fn is_event(call: &Call<'_>) -> bool {
    super::events::storage(&call.resource().qualified()) == "events"
}

/// Fills in what a server's answer always shows of an event, be it unset.
pub(super) fn complete(object: &mut Value) {
    let Some(event) = object.as_object_mut() else { return };
    for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        event.entry(field).or_insert(Value::Null);
    }
    event.entry("source").or_insert_with(|| json!({}));
    for field in ["reportingComponent", "reportingInstance"] {
        event.entry(field).or_insert_with(|| json!(""));
    }
}

/// What is wrong with a new event.
pub(super) fn errors(call: &Call<'_>, event: &Value) -> Vec<FieldError> {
    let strict = is_new_face(&call.resource().qualified());
    let timed = event.get("eventTime").is_some_and(Value::is_string);
    let mut errors = Vec::new();
    if text(event, "/involvedObject/namespace") != meta(event, "namespace")
        && !is_cluster_wide(event, call.target.namespace.as_str())
    {
        let value = Value::from(text(event, "/involvedObject/namespace"));
        errors.push(FieldError::invalid("involvedObject.namespace", &value, "does not match event.namespace"));
    }
    if timed {
        errors.extend(who(event, strict));
        for field in ["action", "reason"] {
            errors.extend(word(event, field, field));
        }
        if text(event, "/message").chars().count() > NOTE_MOST {
            errors.push(FieldError::invalid("message", &json!(""), "can have at most 1024 characters"));
        }
    }
    if strict {
        errors.extend(strictly(event, timed));
    }
    errors
}

/// What is wrong with a change of an event: under the new face only the series moves.
pub(super) fn update_errors(call: &Call<'_>, current: &Value, proposed: &Value) -> Vec<FieldError> {
    if !is_new_face(&call.resource().qualified()) {
        return Vec::new();
    }
    const FIXED: [(&str, &str); 12] = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
    ];
    let moved = FIXED.iter().filter(|(field, _)| differs(current, proposed, field));
    moved
        .map(|(field, shown)| {
            let value = proposed.get(*field).cloned().unwrap_or_default();
            FieldError::invalid(*shown, &value, "field is immutable")
        })
        .collect()
}

/// What is unset may be absent or null.
fn differs(current: &Value, proposed: &Value, field: &str) -> bool {
    let of = |object: &Value| object.get(field).filter(|value| !value.is_null()).cloned();
    of(current) != of(proposed)
}

/// Objects of no namespace have their events in `default` or `kube-system`.
fn is_cluster_wide(event: &Value, namespace: &str) -> bool {
    text(event, "/involvedObject/namespace").is_empty() && ["default", "kube-system"].contains(&namespace)
}

fn who(event: &Value, strict: bool) -> Vec<FieldError> {
    let field = if strict { "reportingController" } else { "reportingComponent" };
    let mut errors = Vec::new();
    let controller = text(event, "/reportingComponent");
    if controller.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !is_qualified(controller) {
        let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character";
        errors.push(FieldError::invalid(field, &Value::from(controller), why));
    }
    errors.extend(word(event, "reportingInstance", "reportingInstance"));
    errors
}

/// A word that has to be there and may not be long.
fn word(event: &Value, field: &str, shown: &str) -> Option<FieldError> {
    let value = event.get(field).and_then(Value::as_str).unwrap_or_default();
    if value.is_empty() {
        return Some(FieldError::required(shown, ""));
    }
    let long = value.chars().count() > WORD_MOST;
    long.then(|| FieldError::invalid(shown, &json!(""), "can have at most 128 characters"))
}

fn strictly(event: &Value, timed: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !timed {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.push(FieldError::invalid("type", &json!(""), &format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count"] {
        if event.get(field).is_some_and(|value| !value.is_null() && *value != json!(0)) {
            errors.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
        }
    }
    let source = event.get("source").and_then(Value::as_object);
    for part in ["component", "host"] {
        if source.and_then(|source| source.get(part)).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
            errors.push(FieldError::invalid(format!("source.{part}"), &json!(""), "needs to be unset"));
        }
    }
    errors
}

/// `name` or `prefix/name`.
fn is_qualified(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let ends = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c));
    (1..=63).contains(&name.len())
        && ends(name)
        && plain(name)
        && prefix.is_none_or(|prefix| ends(prefix) && plain(prefix))
}
