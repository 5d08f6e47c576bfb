//! Small readings of objects: names, versions, owners, times.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

/// Where an object lives. Ordered, so that one collection is one range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `pods`, `widgets.example.test`.
    pub resource: String,
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl Key {
    /// A key of these parts.
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: resource.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// A text at `metadata.<field>`, or the empty one.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or("")
}

/// A text at a JSON pointer, or the empty one.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// `metadata`, made if it is missing or no object.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    child_mut(object, "metadata")
}

/// The object at this field, made if it is missing or no object.
pub fn child_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    as_map(as_map(object).entry(field).or_insert(Value::Null))
}

/// The value as a map; what is no map becomes an empty one.
pub fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // Made an object just above.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => unreachable!(),
    }
}

/// Sets `metadata.<field>`; null removes it.
pub fn set_meta(object: &mut Value, field: &str, value: Value) {
    let map = meta_mut(object);
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value);
    }
}

/// True once the object has a deletionTimestamp.
pub fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> Vec<String> {
    texts(object.pointer("/metadata/finalizers"))
}

/// A list of texts.
pub fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// Writes the list, absent when empty: that is how an emptied list is stored (R9).
pub fn set_finalizers(object: &mut Value, list: &[String]) {
    let value = if list.is_empty() { Value::Null } else { Value::from(list.to_vec()) };
    set_meta(object, "finalizers", value);
}

/// `metadata.ownerReferences`.
pub fn owners(object: &Value) -> &[Value] {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// True if this uid is among the owners.
pub fn is_owned_by(object: &Value, uid: &str) -> bool {
    owners(object).iter().any(|owner| text(owner, "/uid") == uid)
}

/// The object's resourceVersion as a number.
pub fn version_of(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or(0)
}

/// Adds one to `metadata.generation`.
pub fn bump_generation(object: &mut Value) {
    let next = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0).saturating_add(1);
    set_meta(object, "generation", Value::from(next));
}

/// A time as the API writes it: whole seconds.
pub fn stamp(at: Timestamp) -> Value {
    Value::from(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time read back.
pub fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// `at` plus seconds, held within what can be represented.
pub fn plus(at: Timestamp, seconds: i64) -> Timestamp {
    later(at, SignedDuration::from_secs(seconds))
}

/// `at` plus a span, held within what can be represented.
pub fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(if span.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}

/// Drops what the API never stores: null and empty metadata, managedFields.
pub fn tidy_metadata(object: &mut Value) {
    let meta = meta_mut(object);
    meta.remove("managedFields");
    meta.remove("selfLink");
    meta.retain(|_, value| {
        let empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
            || value.as_str().is_some_and(str::is_empty);
        !value.is_null() && !empty
    });
}

/// Drops nulls, as a typed decoder does.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, entry| !entry.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
