//! Reading object metadata out of whatever the server returned. Total: what is missing or of another type reads as absent.

use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// One owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerRef {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `name`.
    pub name: String,
    /// `uid`.
    pub uid: String,
    /// `controller`.
    pub controller: bool,
}

/// `metadata`, or null.
pub fn metadata(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}

/// A text of the metadata; absent reads as empty.
pub fn text(object: &Value, key: &str) -> String {
    metadata(object).get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A time of the metadata.
pub fn time(object: &Value, key: &str) -> Option<Timestamp> {
    metadata(object).get(key).and_then(Value::as_str).and_then(|text| text.parse().ok())
}

/// A list of texts; `None` where it is absent or no list.
pub fn strings(object: &Value, key: &str) -> Option<Vec<String>> {
    let list = metadata(object).get(key)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Labels or annotations whose key is wanted.
pub fn map(object: &Value, key: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let Some(map) = metadata(object).get(key).and_then(Value::as_object) else { return BTreeMap::new() };
    map.iter()
        .filter(|(key, _)| wanted(key))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// All owner references.
pub fn owners(object: &Value) -> Vec<OwnerRef> {
    let list = metadata(object).get("ownerReferences").and_then(Value::as_array);
    list.map(|list| list.iter().map(owner).collect()).unwrap_or_default()
}

/// The controlling owner.
pub fn controller(object: &Value) -> Option<OwnerRef> {
    owners(object).into_iter().find(|owner| owner.controller)
}

fn owner(value: &Value) -> OwnerRef {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    OwnerRef {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
        controller: value.get("controller").and_then(Value::as_bool).unwrap_or(false),
    }
}
