//! Structural schemas of custom resources: pruning, defaults and validation as the API server does them.

mod checks;

use super::path::Call;
use super::status_error::{FieldError, Refused, bad_request};
use checks::{Place, Walk};
use kube_cel::CompiledSchema;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A schema, with what can be prepared once.
pub struct Schema {
    raw: Value,
    rules: CompiledSchema,
    has_rules: bool,
    patterns: BTreeMap<String, Regex>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Schema").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Schema {
    /// Prepares a schema.
    pub fn new(raw: Value) -> Self {
        let mut patterns = BTreeMap::new();
        let mut has_rules = false;
        collect(&raw, &mut patterns, &mut has_rules);
        Self { rules: kube_cel::compile_schema(&raw), has_rules, patterns, raw }
    }

    /// As it was given.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// The compiled CEL rules; none if the schema has none.
    pub fn rules(&self) -> Option<&CompiledSchema> {
        self.has_rules.then_some(&self.rules)
    }

    /// Takes away what the schema does not know, and gives the paths of it.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        if self.raw.get("type").is_some() || self.raw.get("properties").is_some() {
            prune(&self.raw, object, "", true, &mut unknown);
        }
        unknown
    }

    /// Fills in defaults, and drops nulls where null is no value.
    pub fn default(&self, object: &mut Value) {
        default(&self.raw, object);
    }

    /// What is wrong with an object. What was wrong in the same value before is not held against an update.
    pub fn errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut walk = Walk { patterns: &self.patterns, errors: Vec::new() };
        walk.value(&self.raw, object, old, &Place::root(""));
        walk.errors
    }

    /// What is wrong with the status of an object, in the words of the status endpoint.
    pub fn status_errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let (Some(schema), Some(status)) = (self.raw.pointer("/properties/status"), object.get("status")) else {
            return Vec::new();
        };
        let mut walk = Walk { patterns: &self.patterns, errors: Vec::new() };
        walk.value(schema, status, old.and_then(|old| old.get("status")), &Place::root("status"));
        walk.errors
    }
}

/// What is wrong with a default of this schema.
pub(super) fn default_errors(schema: &Value, value: &Value, place: &str) -> Vec<FieldError> {
    let mut walk = Walk { patterns: &BTreeMap::new(), errors: Vec::new() };
    walk.value(schema, value, None, &Place::root(place));
    walk.errors
}

/// Collects patterns to compile, and whether there are CEL rules.
fn collect(schema: &Value, patterns: &mut BTreeMap<String, Regex>, has_rules: &mut bool) {
    match schema {
        Value::Object(map) => {
            *has_rules |= map.contains_key("x-kubernetes-validations");
            if let Some(pattern) = map.get("pattern").and_then(Value::as_str)
                && let Ok(regex) = Regex::new(pattern)
            {
                patterns.insert(pattern.to_owned(), regex);
            }
            map.values().for_each(|child| collect(child, patterns, has_rules));
        }
        Value::Array(list) => list.iter().for_each(|child| collect(child, patterns, has_rules)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a request gets for fields that its schema does not know: a warning each, silence, or a refusal.
pub(super) fn unknown_fields(call: &Call<'_>, unknown: Vec<String>) -> Result<Vec<String>, Refused> {
    let said: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {}", super::reply::quoted(path))).collect();
    match call.query("fieldValidation") {
        Some("Ignore") => Ok(Vec::new()),
        Some("Strict") if !said.is_empty() => {
            let resource = call.resource();
            Err(bad_request(&format!(
                "{0} in version {1} cannot be handled as a {0}: strict decoding error: {2}",
                resource.kind,
                super::reply::quoted(&resource.version),
                said.join(", ")
            )))
        }
        _ => Ok(said),
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The schema of map values: `additionalProperties` as an object.
fn map_values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn prune(schema: &Value, value: &mut Value, path: &str, is_root: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keeps = flag(schema, "x-kubernetes-preserve-unknown-fields")
                || schema.get("additionalProperties").is_some_and(|values| values != &Value::Bool(false))
                || flag(schema, "x-kubernetes-int-or-string");
            let embedded = is_root || flag(schema, "x-kubernetes-embedded-resource");
            map.retain(|name, child| {
                let system = embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                if system {
                    return true;
                }
                let known = properties(schema).and_then(|all| all.get(name)).or_else(|| map_values(schema));
                match known {
                    Some(schema) => prune(schema, child, &join(path, name), false, unknown),
                    None if keeps => {}
                    None => unknown.push(join(path, name)),
                }
                known.is_some() || keeps
            });
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                for (at, entry) in list.iter_mut().enumerate() {
                    prune(items, entry, &format!("{path}[{at}]"), false, unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            // Null counts as absent wherever it is no value of its own.
            map.retain(|name, own| {
                let known = properties(schema).and_then(|all| all.get(name)).or_else(|| map_values(schema));
                !own.is_null() || known.is_none_or(|known| flag(known, "nullable"))
            });
            for (name, child) in properties(schema).into_iter().flatten() {
                let Some(value) = child.get("default") else { continue };
                map.entry(name.clone()).or_insert_with(|| value.clone());
            }
            for (name, child) in map {
                let known = properties(schema).and_then(|all| all.get(name)).or_else(|| map_values(schema));
                if let Some(known) = known {
                    default(known, child);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                list.iter_mut().for_each(|entry| default(items, entry));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
